package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
)

// Kind is the first byte of a RESP3 value (protocol.md 2.1).
type Kind byte

// The kinds of RESP3 values that the protocol uses. The store writes Null as `$-1`. The parser also
// accepts the Null of RESP3, `_`.
const (
	SimpleString Kind = '+'
	SimpleError  Kind = '-'
	Integer      Kind = ':'
	Blob         Kind = '$'
	Array        Kind = '*'
	Null         Kind = '_'
)

// maxDepth limits the depth of nested arrays. The protocol needs 2 (SCAN).
const maxDepth = 16

// A Value is one RESP3 value.
type Value struct {
	Kind  Kind
	Text  []byte  // of a SimpleString, SimpleError or Blob
	Int   int64   // of an Integer
	Items []Value // of an Array
}

// A SyntaxError says where a message violates the protocol.
type SyntaxError struct {
	Offset int    // in bytes from the start of the message
	Want   string // what was expected
	Got    string // the bytes found there, quoted; long text is cut
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("bad RESP3 at byte %d: expected %s, got %s", e.Offset, e.Want, e.Got)
}

// ParseValue parses a payload that is exactly one RESP3 value. The error is a
// *[SyntaxError]. The value aliases the payload.
func ParseValue(payload []byte) (Value, error) {
	p := parser{data: payload}
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	if p.pos != len(payload) {
		return Value{}, p.fail("the end of the message")
	}
	return v, nil
}

// Clone returns a copy of v that shares no memory with it.
func (v Value) Clone() Value {
	v.Text = bytes.Clone(v.Text)
	v.Items = slices.Clone(v.Items)
	for i := range v.Items {
		v.Items[i] = v.Items[i].Clone()
	}
	return v
}

// AppendValue appends the encoding of v. Null is encoded as `$-1`, as the store
// does. The text of a SimpleString or SimpleError must hold no CR or LF.
func AppendValue(dst []byte, v Value) []byte {
	switch v.Kind {
	case Integer:
		return appendHeader(dst, Integer, v.Int)
	case Blob:
		return AppendBlob(dst, v.Text)
	case Array:
		dst = appendHeader(dst, Array, int64(len(v.Items)))
		for _, item := range v.Items {
			dst = AppendValue(dst, item)
		}
		return dst
	case Null:
		return append(dst, "$-1\r\n"...)
	default:
		dst = append(dst, byte(v.Kind))
		dst = append(dst, v.Text...)
		return append(dst, '\r', '\n')
	}
}

func appendHeader(dst []byte, k Kind, n int64) []byte {
	dst = append(dst, byte(k))
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '\r', '\n')
}

// AppendBlob appends the encoding of a [Blob].
func AppendBlob[T []byte | string](dst []byte, b T) []byte {
	dst = AppendBlobHeader(dst, len(b))
	dst = append(dst, b...)
	return append(dst, '\r', '\n')
}

// AppendBlobHeader appends the header of a blob string: everything before its content, which is size
// bytes long.
func AppendBlobHeader(dst []byte, size int) []byte { return appendHeader(dst, Blob, int64(size)) }

type parser struct {
	data []byte
	pos  int
}

func (p *parser) fail(want string) error { return p.failAt(p.pos, want) }

// failAt returns a SyntaxError that quotes at most 24 bytes: a message can be large.
func (p *parser) failAt(pos int, want string) error {
	const shown = 24
	got := "the end of the message"
	if rest := p.data[pos:]; len(rest) > shown {
		got = strconv.Quote(string(rest[:shown])) + "…"
	} else if len(rest) > 0 {
		got = strconv.Quote(string(rest))
	}
	return &SyntaxError{Offset: pos, Want: want, Got: got}
}

func isCRLF(b []byte) bool { return len(b) >= 2 && b[0] == '\r' && b[1] == '\n' }

// line returns the bytes up to the next CR LF, and skips the CR LF.
func (p *parser) line() ([]byte, error) {
	rest := p.data[p.pos:]
	end := bytes.IndexAny(rest, "\r\n")
	if end < 0 {
		return nil, p.failAt(len(p.data), "CR LF at the end of the line")
	}
	if !isCRLF(rest[end:]) {
		return nil, p.failAt(p.pos+end, "CR LF")
	}
	p.pos += end + 2
	return rest[:end:end], nil
}

