package redis

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"strings"
)

// cursors remember where iterations stand. The cursor of a client is a number, and a
// position is a token of the backend, for an engine the last key that was looked at: it
// stays good however the keys change meanwhile. The same position has the same number, so that
// scans that repeat take no more memory. Server.mu guards them.
type cursors struct {
	seed   maphash.Seed
	tokens map[uint64]string
	oldest []uint64 // in the order in which they were made
	bytes  int
}

// Cursors are forgotten, the oldest first, when there are more.
const (
	maxCursors     = 100_000
	maxCursorBytes = 16 << 20
)

func newCursors() cursors { return cursors{seed: maphash.MakeSeed(), tokens: make(map[uint64]string)} }

// number returns the number of a position, never 0.
func (cs *cursors) number(token []byte) uint64 {
	n := maphash.Bytes(cs.seed, token) >> 1 // what fits a signed number
	for {
		have, taken := cs.tokens[n]
		if taken && have == string(token) {
			return n
		}
		if !taken && n != 0 {
			break
		}
		n = (n + 1) &^ (1 << 63)
	}
	cs.tokens[n] = string(token)
	cs.oldest = append(cs.oldest, n)
	cs.bytes += len(token)
	for len(cs.tokens) > maxCursors || cs.bytes > maxCursorBytes && len(cs.tokens) > 1 {
		cs.bytes -= len(cs.tokens[cs.oldest[0]])
		delete(cs.tokens, cs.oldest[0])
		cs.oldest = cs.oldest[1:]
	}
	return n
}

// scanOptions are what SCAN is asked for.
type scanOptions struct {
	pattern []byte // nil: all
	count   int
	nothing bool // of that type the store has none
}

func (c *conn) scanOptions(words [][]byte) (o scanOptions, ok bool) {
	o.count = 10
	for i := 0; i < len(words); i += 2 {
		more := i+1 < len(words)
		switch {
		case more && equalFold(words[i], "count"):
			n, isInt := c.integerArg(words[i+1])
			if !isInt {
				return o, false
			}
			if n < 1 {
				c.error(textSyntax)
				return o, false
			}
			o.count = int(min(n, 1<<30))
		case more && equalFold(words[i], "match"):
			o.pattern = words[i+1]
		case more && equalFold(words[i], "type"):
			o.nothing = !equalFold(words[i+1], "string")
		default:
			c.error(textSyntax)
			return o, false
		}
	}
	return o, true
}

// mostScanned bounds how long one SCAN may hold up the others.
const mostScanned = 10_000

func runScan(c *conn, args [][]byte) {
	var cursor uint64
	if number := strings.TrimPrefix(string(args[1]), "+"); number != "" { // Redis takes nothing for 0
		var err error
		if cursor, err = strconv.ParseUint(number, 10, 64); err != nil {
			c.error(textCursor)
			return
		}
	}
	o, ok := c.scanOptions(args[2:])
	if !ok {
		return
	}
	var token []byte
	if cursor != 0 {
		c.s.mu.Lock()
		text, known := c.s.cursors.tokens[cursor]
		c.s.mu.Unlock()
		if !known {
			// Redis takes any number, as it can read a position from it.
			c.error(textCursor)
			return
		}
		token = []byte(text)
	}
	prefix := literalPrefix(o.pattern)
	found, next, err := c.s.opts.Backend.Scan(c.s.ctx, &c.who, prefix, token, min(o.count, mostScanned))
	if err != nil {
		c.fail(replyText(err))
		return
	}
	kept := found[:0]
	for _, key := range found {
		if !o.nothing && (o.pattern == nil || match(o.pattern, key)) && c.mayRead(key) {
			kept = append(kept, key)
		}
	}
	number := "0"
	if next != nil {
		c.s.mu.Lock()
		number = strconv.FormatUint(c.s.cursors.number(next), 10)
		c.s.mu.Unlock()
	}
	c.scanned(number, kept)
}

func (c *conn) scanned(cursor string, keys [][]byte) {
	c.array(2)
	c.text(cursor)
	c.array(len(keys))
	for _, key := range keys {
		c.bulk(key)
	}
}

// allKeys calls yield with all keys of a remote store that begin with prefix, until it returns false.
func (c *conn) allKeys(prefix []byte, yield func(key []byte) bool) error {
	const want = 1000
	var token []byte
	for {
		keys, next, err := c.s.opts.Backend.Scan(c.s.ctx, &c.who, prefix, token, want)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if bytes.HasPrefix(key, prefix) && !yield(key) {
				return nil
			}
		}
		if next == nil {
			return nil
		}
		token = next
	}
}
