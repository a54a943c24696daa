package wire

// The verbs and option words of requests, in upper case as the protocol requires
// (protocol.md 2.1, 2.2).
const (
	VerbGet       = "GET"
	VerbSet       = "SET"
	VerbDel       = "DEL"
	VerbVDel      = "VDEL"
	VerbKeyNotify = "KEYNOTIFY"
	VerbScan      = "SCAN"

	OptionNX   = "NX"
	OptionNEX  = "NEX"
	OptionPX   = "PX"
	OptionStop = "STOP"
)

// AppendRequest appends the payload of a request: an array of blobs, one for
// each word (protocol.md 2.2).
func AppendRequest[T []byte | string](dst []byte, words ...T) []byte {
	dst = appendHeader(dst, Array, int64(len(words)))
	for _, w := range words {
		dst = appendBlob(dst, w)
	}
	return dst
}

// ParseRequest parses the payload of a request into its words, which alias the
// payload. There is at least one. The error is a *[SyntaxError].
func ParseRequest(payload []byte) ([][]byte, error) {
	v, err := ParseValue(payload)
	if err != nil {
		return nil, err
	}
	if v.Kind != Array || len(v.Items) == 0 {
		p := parser{data: payload}
		return nil, p.fail("an array of at least one blob")
	}
	words := make([][]byte, len(v.Items))
	for i, item := range v.Items {
		if item.Kind != Blob {
			return nil, failWord(payload, i, "only blobs in the array")
		}
		words[i] = item.Text
	}
	return words, nil
}

// failWord returns a SyntaxError about word i of an array that was parsed.
func failWord(payload []byte, i int, want string) error {
	p := parser{data: payload}
	_, _ = p.line()
	for range i {
		_, _ = p.value(1)
	}
	return p.fail(want)
}
