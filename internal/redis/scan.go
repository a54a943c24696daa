package redis

import (
	"bytes"
	"hash/maphash"
	"math/rand/v2"
	"net"
	"strconv"
)

// scanCommands returns the commands that concern all keys or the whole database.
func scanCommands() []*command {
	const (
		write = writes | usesStore
		read  = reads | usesStore
	)
	return []*command{
		{name: "keys", arity: 2, flags: read | costly, run: runKeys, group: "generic", since: "1.0.0", args: "pattern:pattern", summary: "Find all keys matching the given pattern"},
		{name: "scan", arity: -2, flags: read | costly, run: runScan, group: "generic", since: "2.8.0", args: "cursor:integer [pattern:pattern] [count:integer] [type:string]", summary: "Incrementally iterate the keys space"},
		{name: "randomkey", arity: 1, flags: read | costly, run: runRandomKey, group: "generic", since: "1.0.0", summary: "Return a random key from the keyspace"},
		{name: "dbsize", arity: 1, flags: read | fast, run: runDBSize, since: "1.0.0", summary: "Return the number of keys in the selected database"},
		{name: "swapdb", arity: 3, flags: write | fast, run: runSwapDB, since: "4.0.0", args: "index1:integer index2:integer", summary: "Swap database 0 with itself: there is one"},
		{name: "flushdb", arity: -1, flags: write | costly | needsLocal | needsAll, run: runFlush, since: "1.0.0", args: "[flush_type:string]", summary: "Remove all keys from the current database"},
		{name: "flushall", arity: -1, flags: write | costly | needsLocal | needsAll, run: runFlush, since: "1.0.0", args: "[flush_type:string]", summary: "Remove all keys from all databases"},
	}
}

// cursors holds the positions of unfinished iterations. A client gets a number as its cursor; the
// position is a token of the backend, which stays valid when keys change. Equal positions have the
// same number, so that repeated scans take no more memory. Server.mu guards cursors.
type cursors struct {
	seed   maphash.Seed
	tokens map[uint64]string
	oldest []uint64 // numbers, in the order of their first use
	bytes  int      // size of all tokens
}

// Beyond these limits, the oldest cursors become invalid.
const (
	maxCursors     = 100_000
	maxCursorBytes = 16 << 20
)

func newCursors() cursors { return cursors{seed: maphash.MakeSeed(), tokens: make(map[uint64]string)} }

