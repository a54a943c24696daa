package wire

import (
	"bytes"
	"strings"
)

// A Reply is the answer to a request, read by the tolerant rules of
// protocol.md 2.4.
type Reply struct {
	Value Value
	// Note describes how the answer deviates from RESP3. Only the deviations that the published
	// protocol shows are accepted; see [ParseReply]. Note is empty if the answer is valid RESP3.
	Note string
}

// ParseReply parses the payload of an answer. It accepts one RESP3 value, and three other forms
// that the published protocol shows: a bare `-1` for `:-1`, an error without CR LF, and a blob
// without its last CR LF. Both encodings of null become [Null]. If the payload cannot be parsed,
// or is an error without a text, the error is a *[SyntaxError]. An error that the store reports
// is not a Go error but a Reply; see [Reply.StoreError].
func ParseReply(payload []byte) (Reply, error) {
	v, err := ParseValue(payload)
	if err == nil && v.Kind != SimpleError {
		return Reply{Value: v}, nil
	}
	if len(payload) > 0 && Kind(payload[0]) == SimpleError {
		return parseErrorReply(payload)
	}
	if len(payload) > 0 && Kind(payload[0]) == Blob {
		if v, relaxed := ParseValue(append(payload[:len(payload):len(payload)], "\r\n"...)); relaxed == nil && v.Kind == Blob {
			return Reply{Value: v, Note: "a blob without CR LF at its end"}, nil
		}
	}
	return Reply{}, err
}

// parseErrorReply parses an answer that begins with a minus sign. The published protocol shows two such
// answers that are not valid RESP3: a bare -1 for an unmet condition, and an error without CR LF. An
// error without a text is rejected, because it may have been cut off.
func parseErrorReply(payload []byte) (Reply, error) {
	line, framed := bytes.CutSuffix(payload[1:], []byte("\r\n"))
	if bytes.ContainsAny(line, "\r\n") {
		p := parser{data: payload}
		return Reply{}, p.failAt(1+bytes.IndexAny(line, "\r\n"), "one line")
	}
	if string(line) == "1" {
		return Reply{Value: Value{Kind: Integer, Int: -1}, Note: "-1 without a colon"}, nil
	}
	if text := bytes.TrimLeft(bytes.TrimPrefix(line, []byte("ERR")), ": "); len(text) == 0 || string(line) == "E" || string(line) == "ER" {
		p := parser{data: payload}
		return Reply{}, p.failAt(1+len(line), "the text of an error")
	}
	r := Reply{Value: Value{Kind: SimpleError, Text: line}}
	if !framed {
		r.Note = "an error without CR LF"
	}
	return r, nil
}

// StoreError returns the error that the reply reports, or nil.
func (r Reply) StoreError() *StoreError {
	if r.Value.Kind != SimpleError {
		return nil
	}
	line := string(r.Value.Text)
	text, ok := strings.CutPrefix(line, "ERR")
	if !ok || (text != "" && text[0] != ' ' && text[0] != ':') {
		return &StoreError{Text: line}
	}
	return &StoreError{Text: strings.TrimSpace(strings.TrimPrefix(text, ":"))}
}

// AppendError appends the reply that reports a store error; text follows `-ERR `.
func AppendError(dst []byte, text string) []byte {
	return append(append(append(dst, "-ERR "...), text...), "\r\n"...)
}
