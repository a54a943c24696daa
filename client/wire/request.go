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
		dst = AppendBlob(dst, w)
	}
	return dst
}

// ParseRequest parses the payload of a request into its words, which alias the
// payload. There is at least one. The error is a *[SyntaxError].
func ParseRequest(payload []byte) ([][]byte, error) {
	words, err := AppendWords(nil, payload)
	if err != nil {
		return nil, err
	}
	return words, nil
}

// AppendWords is [ParseRequest] with the caller's memory: it appends the words to dst. After an
// error, ignore what it appended.
func AppendWords(dst [][]byte, payload []byte) ([][]byte, error) {
	const want = "an array of at least one blob"
	p := parser{data: payload}
	if len(payload) == 0 || Kind(payload[0]) != Array {
		if _, err := ParseValue(payload); err != nil {
			return dst, err
		}
		return dst, p.fail(want)
	}
	p.pos++
	n, err := p.arrayLength(0)
	switch {
	case err != nil:
		return dst, err
	case n == 0:
		return dst, p.failAt(0, want)
	}
	for range n {
		start := p.pos
		if start == len(payload) || Kind(payload[start]) != Blob {
			if _, err := p.value(1); err != nil {
				return dst, err
			}
			return dst, p.failAt(start, "only blobs in the array")
		}
		p.pos++
		word, null, err := p.blob(start)
		switch {
		case err != nil:
			return dst, err
		case null:
			return dst, p.failAt(start, "only blobs in the array")
		}
		dst = append(dst, word)
	}
	if p.pos != len(payload) {
		return dst, p.fail("the end of the message")
	}
	return dst, nil
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
