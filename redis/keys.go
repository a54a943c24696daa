package redis

import (
	"bytes"
	"math/rand/v2"
)

func keyCommands() []*command {
	const (
		write = writes | usesStore
		read  = reads | usesStore
	)
	return []*command{
		{name: "del", arity: -2, flags: write, first: 1, last: -1, step: 1, run: runDel, remote: remoteDel,
			group: "generic", since: "1.0.0", args: "key:key...", summary: "Delete a key"},
		{name: "unlink", arity: -2, flags: write | fast, first: 1, last: -1, step: 1, run: runDel, remote: remoteDel,
			group: "generic", since: "4.0.0", args: "key:key...", summary: "Delete a key, as DEL does"},
		{name: "delifeq", arity: 3, flags: write | fast, first: 1, last: 1, step: 1, run: runDelIfEq, remote: remoteDelIfEq,
			group: "string", since: "9.0.0", args: "key:key value:string", summary: "Delete a key if it has a value"},
		{name: "delex", arity: -2, flags: write | fast, first: 1, last: 1, step: 1, run: runDelEx, remote: remoteDelEx,
			group: "string", since: "8.4.0", args: "key:key [condition:string]", summary: "Delete a key if it has a value: DELEX key IFEQ value"},
		{name: "exists", arity: -2, flags: read | fast, first: 1, last: -1, step: 1, run: runExists, remote: remoteExists,
			group: "generic", since: "1.0.0", args: "key:key...", summary: "Determine if a key exists"},
		{name: "touch", arity: -2, flags: read | fast, first: 1, last: -1, step: 1, run: runExists, remote: remoteExists,
			group: "generic", since: "3.2.1", args: "key:key...", summary: "Count the keys that exist"},
		{name: "type", arity: 2, flags: read | fast, first: 1, last: 1, step: 1, run: runType,
			group: "generic", since: "1.0.0", args: "key:key", summary: "Determine the type stored at key"},
		{name: "rename", arity: 3, flags: write | inOneStep, first: 1, last: 2, step: 1, run: runRename,
			group: "generic", since: "1.0.0", args: "key:key newkey:key", summary: "Rename a key"},
		{name: "renamenx", arity: 3, flags: write | fast | inOneStep, first: 1, last: 2, step: 1, run: runRenameNX,
			group: "generic", since: "1.0.0", args: "key:key newkey:key", summary: "Rename a key, only if the new key does not exist"},
		{name: "copy", arity: -3, flags: write | denyOOM | inOneStep, first: 1, last: 2, step: 1, run: runCopy,
			group: "generic", since: "6.2.0", args: "source:key destination:key [replace:string]", summary: "Copy a key"},
		{name: "move", arity: 3, flags: write | fast, first: 1, last: 1, step: 1, run: runMove,
			group: "generic", since: "1.0.0", args: "key:key db:integer", summary: "Refused: there is one database"},
		{name: "swapdb", arity: 3, flags: write | fast, run: runSwapDB,
			group: "server", since: "4.0.0", args: "index1:integer index2:integer", summary: "Swap database 0 with itself: there is one"},
		{name: "keys", arity: 2, flags: read, run: runKeys, remote: remoteKeys,
			group: "generic", since: "1.0.0", args: "pattern:pattern", summary: "Find all keys matching the given pattern"},
		{name: "scan", arity: -2, flags: read, run: runScan,
			group: "generic", since: "2.8.0", args: "cursor:integer [pattern:pattern] [count:integer] [type:string]", summary: "Incrementally iterate the keys space"},
		{name: "dbsize", arity: 1, flags: read | fast, run: runDBSize, remote: remoteDBSize,
			group: "server", since: "1.0.0", summary: "Return the number of keys in the selected database"},
		{name: "randomkey", arity: 1, flags: read, run: runRandomKey, remote: remoteRandomKey,
			group: "generic", since: "1.0.0", summary: "Return a random key from the keyspace"},
		{name: "flushdb", arity: -1, flags: write | inOneStep, run: runFlush,
			group: "server", since: "1.0.0", args: "[flush_type:string]", summary: "Remove all keys from the current database"},
		{name: "flushall", arity: -1, flags: write | inOneStep, run: runFlush,
			group: "server", since: "1.0.0", args: "[flush_type:string]", summary: "Remove all keys from all databases"},
	}
}

// delete removes a key if it is there, and tells; ok is false after an error reply.
func (c *conn) delete(key []byte) (deleted, ok bool) {
	if _, found := c.s.engine.Lookup(key); !found {
		return false, true
	}
	if !c.remove(key) {
		return false, false
	}
	c.event(generic, "del", key)
	return true, true
}

func runDel(c *conn, args [][]byte) {
	n := int64(0)
	for _, key := range args[1:] {
		deleted, ok := c.delete(key)
		if !ok {
			return
		}
		if deleted {
			n++
		}
	}
	c.integer(n)
}

func runDelIfEq(c *conn, args [][]byte) { c.deleteIfEqual(args[1], args[2]) }

func (c *conn) deleteIfEqual(key, value []byte) {
	if e, found := c.s.engine.Lookup(key); !found || !bytes.Equal(e.Value, value) {
		c.integer(0)
		return
	}
	if deleted, ok := c.delete(key); ok {
		c.yes(deleted)
	}
}

// delExValue is the value that DELEX wants. The other conditions of Redis 8.4 are about what a
// string is not compared with here.
func (c *conn) delExValue(args [][]byte) (value []byte, ok bool) {
	if len(args) != 4 || !equalFold(args[2], "ifeq") {
		c.error(textSyntax)
		return nil, false
	}
	return args[3], true
}

