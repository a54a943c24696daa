package redis

import (
	"bytes"
	"net"
)

// statestoreCommands returns SS.GET, SS.SET and similar commands. They correspond to the state store's own
// requests, with versions and fencing tokens.
func statestoreCommands() []*command {
	const since = "7.0.0"
	return []*command{
		{name: "ss.get", arity: 2, flags: reads | usesStore | fast, keys: oneKey, run: runSSGet, since: since, args: "key:key", summary: "Get the value and the version of a key"},
		{name: "ss.version", arity: 2, flags: reads | usesStore | fast, keys: oneKey, run: runSSVersion, since: since, args: "key:key", summary: "Get the version of a key"},
		{name: "ss.set", arity: -3, flags: writes | denyOOM | usesStore, keys: oneKey, value: 2, run: runSSSet, since: since, args: "key:key value:string [condition:string] [expiration:string] [token:string]", summary: "Set a key and get its version: NX, NEX, PX ms, FT token"},
		{name: "ss.del", arity: -2, flags: writes | usesStore, keys: oneKey, run: runSSDel, since: since, args: "key:key [token:string]", summary: "Delete a key: FT token"},
		{name: "ss.vdel", arity: -3, flags: writes | usesStore, keys: oneKey, value: 2, run: runSSVDel, since: since, args: "key:key value:string [token:string]", summary: "Delete a key if it has a value: FT token"},
	}
}

func runSSGet(c *conn, args [][]byte) error {
	op, err := c.do(Op{Verb: Get, Key: args[1]})
	if !op.Yes {
		c.unmet = "missing"
		c.nullArray()
		return err
	}
	version := bytes.Clone(op.Entry.Version) // sendPart unlocks the Local
	c.array(2)
	c.part(op.Entry.Value)
	if !c.sendPart() {
		return net.ErrClosed
	}
	c.bulk(version)
	return nil
}

func runSSVersion(c *conn, args [][]byte) error {
	op, err := c.do(Op{Verb: Get, Key: args[1]})
	if !op.Yes {
		c.unmet = "missing"
		c.null()
		return err
	}
	return c.reply(op.Entry.Version)
}

// parseOptions parses the option FT and, if the operation is a SET, also NX, NEX and PX.
func (op *Op) parseOptions(words [][]byte) error {
	isSet := op.Verb == Set
	for i := 0; i < len(words); i++ {
		w := lowerWord(words[i])
		more := i+1 < len(words)
		switch {
		case w == "ft" && more && op.Fence == nil:
			i++
			op.Fence = words[i]
		case w == "nx" && isSet && op.If == Always:
			op.If = IfMissing
		case w == "nex" && isSet && op.If == Always:
			op.If = IfSameOrNew
		case w == "px" && isSet && more && op.PX == 0:
			i++
			var err error
			if op.PX, err = integerArg(words[i]); err != nil {
				return err
			}
			if op.PX <= 0 {
				return wrongExpiry("ss.set")
			}
		default:
			return errSyntax
		}
	}
	return nil
}

func runSSSet(c *conn, args [][]byte) error {
	op := Op{Verb: Set, Key: args[1], Value: args[2], Protocol: true}
	if err := op.parseOptions(args[3:]); err != nil {
		return err
	}
	op, err := c.do(op)
	if err != nil {
		return err
	}
	result := []any{-1, nil}
	if op.Yes {
		result[0] = replyOK
		c.event(classString, "set", op.Key)
	} else {
		c.unmet = "exists"
	}
	if op.Yes && op.PX > 0 {
		c.event(classGeneric, "expire", op.Key)
	}
	if op.Entry.Version != nil {
		result[1] = op.Entry.Version
	}
	return c.reply(result)
}

func runSSDel(c *conn, args [][]byte) error {
	return c.deleteWithToken(Op{Verb: Del, Key: args[1], Protocol: true}, args[2:])
}

func runSSVDel(c *conn, args [][]byte) error {
	return c.deleteWithToken(Op{Verb: VDel, Key: args[1], Value: args[2], Protocol: true}, args[3:])
}

// deleteWithToken carries out a DEL or a VDEL. It replies as the store does: 1 if the key was deleted, 0 if
// there was no key, or -1 if the key had another value.
func (c *conn) deleteWithToken(op Op, options [][]byte) error {
	if err := op.parseOptions(options); err != nil {
		return err
	}
	op, err := c.do(op)
	if err != nil {
		return err
	}
	c.deleted(&op)
	if op.Differs {
		return c.reply(-1)
	}
	return c.reply(op.Yes)
}
