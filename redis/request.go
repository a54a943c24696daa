package redis

import (
	"bytes"
	"errors"
	"io"
	"math"
)

// Limits of what a client may send, checked before memory is taken. Those of the form are Redis's.
const (
	maxInline = 64 << 10      // bytes of a line
	maxArgs   = math.MaxInt32 // arguments of a request
	maxBulk   = 512 << 20     // bytes of an argument
	maxUnread = 1 << 30       // bytes that are not a whole request yet

	// Before a client that must log in has done so.
	maxArgsStranger = 10
	maxBulkStranger = 16 << 10
)

// errTooLong ends a connection without a reply, as Redis does.
var errTooLong = errors.New("a request is longer than 1 GiB")

// errProtocol is what no connection survives.
type errProtocol string

func (e errProtocol) Error() string { return "Protocol error: " + string(e) }

// A requestReader cuts requests out of what a client sends. The arguments that it returns
// are parts of its buffer.
//
// The buffer holds what came and grows with it: at most twice that, whatever lengths are announced.
type requestReader struct {
	stranger bool // the client must log in first

	buf        []byte
	begin, end int // what is unread
	pos        int // how far the request at begin has been looked at, from begin
	left       int // arguments that are still to come
	bulk       int // length of the next one; -1: not known yet
	spans      []span
	args       [][]byte
	size       int // of the last request
}

// fullness returns the length of the request that is being run, of what has come after it, and
// of the rest of the buffer.
func (r *requestReader) fullness() (request, unread, free int) {
	return r.size, r.end - r.begin, len(r.buf) - (r.end - r.begin)
}

// span is where an argument is, from the begin of its request.
type span struct{ from, to int }

const (
	smallBuffer = 16 << 10
	largeBuffer = 1 << 20 // not kept when it is empty
)

// fill reads once.
func (r *requestReader) fill(from io.Reader) error {
	switch {
	case r.end-r.begin > maxUnread:
		return errTooLong
	case r.begin == r.end:
		r.begin, r.end = 0, 0
		if len(r.buf) == 0 || len(r.buf) > largeBuffer {
			r.buf = make([]byte, smallBuffer)
		}
	case r.end == len(r.buf) && r.begin >= len(r.buf)/2:
		r.end = copy(r.buf, r.buf[r.begin:r.end])
		r.begin = 0
	case r.end == len(r.buf):
		grown := make([]byte, 2*(r.end-r.begin))
		r.end = copy(grown, r.buf[r.begin:r.end])
		r.begin, r.buf = 0, grown
	}
	n, err := from.Read(r.buf[r.end:])
	r.end += n
	if n > 0 {
		return nil
	}
	return err
}

// next returns the arguments of the next request; none means that more must be read
// first. They are good until the next call of fill.
func (r *requestReader) next() ([][]byte, error) {
	for r.begin < r.end {
		if r.left == 0 {
			if r.buf[r.begin] != '*' {
				args, complete, err := r.inline()
				if err != nil || !complete || len(args) > 0 {
					return args, err
				}
				continue
			}
			complete, err := r.header()
			if err != nil || !complete {
				return nil, err
			}
			if r.left == 0 {
				r.begin, r.pos = r.begin+r.pos, 0
				continue
			}
		}
		return r.arguments()
	}
	return nil, nil
}

// line returns a line that ends with CR LF, from pos on.
func (r *requestReader) line(tooLong string) (text []byte, complete bool, err error) {
	rest := r.buf[r.begin+r.pos : r.end]
	i := bytes.IndexByte(rest, '\r')
	if i < 0 {
		if len(rest) > maxInline {
			return nil, false, errProtocol(tooLong)
		}
		return nil, false, nil
	}
	if i+2 > len(rest) {
		return nil, false, nil
	}
	r.pos += i + 2
	return rest[:i], true, nil
}

// shortLength reads a line such as $12 that has few digits, as nearly all have: its number,
// and how long it is with its CR LF. It reads no line that parseInt would refuse.
func shortLength(b []byte) (n int64, size int, ok bool) {
	const digits = 8
	for i := 1; i+1 < len(b) && i <= 1+digits; i++ {
		if b[i] == '\r' {
			return n, i + 2, i == 2 || i > 2 && b[1] != '0'
		}
		digit := b[i] - '0'
		if digit > 9 {
			return 0, 0, false
		}
		n = 10*n + int64(digit)
	}
	return 0, 0, false
}

// length takes a line that begins with its kind and has a number after it.
func (r *requestReader) length(tooLong string) (n int64, valid, complete bool, err error) {
	n, size, ok := shortLength(r.buf[r.begin+r.pos : r.end])
	if ok {
		r.pos += size
		return n, true, true, nil
	}
	text, complete, err := r.line(tooLong)
	if err != nil || !complete {
		return 0, false, false, err
	}
	n, valid = parseInt(text[1:])
	return n, valid, true, nil
}

