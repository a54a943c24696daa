package redis

import "bytes"

// storeCommands are those of the state store's own protocol, with versions and fencing
// tokens.
func storeCommands() []*command {
	const since = "7.0.0"
	return []*command{
		{name: "ss.get", arity: 2, flags: reads | usesStore | fast, first: 1, last: 1, step: 1, run: runSSGet,
			group: "statestore", since: since, args: "key:key", summary: "Get the value and the version of a key"},
		{name: "ss.version", arity: 2, flags: reads | usesStore | fast, first: 1, last: 1, step: 1, run: runSSVersion,
			group: "statestore", since: since, args: "key:key", summary: "Get the version of a key"},
		{name: "ss.set", arity: -3, flags: writes | denyOOM | usesStore, first: 1, last: 1, step: 1, run: runSSSet,
			group: "statestore", since: since, args: "key:key value:string [condition:string] [expiration:string] [token:string]", summary: "Set a key and get its version: NX, NEX, PX ms, FT token"},
		{name: "ss.del", arity: -2, flags: writes | usesStore, first: 1, last: 1, step: 1, run: runSSDel,
			group: "statestore", since: since, args: "key:key [token:string]", summary: "Delete a key: FT token"},
		{name: "ss.vdel", arity: -3, flags: writes | usesStore, first: 1, last: 1, step: 1, run: runSSVDel,
			group: "statestore", since: since, args: "key:key value:string [token:string]", summary: "Delete a key if it has a value: FT token"},
	}
}

func runSSGet(c *conn, args [][]byte) {
	op, ok := c.one(Op{Verb: Get, Key: args[1]})
	switch {
	case !ok:
	case !op.Yes:
		c.nullArray()
	default:
		c.array(2)
		c.bulk(op.Found)
		c.bulk(op.Version)
	}
}

func runSSVersion(c *conn, args [][]byte) {
	op, ok := c.one(Op{Verb: Get, Key: args[1]})
	switch {
	case !ok:
	case !op.Yes:
		c.null()
	default:
		c.bulk(op.Version)
	}
}

// storeOptions reads NX, NEX, PX and FT; set says that all of them may be given. ok is false
// after an error reply.
func (c *conn) storeOptions(op *Op, words [][]byte, set bool) (ok bool) {
	for i := 0; i < len(words); i++ {
		w := string(bytes.ToLower(words[i]))
		more := i+1 < len(words)
		switch {
		case w == "ft" && more && op.Fence == nil:
			i++
			op.Fence = words[i]
		case w == "nx" && set && op.If == Always:
			op.If = IfMissing
		case w == "nex" && set && op.If == Always:
			op.If = IfSameOrNew
		case w == "px" && set && more && op.PX == 0:
			i++
			if op.PX, ok = c.integerArg(words[i]); !ok {
				return false
			}
			if op.PX <= 0 {
				c.error("invalid expire time in 'ss.set' command")
				return false
			}
		default:
			c.error(textSyntax)
			return false
		}
	}
	return true
}

func runSSSet(c *conn, args [][]byte) {
	op := Op{Verb: Set, Key: args[1], Value: args[2]}
	if !c.storeOptions(&op, args[3:], true) {
		return
	}
	done, ok := c.one(op)
	if !ok {
		return
	}
	c.array(2)
	if done.Yes {
		c.status("OK")
	} else {
		c.integer(-1)
	}
	if done.Version == nil {
		c.null()
		return
	}
	c.bulk(done.Version)
}

func runSSDel(c *conn, args [][]byte) {
	op := Op{Verb: Del, Key: args[1]}
	if c.storeOptions(&op, args[2:], false) {
		c.deletedByStore(op)
	}
}

func runSSVDel(c *conn, args [][]byte) {
	op := Op{Verb: VDel, Key: args[1], Value: args[2]}
	if c.storeOptions(&op, args[3:], false) {
		c.deletedByStore(op)
	}
}

// deletedByStore replies as the store does: 1, 0 if there was no key, -1 if it had another
// value.
func (c *conn) deletedByStore(op Op) {
	switch done, ok := c.one(op); {
	case !ok:
	case done.Differs:
		c.integer(-1)
	default:
		c.yes(done.Yes)
	}
}
