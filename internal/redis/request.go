package redis

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/sscli/sscli/internal/socket"
)

// Limits on requests, checked before memory is allocated. Redis has the same limits, except maxBulk,
// maxUnread and maxArgs.
const (
	maxInline = 64 << 10  // bytes of a line
	maxBulk   = 255 << 20 // bytes of an argument or a value; MQTT can deliver a value of this size
	maxUnread = 1 << 30   // bytes of a request that is not complete
	maxArgs   = maxUnread / minArg
	minArg    = 6 // bytes of an empty argument in a request

	// Limits for clients that have not logged in, if a login is needed.
	maxArgsUnauthenticated = 10
	maxBulkUnauthenticated = 16 << 10
)

// errRequestTooLong means that a request exceeds maxUnread. The server then closes the connection without
// a reply, as Redis does.
var errRequestTooLong = errors.New("a request is longer than 1 GiB")

// errIncomplete means that more bytes of a request must be read first.
var errIncomplete = errors.New("the request is incomplete")

// A protocolError means that a client sent bytes that are not a valid request. The server replies with the error
// and closes the connection.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// A requestReader splits the bytes from a client into requests. The arguments that it returns are parts
// of its buffer. The buffer grows to at most twice the size of the bytes that were read. The
// lengths that a request announces do not make it grow.
type requestReader struct {
	unauthenticated  bool // the client must log in first
	maxArgs, maxBulk int  // limits for this reader, at most the constants with these names

	buf        []byte
	begin, end int // bounds of the unread bytes in buf
	pos        int // number of parsed bytes of the request at begin
	left       int // number of arguments still to be read
	bulk       int // length of the next argument; -1 = not known yet
	spans      []span
	args       [][]byte
	size       int  // size of the last request in bytes
	taken      bool // a part of buf has another owner: buf must not change
}

// newRequestReader returns a reader of requests. memory, in bytes, limits the number of the arguments and the
// size of an argument that the reader accepts.
func newRequestReader(memory int) requestReader {
	return requestReader{maxArgs: min(maxArgs, memory/(minArg+spanCost+argCost)), maxBulk: min(maxBulk, memory)}
}

// fullness returns the number of unread bytes in the buffer, which follow the last parsed request, and the
// number of the buffer's other bytes.
func (r *requestReader) fullness() (unread, free int) {
	return r.end - r.begin, len(r.buf) - (r.end - r.begin)
}

// A span holds the start and end offsets of an argument in its request.
type span struct{ from, to int }

const (
	smallBuffer = 16 << 10
	largeBuffer = 256 << 10 // larger buffers are not reused
	maxRead     = 256 << 10 // maximum for one system call, because the garbage collector waits for the call
)

// fill reads once from the client.
func (r *requestReader) fill(from io.Reader) error {
	switch {
	case r.end-r.begin > maxUnread:
		return errRequestTooLong
	case r.begin == r.end:
		r.begin, r.end = 0, 0
	case r.end == len(r.buf) && r.begin >= len(r.buf)/2 && !r.taken:
		r.end = copy(r.buf, r.buf[r.begin:r.end])
		r.begin = 0
	}
	if size := r.needs(); size != len(r.buf) || r.taken {
		other := make([]byte, size)
		r.end = socket.Copy(other, r.buf[r.begin:r.end])
		r.begin, r.buf, r.taken = 0, other, false
	}
	n, err := from.Read(r.buf[r.end:min(len(r.buf), r.end+maxRead)])
	r.end += n
	if n > 0 {
		return nil
	}
	return err
}

// needs returns the size of the buffer that the next call to fill reads into.
func (r *requestReader) needs() int {
	switch unread := r.end - r.begin; {
	case r.taken:
		return max(smallBuffer, 2*unread)
	case unread == 0 && (len(r.buf) == 0 || len(r.buf) > largeBuffer):
		return smallBuffer
	case unread > 0 && r.end == len(r.buf) && r.begin < len(r.buf)/2:
		if rest := r.pos + r.bulk - unread; r.left > 0 && r.bulk >= 0 && rest > 0 {
			more := rest + smallBuffer // what the argument needs
			if r.left > 1 {
				more = max(more, unread/4) // otherwise each of many arguments would cause another copy of all
			}
			return unread + min(unread, more)
		}
		return 2 * unread
	}
	return len(r.buf)
}

// next returns the arguments of the next request, valid until fill or reuse is called. It returns
// errIncomplete if fill must be called first.
func (r *requestReader) next() (args [][]byte, err error) {
	for r.begin < r.end {
		switch {
		case r.left > 0:
			return r.arguments()
		case r.buf[r.begin] == '*':
			if err := r.header(); err != nil {
				return nil, err
			}
		default:
			if args, err = r.inline(); err != nil || len(args) > 0 {
				return args, err
			}
		}
	}
	return nil, errIncomplete
}

// keep returns an argument of the last request as memory that stays valid. If the argument takes most of the
// buffer, keep does not copy it: the reader uses another buffer from then on.
func (r *requestReader) keep(arg []byte) []byte {
	if len(arg) >= len(r.buf)/4*3 {
		r.taken = true
		return arg
	}
	kept := make([]byte, len(arg))
	socket.Copy(kept, arg)
	return kept
}

// lacksBytes reports whether the next argument is known to be incomplete.
func (r *requestReader) lacksBytes() bool {
	return r.left > 0 && r.bulk >= 0 && r.end-r.begin-r.pos < r.bulk+2
}

// reuse clears the arguments of earlier requests, so that they do not keep an old buffer in memory. Calls
// of next then reuse r.args.
func (r *requestReader) reuse() {
	clear(r.args)
	if cap(r.args) > smallBuffer {
		r.args = nil
	}
	r.args = r.args[:0]
}