// ahead appends the first argument, which nearly always is a key, of each of the next
// requests, as far as these have come, but of no more than that many. It is for use after
// next.
func (r *requestReader) ahead(dst [][]byte, most int) [][]byte {
	rest := r.buf[r.begin:r.end]
	for ; r.left == 0 && most > 0 && len(rest) > 0 && rest[0] == '*'; most-- {
		n, size, ok := shortLength(rest)
		if !ok {
			break
		}
		rest = rest[size:]
		for i := range n {
			bulk, size, ok := shortLength(rest)
			end := size + int(bulk)
			if !ok || rest[0] != '$' || end+2 > len(rest) {
				return dst
			}
			if i == 1 {
				dst = append(dst, rest[size:end])
			}
			rest = rest[end+2:]
		}
	}
	return dst
}

// header reads the number of arguments.
func (r *requestReader) header() (complete bool, err error) {
	n, ok, complete, err := r.length("too big mbulk count string")
	if err != nil || !complete {
		return false, err
	}
	switch {
	case !ok || n > maxArgs:
		return false, errProtocol("invalid multibulk length")
	case n > maxArgsStranger && r.stranger:
		return false, errProtocol("unauthenticated multibulk length")
	}
	r.left, r.bulk, r.spans = int(max(n, 0)), -1, r.spans[:0]
	return true, nil
}

// arguments reads those that are missing.
func (r *requestReader) arguments() ([][]byte, error) {
	for r.left > 0 {
		if r.bulk < 0 {
			if r.begin+r.pos < r.end && r.buf[r.begin+r.pos] != '$' {
				return nil, errProtocol("expected '$', got '" + string(r.buf[r.begin+r.pos:r.begin+r.pos+1]) + "'")
			}
			n, ok, complete, err := r.length("too big bulk count string")
			if err != nil || !complete {
				return nil, err
			}
			switch {
			case !ok || n < 0 || n > maxBulk:
				return nil, errProtocol("invalid bulk length")
			case n > maxBulkStranger && r.stranger:
				return nil, errProtocol("unauthenticated bulk length")
			}
			r.bulk = int(n)
		}
		if r.end-r.begin-r.pos < r.bulk+2 {
			return nil, nil
		}
		r.spans = append(r.spans, span{r.pos, r.pos + r.bulk})
		r.pos += r.bulk + 2
		r.left, r.bulk = r.left-1, -1
	}
	r.args = r.args[:0]
	for _, s := range r.spans {
		r.args = append(r.args, r.buf[r.begin+s.from:r.begin+s.to:r.begin+s.to])
	}
	r.begin, r.pos, r.size = r.begin+r.pos, 0, r.pos
	args := r.args
	if cap(r.spans) > smallBuffer { // the next request takes new memory
		r.spans, r.args = nil, nil
	}
	return args, nil
}

// inline reads a request that somebody typed: words, perhaps in quotes.
func (r *requestReader) inline() (args [][]byte, complete bool, err error) {
	rest := r.buf[r.begin:r.end]
	i := bytes.IndexByte(rest, '\n')
	if i < 0 {
		if len(rest) > maxInline {
			return nil, false, errProtocol("too big inline request")
		}
		return nil, false, nil
	}
	args, err = splitWords(bytes.TrimSuffix(rest[:i], []byte("\r")))
	r.begin, r.size = r.begin+i+1, i+1
	return args, true, err
}

// splitWords cuts a line into words as redis-cli and the server do: between double quotes
// \n \r \t \b \a \xHH and \" mean what they mean in C, between single quotes \' does.
func splitWords(line []byte) ([][]byte, error) {
	var words [][]byte
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return words, nil
		}
		word := []byte{}
		for i < len(line) && !isSpace(line[i]) {
			c := line[i]
			if c == 0 {
				return words, nil // the server takes the line for a C string
			}
			if c != '"' && c != '\'' {
				word = append(word, c)
				i++
				continue
			}
			n, ok := 0, false
			if word, n, ok = appendQuoted(word, line[i+1:], c); !ok {
				return nil, errProtocol("unbalanced quotes in request")
			}
			i += n + 1
			if i < len(line) && !isSpace(line[i]) {
				return nil, errProtocol("unbalanced quotes in request")
			}
		}
		words = append(words, word)
	}
}

// appendQuoted appends what stands before the closing quote, and returns how much it read,
// with the quote.
func appendQuoted(dst, text []byte, quote byte) (_ []byte, n int, ok bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return dst, i + 1, true
		case c == '\\' && quote == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
			dst = append(dst, '\'')
		case c == '\\' && quote == '"' && i+3 < len(text) && text[i+1] == 'x' && isHex(text[i+2]) && isHex(text[i+3]):
			dst = append(dst, fromHex(text[i+2])<<4|fromHex(text[i+3]))
			i += 3
		case c == '\\' && quote == '"' && i+1 < len(text):
			i++
			dst = append(dst, unescaped(text[i]))
		default:
			dst = append(dst, c)
		}
	}
	return dst, len(text), false
}

func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	default:
		return c
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func fromHex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	default:
		return c - '0'
	}
}

// parseInt reads a number as Redis does, strictly: an optional minus, no zero before other
// digits, no negative zero, within 64 bits.
func parseInt(text []byte) (n int64, ok bool) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = 10*u + uint64(c-'0')
	}
	switch {
	case negative && u <= -math.MinInt64:
		return -int64(u), true
	case !negative && u <= math.MaxInt64:
		return int64(u), true
	default:
		return 0, false
	}
}