func runDelEx(c *conn, args [][]byte) {
	if len(args) == 2 {
		runDel(c, args)
		return
	}
	if value, ok := c.delExValue(args); ok {
		c.deleteIfEqual(args[1], value)
	}
}

func runExists(c *conn, args [][]byte) {
	n := int64(0)
	for _, key := range args[1:] {
		if _, found, _ := c.read(key); found {
			n++
		}
	}
	c.integer(n)
}

func runType(c *conn, args [][]byte) {
	_, found, ok := c.read(args[1])
	switch {
	case !ok:
	case found:
		c.status("string")
	default:
		c.status("none")
	}
}

func runRename(c *conn, args [][]byte)   { c.rename(args[1], args[2], false) }
func runRenameNX(c *conn, args [][]byte) { c.rename(args[1], args[2], true) }

func (c *conn) rename(from, to []byte, nx bool) {
	done := func() {
		if nx {
			c.integer(1)
			return
		}
		c.ok()
	}
	e, found := c.s.engine.Lookup(from)
	if !found {
		c.error(textNoSuchKey)
		return
	}
	if bytes.Equal(from, to) {
		if nx {
			c.integer(0)
			return
		}
		c.ok()
		return
	}
	_, taken := c.s.engine.Lookup(to)
	if taken && nx {
		c.integer(0)
		return
	}
	e.Value = bytes.Clone(e.Value)
	if !c.remove(from) || !c.putMade(e.Made, to, e.Value, e.Expires, true) {
		return
	}
	c.event(generic, "rename_from", from)
	c.event(generic, "rename_to", to)
	done()
}

func runCopy(c *conn, args [][]byte) {
	replace := false
	for i := 3; i < len(args); i++ {
		switch {
		case equalFold(args[i], "replace"):
			replace = true
		case equalFold(args[i], "db") && i+1 < len(args):
			i++
			db, ok := c.databaseArg(args[i])
			if !ok {
				return
			}
			if db != 0 {
				c.error(textDatabase)
				return
			}
		default:
			c.error(textSyntax)
			return
		}
	}
	from, to := args[1], args[2]
	if bytes.Equal(from, to) {
		c.error(textSameObjects)
		return
	}
	e, found, _ := c.read(from)
	if !found {
		c.integer(0)
		return
	}
	if _, taken := c.s.engine.Lookup(to); taken && !replace {
		c.integer(0)
		return
	}
	if e.Made == Whole {
		e.Made = Copied
	}
	if c.putMade(e.Made, to, e.Value, e.Expires, true) {
		c.event(generic, "copy_to", to)
		c.integer(1)
	}
}

// runMove refuses every database, as the only one is where the key is.
func runMove(c *conn, args [][]byte) {
	switch db, ok := c.databaseArg(args[2]); {
	case !ok:
	case db == 0:
		c.error(textSameObjects)
	default:
		c.error(textDatabase)
	}
}

func runSwapDB(c *conn, args [][]byte) {
	first, ok1 := parseInt(args[1])
	second, ok2 := parseInt(args[2])
	switch {
	case !ok1:
		c.error("invalid first DB index")
	case !ok2:
		c.error("invalid second DB index")
	case first != 0 || second != 0:
		c.error(textDatabase)
	default:
		c.ok()
	}
}

// mayRead tells whether a key may be shown to the client.
func (c *conn) mayRead(key []byte) bool {
	e := c.s.engine
	return e == nil || !e.Restricted() || e.Allowed(&c.who, key, false)
}

func runKeys(c *conn, args [][]byte) {
	prefix := literalPrefix(args[1])
	begin, n := len(c.w), 0
	for key := range c.s.engine.Keys(prefix) {
		if !bytes.HasPrefix(key, prefix) {
			break
		}
		if match(args[1], key) && c.mayRead(key) {
			c.bulk(key)
			n++
		}
	}
	c.insertArray(begin, n)
}

// insertArray begins an array before the items, of which there were n.
func (c *conn) insertArray(at, n int) {
	header := appendNumber(nil, '*', int64(n))
	c.w = append(c.w, header...)
	copy(c.w[at+len(header):], c.w[at:])
	copy(c.w[at:], header)
}

func runDBSize(c *conn, _ [][]byte) {
	e := c.s.engine
	if !e.Restricted() {
		c.integer(int64(e.Len()))
		return
	}
	n := int64(0)
	for key := range e.Keys(nil) {
		if c.mayRead(key) {
			n++
		}
	}
	c.integer(n)
}

// manyTries is how often RANDOMKEY looks for a key that the client may see.
const manyTries = 100

func runRandomKey(c *conn, _ [][]byte) {
	e := c.s.engine
	for range manyTries {
		if e.Len() == 0 {
			break
		}
		if key := e.KeyAt(rand.IntN(e.Len())); c.mayRead(key) {
			c.bulk(key)
			return
		}
	}
	c.null()
}

func runFlush(c *conn, args [][]byte) {
	if !flushArg(args[1:]) {
		c.error(textSyntax)
		return
	}
	var keys [][]byte
	for key := range c.s.engine.Keys(nil) {
		if !c.s.engine.Allowed(&c.who, key, true) {
			c.error("not authorized")
			return
		}
		if err := c.s.engine.Fenced(key); err != nil {
			c.fail(replyText(err))
			return
		}
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		if !c.remove(key) {
			return
		}
	}
	c.ok()
}