// length parses a line that consists of a type byte, such as $, and a number. ok is false if the number is
// invalid. tooLong is the text of the error for a line of more than maxInline bytes.
func (r *requestReader) length(tooLong string) (n int64, ok bool, err error) {
	rest := r.buf[r.begin+r.pos : r.end]
	for i := 1; i < min(len(rest)-1, 10); i++ { // nearly all numbers are this short
		digit := rest[i] - '0'
		if digit > 9 {
			if rest[i] != '\r' || i == 1 || rest[1] == '0' && i > 2 {
				break
			}
			r.pos += i + 2
			return n, true, nil
		}
		n = 10*n + int64(digit)
	}
	i := bytes.IndexByte(rest, '\r')
	switch {
	case i < 0 && len(rest) > maxInline:
		return 0, false, protocolError(tooLong)
	case i < 0 || i+2 > len(rest):
		return 0, false, errIncomplete
	}
	r.pos += i + 2
	n, ok = parseInt(rest[1:i])
	return n, ok, nil
}

// header parses the number of arguments at the start of a request. It skips a request without arguments.
func (r *requestReader) header() error {
	n, ok, err := r.length("too big mbulk count string")
	switch {
	case err != nil:
		return err
	case !ok || n > int64(r.maxArgs):
		return protocolError("invalid multibulk length")
	case n > maxArgsUnauthenticated && r.unauthenticated:
		return protocolError("unauthenticated multibulk length")
	case n <= 0:
		r.begin, r.pos = r.begin+r.pos, 0
		return nil
	}
	r.left, r.bulk, r.spans = int(n), -1, r.spans[:0]
	return nil
}

func (r *requestReader) arguments() ([][]byte, error) {
	for r.left > 0 {
		if r.bulk < 0 {
			if r.begin+r.pos < r.end && r.buf[r.begin+r.pos] != '$' {
				return nil, protocolError("expected '$', got '" + string(r.buf[r.begin+r.pos:r.begin+r.pos+1]) + "'")
			}
			n, ok, err := r.length("too big bulk count string")
			switch {
			case err != nil:
				return nil, err
			case !ok || n < 0 || n > int64(r.maxBulk):
				return nil, protocolError("invalid bulk length")
			case n > maxBulkUnauthenticated && r.unauthenticated:
				return nil, protocolError("unauthenticated bulk length")
			}
			r.bulk = int(n)
		}
		if r.lacksBytes() {
			return nil, errIncomplete
		}
		r.spans = append(r.spans, span{r.pos, r.pos + r.bulk})
		r.pos += r.bulk + 2
		r.left, r.bulk = r.left-1, -1
	}
	from := len(r.args)
	for _, s := range r.spans {
		r.args = append(r.args, r.buf[r.begin+s.from:r.begin+s.to:r.begin+s.to])
	}
	r.begin, r.pos, r.size = r.begin+r.pos, 0, r.pos
	if cap(r.spans) > smallBuffer {
		r.spans = nil
	}
	return r.args[from:], nil
}

// These errors mean that the client speaks another protocol, errNotRedis without a reply. The server closes the
// connection, because the bytes may hide commands. For example, a malicious page or server can choose bytes that
// a browser or a TLS client then sends to this port.
var errNotRedis = errors.New("the client speaks another protocol")

const errNotText = protocolError("expected text: other bytes must be in quotes")

// inline parses a request that is a line of words, which may be quoted, as typed into telnet.
func (r *requestReader) inline() ([][]byte, error) {
	rest := r.buf[r.begin:r.end]
	i := bytes.IndexByte(rest, '\n')
	switch {
	case rest[0] > '~' || rest[0] != '\n' && isControl(rest[0]):
		return nil, errNotText // already without the rest of the line
	case i < 0 && len(rest) > maxInline:
		return nil, protocolError("too big inline request")
	case i < 0:
		return nil, errIncomplete
	}
	r.begin, r.size = r.begin+i+1, i+1
	words, err := splitWords(bytes.TrimSuffix(rest[:i], []byte("\r")))
	if len(words) == 3 && bytes.HasPrefix(words[2], []byte("HTTP/")) {
		return nil, errNotRedis
	}
	return words, err
}

// isControl reports whether a character is a control character that no line of words has outside quotes.
func isControl(c byte) bool { return c < ' ' && c != '\t' && c != '\r' || c == 0x7f }

// splitWords splits a line into words as Redis does: between double quotes, \n \r \t \b \a \xHH
// and \" are escapes as in C; between single quotes only \' is an escape.
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
			if isControl(c) {
				return nil, errNotText
			}
			if c != '"' && c != '\'' {
				word = append(word, c)
				i++
				continue
			}
			n, ok := 0, false
			word, n, ok = appendQuoted(word, line[i+1:], c)
			i += n + 1
			if !ok || i < len(line) && !isSpace(line[i]) {
				return nil, protocolError("unbalanced quotes in request")
			}
		}
		words = append(words, word)
	}
}

// appendQuoted appends the text up to the closing quote to dst. n is the number of bytes read, including
// the closing quote.
func appendQuoted(dst, text []byte, quote byte) (_ []byte, n int, ok bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return dst, i + 1, true
		case c == '\\' && quote == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
			dst = append(dst, '\'')
		case c == '\\' && quote == '"' && i+1 < len(text):
			if b, err := hex.DecodeString(string(text[i+2 : min(i+4, len(text))])); text[i+1] == 'x' && err == nil && len(b) == 1 {
				dst = append(dst, b...)
				i += 3
				continue
			}
			i++
			c = text[i]
			if n := strings.IndexByte("nrtba", c); n >= 0 {
				c = "\n\r\t\b\a"[n]
			}
			dst = append(dst, c)
		default:
			dst = append(dst, c)
		}
	}
	return dst, len(text), false
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
