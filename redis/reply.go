package redis

import "strconv"

// The replies of commands. They are appended to what the connection sends next.

func (c *conn) status(text string) { c.w = append(append(append(c.w, '+'), text...), "\r\n"...) }

func (c *conn) ok() { c.w = append(c.w, "+OK\r\n"...) }

// error replies with a text without its code.
func (c *conn) error(text string) { c.fail("ERR " + text) }

// fail replies with an error in place of all that the command has replied so far. Line ends
// in it would end the reply.
func (c *conn) fail(text string) {
	if len(c.w) > c.mark {
		c.w = c.w[:c.mark]
	}
	c.failed = true
	c.w = append(c.w, '-')
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

func (c *conn) yes(b bool) {
	if b {
		c.integer(1)
		return
	}
	c.integer(0)
}

func (c *conn) bulk(b []byte) { c.w = appendBulk(c.w, b) }

func (c *conn) text(s string) { c.w = appendBulk(c.w, s) }

// null is the nil of a string.
func (c *conn) null() {
	if c.resp3 {
		c.w = append(c.w, "_\r\n"...)
		return
	}
	c.w = append(c.w, "$-1\r\n"...)
}

// nullArray is the nil of an array.
func (c *conn) nullArray() {
	if c.resp3 {
		c.w = append(c.w, "_\r\n"...)
		return
	}
	c.w = append(c.w, "*-1\r\n"...)
}

func (c *conn) array(n int) { c.w = appendNumber(c.w, '*', int64(n)) }

// mapping begins n pairs.
func (c *conn) mapping(n int) {
	if c.resp3 {
		c.w = appendNumber(c.w, '%', int64(n))
		return
	}
	c.array(2 * n)
}

// set begins a set of n.
func (c *conn) set(n int) {
	if c.resp3 {
		c.w = appendNumber(c.w, '~', int64(n))
		return
	}
	c.array(n)
}

// verbatim is text for people.
func (c *conn) verbatim(s string) {
	if !c.resp3 {
		c.text(s)
		return
	}
	c.w = appendNumber(c.w, '=', int64(len(s)+4))
	c.w = append(append(append(c.w, "txt:"...), s...), "\r\n"...)
}

func appendNumber(dst []byte, kind byte, n int64) []byte {
	return append(strconv.AppendInt(append(dst, kind), n, 10), "\r\n"...)
}

func appendBulk[T []byte | string](dst []byte, b T) []byte {
	return append(append(appendNumber(dst, '$', int64(len(b))), b...), "\r\n"...)
}