// number returns the number for a position. It never returns 0, which clients use for the start.
func (cs *cursors) number(token []byte) uint64 {
	n := maphash.Bytes(cs.seed, token) >> 1 // so that n fits into a signed integer
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

// token returns the position for a client's cursor. For the cursor 0, the start, it returns nil.
func (s *Server) token(cursor []byte) ([]byte, error) {
	errCursor := &Error{Text: "invalid cursor"}
	const maxDigits = 64 // more than a number needs; zeros may precede it
	digits := bytes.TrimPrefix(cursor, []byte("+"))
	switch {
	case len(digits) == 0:
		return nil, nil // as in Redis, an empty cursor is 0
	case len(digits) > maxDigits:
		return nil, errCursor
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return nil, errCursor
	}
	if n == 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token, known := s.cursors.tokens[n]
	if !known { // Redis accepts any number, because its cursors contain the position
		return nil, errCursor
	}
	return []byte(token), nil
}

// scanOptions are the arguments of SCAN after the cursor.
type scanOptions struct {
	pattern *pattern // nil = all keys
	count   int
	nothing bool // TYPE is not string, so no key matches
}

func parseScanOptions(words [][]byte) (scanOptions, error) {
	o := scanOptions{count: 10}
	for i := 0; i < len(words); i += 2 {
		if i+1 == len(words) {
			return o, errSyntax
		}
		switch value := words[i+1]; lowerWord(words[i]) {
		case "count":
			n, err := integerArg(value)
			if err != nil {
				return o, err
			}
			if n < 1 {
				return o, errSyntax
			}
			o.count = int(min(n, maxScanned))
		case "match":
			if err := patternArgs(value); err != nil {
				return o, err
			}
			o.pattern = parsePattern(value)
		case "type":
			o.nothing = !equalFold(value, "string")
		default:
			return o, errSyntax
		}
	}
	return o, nil
}

// maxScanned is the maximum COUNT of a SCAN, because other clients wait while keys are examined.
const maxScanned = 10_000

func runScan(c *conn, args [][]byte) error {
	token, err := c.s.token(args[1])
	if err != nil {
		return err
	}
	o, err := parseScanOptions(args[2:])
	if err != nil {
		return err
	}
	var prefix []byte
	if o.pattern != nil {
		prefix = o.pattern.Prefix()
	}
	if err := c.look(o.count); err != nil {
		return err
	}
	found, next, err := c.s.opts.Backend.Scan(c.s.ctx, &c.who, prefix, token, o.count)
	if err != nil {
		return err
	}
	cursor := "0"
	if next != nil {
		c.s.mu.Lock()
		cursor = strconv.FormatUint(c.s.cursors.number(next), 10)
		c.s.mu.Unlock()
	}
	c.array(2)
	c.text(cursor)
	begin, n := len(c.w), 0
	for _, key := range found {
		if err := c.lookFor(o.pattern, key); err != nil {
			return err
		}
		if !o.nothing && (o.pattern == nil || o.pattern.match(key)) {
			c.bulk(key)
			n++
		}
	}
	c.insertArray(begin, n)
	return nil
}

// allKeys calls yield with each key that begins with prefix and that the client may read. Between
// pages of keys, other clients may use the Local, except in a transaction.
func (c *conn) allKeys(prefix []byte, yield func(key []byte) error) error {
	return c.eachPage(prefix, 1000, func(keys [][]byte) (bool, error) {
		for _, key := range keys {
			if err := yield(key); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// eachPage is like allKeys, but passes the keys in pages of up to want keys, until yield returns false.
func (c *conn) eachPage(prefix []byte, want int, yield func(keys [][]byte) (more bool, err error)) error {
	for token := []byte(nil); ; {
		if err := c.look(want); err != nil {
			return err
		}
		keys, next, err := c.s.opts.Backend.Scan(c.s.ctx, &c.who, prefix, token, want)
		if err != nil {
			return err
		}
		if more, err := yield(keys); err != nil || !more || next == nil {
			return err
		}
		token = bytes.Clone(next)
		if !c.executing {
			c.yield()
			c.lock()
		}
		if c.out.closed.Load() {
			return net.ErrClosed
		}
	}
}

var errManyKeys = &Error{Text: "the reply would be too large; use SCAN"}

func runKeys(c *conn, args [][]byte) error {
	if err := patternArgs(args[1]); err != nil {
		return err
	}
	p := parsePattern(args[1])
	var found []byte // matching keys, encoded as bulk strings
	n := 0
	err := c.allKeys(p.Prefix(), func(key []byte) error {
		if err := c.lookFor(p, key); err != nil {
			return err
		}
		if !p.match(key) {
			return nil
		}
		found = appendBulk(found, key)
		n++
		if len(found) > maxPending {
			return errManyKeys
		}
		if c.found != cap(found) {
			if c.found = cap(found); !c.chargeInput(len(c.in.buf)) {
				return errMemory
			}
		}
		return nil
	})
	c.found = 0
	c.array(n)
	c.w = append(c.w, found...)
	return err
}

func runDBSize(c *conn, _ [][]byte) error {
	if local := c.s.local; local != nil {
		if stats := local.Stats(); !stats.Hidden {
			return c.reply(stats.Keys)
		}
	}
	n := int64(0)
	err := c.allKeys(nil, func([]byte) error { n++; return nil })
	c.integer(n)
	return err
}

// runRandomKey tries random keys of a Local. If the client may read none of them, and for a remote store,
// runRandomKey chooses among the first keys that the client may read.
func runRandomKey(c *conn, _ [][]byte) error {
	const sample = 100 // number of tries with a Local, and of keys on a page
	if local := c.s.local; local != nil {
		for range sample {
			n := local.Stats().Keys
			if n == 0 {
				break
			}
			if key := local.KeyAt(rand.IntN(n)); local.MayRead(&c.who, key) {
				return c.reply(key)
			}
		}
	}
	found := false
	err := c.eachPage(nil, sample, func(keys [][]byte) (bool, error) {
		if len(keys) == 0 {
			return true, nil
		}
		found = true
		return false, c.reply(keys[rand.IntN(len(keys))])
	})
	if err == nil && !found {
		return c.reply(nil)
	}
	return err
}

func runSwapDB(c *conn, args [][]byte) error {
	first, ok1 := parseInt(args[1])
	second, ok2 := parseInt(args[2])
	switch {
	case !ok1:
		return &Error{Text: "invalid first DB index"}
	case !ok2:
		return &Error{Text: "invalid second DB index"}
	case first != 0 || second != 0:
		return errDatabase
	}
	return c.reply(replyOK)
}

// isFlushMode reports whether the arguments of a FLUSH command are valid: none, SYNC or ASYNC.
func isFlushMode(args [][]byte) bool {
	return len(args) == 0 || len(args) == 1 && (equalFold(args[0], "sync") || equalFold(args[0], "async"))
}

// letOthersIn unlocks the Local and the line for a moment if this connection has kept them locked for longer than
// Turns.Hold. A transaction keeps them locked.
func (c *conn) letOthersIn() {
	if c.executing || !c.holdsLong() {
		return
	}
	locked := c.locked
	c.yield()
	c.enterLine()
	if locked {
		c.lock()
	}
}

// runFlush deletes all keys. It first checks that the client is allowed to delete each key, and deletes
// nothing if not. Other clients may use the store between the checks and deletions, except during a
// transaction.
func runFlush(c *conn, args [][]byte) error {
	if !isFlushMode(args[1:]) {
		return errSyntax
	}
	local := c.s.local
	if err := c.look(local.Stats().Keys); err != nil {
		return err
	}
	if c.executing {
		all := func(yield func([]byte) bool) {
			for i := 0; i < local.Stats().Keys && yield(local.KeyAt(i)); i++ {
			}
		}
		if err := c.maySend(c.s.eventSteps("del", all)); err != nil {
			return err
		}
	}
	for i := 0; i < local.Stats().Keys; i++ {
		c.letOthersIn()
		if i >= local.Stats().Keys {
			break
		}
		if err := local.Check(&c.who, []Op{{Verb: Del, Key: local.KeyAt(i)}}); err != nil {
			return err
		}
	}
	for local.Stats().Keys > 0 {
		if c.letOthersIn(); local.Stats().Keys == 0 {
			break
		}
		if _, err := c.do(Op{Verb: Del, Key: bytes.Clone(local.KeyAt(0))}); err != nil {
			return err
		}
	}
	return c.reply(replyOK)
}
