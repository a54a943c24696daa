package wire

import "slices"

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

// Changes reports whether a request with a verb may change the store. It is true for an unknown verb.
func Changes(verb string) bool {
	return verb != VerbGet && verb != VerbKeyNotify && verb != VerbScan
}

// IsWrite reports whether a verb is one of the known writes.
func IsWrite(verb string) bool { return verb == VerbSet || verb == VerbDel || verb == VerbVDel }

// AppendRequest appends the payload of a request: an array with one blob for each word
// (protocol.md 2.2).
func AppendRequest[T []byte | string](dst []byte, words ...T) []byte {
	const header = 24 // maximum bytes of a header and the CR LF after its blob
	size := header
	for _, w := range words {
		size += header + len(w)
	}
	dst = slices.Grow(dst, size)
	dst = appendHeader(dst, Array, int64(len(words)))
	for _, w := range words {
		dst = AppendBlob(dst, w)
	}
	return dst
}

// AppendRequestAround is like [AppendRequest], but leaves out the text of word i, which comes before
// payload[at:].
func AppendRequestAround(dst []byte, words []string, i int) (payload []byte, at int) {
	dst = appendHeader(dst, Array, int64(len(words)))
	for j, w := range words {
		if j != i {
			dst = AppendBlob(dst, w)
			continue
		}
		dst = AppendBlobHeader(dst, len(w))
		at = len(dst)
		dst = append(dst, "\r\n"...)
	}
	return dst, at
}

// ParseRequest parses the payload of a request into its words, which alias the payload. It accepts only
// a request with at least one word. The error is a *[SyntaxError].
func ParseRequest(payload []byte) ([][]byte, error) { return AppendWords(nil, payload) }

// AppendWords is like [ParseRequest], but appends the words to dst. On an error it returns nil, not
// dst.
func AppendWords(dst [][]byte, payload []byte) ([][]byte, error) {
	const want = "an array of at least one blob"
	p := parser{data: payload}
	if kind := p.kind(); kind != Array {
		if kind == 0 {
			_, err := p.value(0)
			return nil, err
		}
		return nil, p.fail(want)
	}
	p.pos++
	n, err := p.arrayLength(0)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, p.failAt(0, want)
	}
	for range n {
		start := p.pos
		if kind := p.kind(); kind != Blob {
			if kind == 0 {
				_, err := p.value(1)
				return nil, err
			}
			return nil, p.failAt(start, "only blobs in the array") // unread: it may be an array of millions of values
		}
		p.pos++
		word, null, err := p.blob(start)
		switch {
		case err != nil:
			return nil, err
		case null:
			return nil, p.failAt(start, "only blobs in the array")
		}
		dst = append(dst, word)
	}
	if p.pos != len(payload) {
		return nil, p.fail("the end of the message")
	}
	return dst, nil
}

// failWord returns a SyntaxError at word i of a payload that AppendWords accepted.
func failWord(payload []byte, i int, want string) error {
	p := parser{data: payload}
	_, _ = p.line()
	for range i {
		_, _ = p.value(1)
	}
	return p.fail(want)
}
