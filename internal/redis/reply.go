package redis

import (
	"strconv"
)

// The methods in this file append replies to c.w.

func (c *conn) status(text string) { c.w = append(append(append(c.w, '+'), text...), "\r\n"...) }

func (c *conn) ok() { c.w = append(c.w, "+OK\r\n"...) }

// fail replies with an error, which replaces the replies of the running command. Line ends become
// spaces, because they would end the reply.
func (c *conn) fail(err error) {
	text := "ERR " + err.Error()
	if e, ok := err.(*Error); ok {
		text = e.Error()
	}
	c.w = append(c.w[:min(c.mark, len(c.w))], '-')
	for i := range len(text) {
		if b := text[i]; b == '\r' || b == '\n' {
			c.w = append(c.w, ' ')
		} else {
			c.w = append(c.w, b)
		}
	}
	c.w = append(c.w, "\r\n"...)
}

func (c *conn) integer(n int64) { c.w = appendNumber(c.w, ':', n) }

// bool replies with the integer 1 for true, or 0 for false.
func (c *conn) bool(b bool) {
	if b {
		c.integer(1)
		return
	}
	c.integer(0)
}

func (c *conn) bulk(b []byte) {
	if c.executing && !c.dropped && len(c.w)+len(b) > maxReplies {
		c.dropTransaction() // before b is copied: other clients wait
	}
	if c.dropped || len(b) >= fullOutput && !c.affords(len(b)) {
		return
	}
	c.w = appendBulk(c.w, b)
}

func (c *conn) text(s string) { c.w = appendBulk(c.w, s) }

// value replies with the value that a GET found, or null.
func (c *conn) value(op *Op) {
	if op.Yes {
		c.part(op.Entry.Value)
		return
	}
	c.null()
}

// part replies with a value that was found, or a part of it. It must be the end of the reply, or be followed by a
// call to sendPart, because a large value of a Local is sent later, without the lock.
func (c *conn) part(value []byte) {
	if len(value) < LargeValue || !c.locked || c.executing {
		c.bulk(value)
		return
	}
	c.w = appendNumber(c.w, '$', int64(len(value)))
	if !c.muted {
		c.large = value
	}
}

// null replies with null, in RESP2 as a null bulk string.
func (c *conn) null() { c.resp("_\r\n", "$-1\r\n") }

// nullArray replies with null, in RESP2 as a null array.
func (c *conn) nullArray() { c.resp("_\r\n", "*-1\r\n") }

// resp replies with resp3 or resp2, depending on the client's version of RESP.
func (c *conn) resp(resp3, resp2 string) {
	if c.resp3 {
		c.w = append(c.w, resp3...)
		return
	}
	c.w = append(c.w, resp2...)
}

// array begins an array of n replies.
func (c *conn) array(n int) { c.aggregate('*', n) }

// aggregate begins an aggregate of n elements. kind is its RESP3 type byte, such as % for a map of n
// pairs; RESP2 clients get an array instead.
func (c *conn) aggregate(kind byte, n int) {
	if !c.resp3 {
		if kind == '%' {
			n *= 2
		}
		kind = '*'
	}
	c.w = appendNumber(c.w, kind, int64(n))
}

// verbatim replies with a verbatim string in RESP3, or with a bulk string in RESP2.
func (c *conn) verbatim(s string) {
	if !c.resp3 {
		c.text(s)
		return
	}
	c.w = appendNumber(c.w, '=', int64(len(s)+4))
	c.w = append(append(append(c.w, "txt:"...), s...), "\r\n"...)
}

// Types that [conn.reply] accepts, in addition to strings, bytes, integers, booleans, slices and nil.
type (
	status string // a simple string
	set    []any
	pairs  []any // a map: keys and values alternate
)

const replyOK = status("OK")

// reply replies with a value, which may contain other values. It always returns nil, so that the function
// of a command can return the result of reply.
func (c *conn) reply(v any) error {
	c.append(v)
	return nil
}

func (c *conn) append(v any) {
	switch v := v.(type) {
	case nil:
		c.null()
	case string:
		c.text(v)
	case []byte:
		c.bulk(v)
	case status:
		c.status(string(v))
	case bool:
		c.bool(v)
	case int:
		c.integer(int64(v))
	case int64:
		c.integer(v)
	case []string:
		c.array(len(v))
		for _, s := range v {
			c.text(s)
		}
	case []any:
		c.list('*', len(v), v)
	case set:
		c.list('~', len(v), v)
	case pairs:
		c.list('%', len(v)/2, v)
	}
}

func (c *conn) list(kind byte, n int, items []any) {
	c.aggregate(kind, n)
	for _, item := range items {
		c.append(item)
	}
}

// insertArray inserts the header of an array into c.w. The n items of the array are already in c.w[at:].
func (c *conn) insertArray(at, n int) {
	header := appendNumber(nil, '*', int64(n))
	c.w = append(c.w, header...)
	copy(c.w[at+len(header):], c.w[at:])
	copy(c.w[at:], header)
}

func appendNumber(dst []byte, kind byte, n int64) []byte {
	return append(strconv.AppendInt(append(dst, kind), n, 10), "\r\n"...)
}

func appendBulk[T []byte | string](dst []byte, b T) []byte {
	return append(append(appendNumber(dst, '$', int64(len(b))), b...), "\r\n"...)
}