// maxNumber is the length of the longest 64-bit number, including its sign. A longer text is
// rejected even if it only has extra leading zeros.
const maxNumber = 20

// number reads a line with a 64-bit decimal number: an optional minus sign, and digits. It rejects
// negative zero.
func (p *parser) number(want string) (int64, error) {
	start := p.pos
	// Fast path: nearly all numbers are short lengths, which cannot overflow.
	n, end := int64(0), start
	for end < len(p.data) && end < start+18 && '0' <= p.data[end] && p.data[end] <= '9' {
		n = 10*n + int64(p.data[end]-'0')
		end++
	}
	if end > start && isCRLF(p.data[end:]) {
		p.pos = end + 2
		return n, nil
	}
	if some := p.data[start:min(len(p.data), start+maxNumber+1)]; len(some) > maxNumber && !bytes.ContainsAny(some, "\r\n") {
		return 0, p.failAt(start, want) // the line is too long, and may be longer than all of a normal message
	}
	text, err := p.line()
	if err != nil {
		return 0, err
	}
	n, err = strconv.ParseInt(string(text), 10, 64)
	if err != nil || text[0] == '+' || text[0] == '-' && n == 0 {
		return 0, p.failAt(start, want)
	}
	return n, nil
}

// kind returns the kind of the next value, or 0 if there is no value of a known kind.
func (p *parser) kind() Kind {
	if p.pos == len(p.data) {
		return 0
	}
	switch kind := Kind(p.data[p.pos]); kind {
	case SimpleString, SimpleError, Integer, Blob, Array, Null:
		return kind
	}
	return 0
}

func (p *parser) value(depth int) (Value, error) {
	if p.pos == len(p.data) {
		return Value{}, p.fail("a RESP3 value")
	}
	start := p.pos
	kind := Kind(p.data[p.pos])
	p.pos++
	switch kind {
	case SimpleString, SimpleError:
		text, err := p.line()
		return Value{Kind: kind, Text: text}, err
	case Integer:
		n, err := p.number("a 64-bit integer")
		return Value{Kind: kind, Int: n}, err
	case Null:
		text, err := p.line()
		if err == nil && len(text) > 0 {
			err = p.failAt(start, "_ CR LF")
		}
		return Value{Kind: kind}, err
	case Blob:
		text, null, err := p.blob(start)
		if null {
			kind = Null
		}
		return Value{Kind: kind, Text: text}, err
	case Array:
		return p.array(start, depth)
	default:
		return Value{}, p.failAt(start, "one of + - : $ * _")
	}
}

// blob reads the rest of a blob or of a null whose kind byte is at start.
func (p *parser) blob(start int) (text []byte, null bool, err error) {
	n, err := p.number("a blob length")
	switch {
	case err != nil:
		return nil, false, err
	case n == -1:
		return nil, true, nil
	case n < 0:
		return nil, false, p.failAt(start, "a blob length of 0 or more, or -1")
	}
	rest := p.data[p.pos:]
	if n > int64(len(rest)) {
		return nil, false, p.failAt(start, fmt.Sprintf("a blob of at most the %d bytes that follow", len(rest)))
	}
	p.pos += int(n)
	if !isCRLF(rest[n:]) {
		return nil, false, p.fail("CR LF after the blob")
	}
	p.pos += 2
	return rest[:n:n], false, nil
}

// arrayLength reads the length of an array whose kind byte is at start.
func (p *parser) arrayLength(start int) (int64, error) {
	n, err := p.number("an array length")
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, p.failAt(start, "an array length of 0 or more")
	}
	// The shortest value is three bytes.
	if rest := len(p.data) - p.pos; n > int64(rest/3) {
		return 0, p.failAt(start, fmt.Sprintf("an array that fits the %d bytes that follow", rest))
	}
	return n, nil
}

func (p *parser) array(start, depth int) (Value, error) {
	n, err := p.arrayLength(start)
	if err != nil {
		return Value{}, err
	}
	if depth == maxDepth {
		return Value{}, p.failAt(start, fmt.Sprintf("arrays nested at most %d deep", maxDepth))
	}
	// Grow the slice only as values are read. If each nested array allocated its announced length,
	// a short message could allocate a lot of memory.
	v := Value{Kind: Array, Items: make([]Value, 0, min(n, 8))}
	for range n {
		item, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		v.Items = append(v.Items, item)
	}
	return v, nil
}
