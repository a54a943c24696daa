package redis

import (
	"bytes"
	"math"
)

func keysCommands() []*command {
	const (
		write = writes | usesStore
		read  = reads | usesStore
	)
	return []*command{
		{name: "del", arity: -2, flags: write, keys: allKeys, run: runDel, since: "1.0.0", args: "key:key...", summary: "Delete a key"},
		{name: "unlink", arity: -2, flags: write | fast, keys: allKeys, run: runDel, since: "4.0.0", args: "key:key...", summary: "Delete a key, as DEL does"},
		{name: "delifeq", arity: 3, flags: write | tells | fast, keys: oneKey, value: 2, run: runDelIfEq, group: "string", since: "9.0.0", args: "key:key value:string", summary: "Delete a key if it has a value"},
		{name: "delex", arity: -2, flags: write | fast, keys: oneKey, telling: "if", run: runDelEx, group: "string", since: "8.4.0", args: "key:key [condition:string]", summary: "Delete a key if it has a value: DELEX key IFEQ value"},
		{name: "exists", arity: -2, flags: read | fast, keys: allKeys, run: runExists, since: "1.0.0", args: "key:key...", summary: "Determine if a key exists"},
		{name: "touch", arity: -2, flags: read | fast, keys: allKeys, run: runExists, since: "3.2.1", args: "key:key...", summary: "Count the keys that exist"},
		{name: "type", arity: 2, flags: read | fast, keys: oneKey, run: runType, since: "1.0.0", args: "key:key", summary: "Determine the type stored at key"},
		{name: "rename", arity: 3, flags: write | tells | needsLocal, keys: twoKeys, run: runRename, since: "1.0.0", args: "key:key newkey:key", summary: "Rename a key"},
		{name: "renamenx", arity: 3, flags: write | tells | fast | needsLocal, keys: twoKeys, run: runRename, since: "1.0.0", args: "key:key newkey:key", summary: "Rename a key, only if the new key does not exist"},
		{name: "copy", arity: -3, flags: write | denyOOM | needsLocal, keys: twoKeys, run: runCopy, since: "6.2.0", args: "source:key destination:key [replace:string]", summary: "Copy a key"},
		{name: "move", arity: 3, flags: write | fast, keys: oneKey, run: runMove, since: "1.0.0", args: "key:key db:integer", summary: "Refused: there is one database"},
	}
}

// delete deletes a key and sends the event "del".
func (c *conn) delete(key []byte) error {
	op, err := c.do(Op{Verb: Del, Key: key})
	c.sendDel(&op)
	return err
}

// sendDel sends the event "del" if op, a DEL or VDEL, deleted the key.
func (c *conn) sendDel(op *Op) {
	if op.Yes {
		c.event(classGeneric, "del", op.Key)
	}
}

// deleted is like sendDel, for the only operation of a command.
func (c *conn) deleted(op *Op) {
	switch c.sendDel(op); {
	case op.Differs:
		c.unmet = "another value"
	case !op.Yes:
		c.unmet = "missing"
	}
}

func runDel(c *conn, args [][]byte) error { return c.countKeys(Del, args[1:], c.sendDel) }

// countKeys carries out an operation on each key and replies with the number of keys that were found. It
// calls done after each operation. If the command takes long, other clients may use the Local between
// operations.
func (c *conn) countKeys(verb Verb, keys [][]byte, done func(*Op)) error {
	n := int64(0)
	looked := 0
	err := c.eachKey(verb, keys, func(op *Op) {
		if op.Yes {
			n++
		}
		done(op)
		if looked++; looked%16 == 0 {
			c.letOthersIn()
		}
	})
	if c.integer(n); n == 0 {
		c.unmet = "missing"
	}
	return err
}

// deleteIf deletes a key if it has the given value, and replies with the number of deleted keys. The reply shows whether a
// guess of the value is right, so the client must be allowed to read the key.
func (c *conn) deleteIf(key, value []byte) error {
	op, err := c.do(Op{Verb: VDel, Key: key, Value: value, Shows: true})
	c.deleted(&op)
	c.bool(op.Yes)
	return err
}

func runDelIfEq(c *conn, args [][]byte) error { return c.deleteIf(args[1], args[2]) }

// runDelEx implements DELEX, but only the condition IFEQ.
func runDelEx(c *conn, args [][]byte) error {
	switch {
	case len(args) == 2:
		return runDel(c, args)
	case len(args) == 4 && equalFold(args[2], "ifeq"):
		return c.deleteIf(args[1], args[3])
	case len(args) == 3:
		return wrongArguments("delex")
	default:
		return errSyntax
	}
}

func runExists(c *conn, args [][]byte) error { return c.countKeys(Get, args[1:], c.missed) }

func runType(c *conn, args [][]byte) error {
	op, err := c.get(args[1])
	if op.Yes {
		c.status("string")
	} else {
		c.status("none")
	}
	return err
}

// runRename implements RENAME and RENAMENX.
func runRename(c *conn, args [][]byte) error {
	from, to, nx := args[1], args[2], equalFold(args[0], "renamenx")
	renamed, notRenamed := any(replyOK), any(replyOK)
	if nx {
		renamed, notRenamed = true, false
	}
	old, err := c.lookupShown(from)
	if err == nil && !old.Yes {
		err = errNoSuchKey
	}
	if err != nil {
		return err
	}
	if err := c.mayWrite(len(old.Entry.Value)); err != nil {
		return err
	}
	value := valid(old.Entry.Value)
	taken, err := c.lookup(to)
	switch {
	case err != nil:
		return err
	case bytes.Equal(from, to) || taken.Yes && nx:
		return c.reply(notRenamed)
	}
	err = c.each([]Op{{Verb: Del, Key: from}, {Verb: Set, Key: to, Value: value, Expires: old.Entry.Expires, Encoding: old.Entry.Encoding}}, func(*Op) {})
	if err != nil {
		return err
	}
	c.replaced(&taken)
	c.event(classGeneric, "rename_from", from)
	c.event(classGeneric, "rename_to", to)
	return c.reply(renamed)
}

// valid returns value, or a copy of it, in memory that does not change when the key is written.
func valid(value []byte) []byte {
	if len(value) >= LargeValue {
		return value
	}
	return bytes.Clone(value)
}

// replaced sends the event "new" if a command has replaced an existing key. old is the result of the
// lookup before the change. Redis sends this event because it deletes the existing key and creates a new one.
func (c *conn) replaced(old *Op) {
	if old.Yes {
		c.event(classNew, "new", old.Key)
	}
}

func runCopy(c *conn, args [][]byte) error {
	from, to, replace := args[1], args[2], false
	for i := 3; i < len(args); i++ {
		switch {
		case equalFold(args[i], "replace"):
			replace = true
		case equalFold(args[i], "db") && i+1 < len(args):
			i++
			if err := checkDatabase(args[i]); err != nil {
				return err
			}
		default:
			return errSyntax
		}
	}
	if bytes.Equal(from, to) {
		return errSameObjects
	}
	old, err := c.get(from)
	if err != nil {
		return err
	}
	taken, err := c.lookup(to)
	if err != nil || !old.Yes || taken.Yes && !replace {
		c.integer(0)
		return err
	}
	value := valid(old.Entry.Value)
	op := Op{Verb: Set, Key: to, Value: value, Expires: old.Entry.Expires, Encoding: old.Entry.Encoding}
	if op.Encoding == EncodingAuto {
		op.Encoding = EncodingUnshared
	}
	if _, err := c.do(op); err != nil {
		return err
	}
	c.replaced(&taken)
	c.event(classGeneric, "copy_to", to)
	return c.reply(1)
}

// checkDatabase returns an error for every database number except 0.
func checkDatabase(arg []byte) error {
	switch n, err := integerArg(arg); {
	case err != nil:
		return err
	case n > math.MaxInt32 || n < math.MinInt32:
		return &Error{Text: "value is out of range, value must between -2147483648 and 2147483647"}
	case n != 0:
		return errDatabase
	}
	return nil
}

// runMove always returns an error, because there is only one database.
func runMove(_ *conn, args [][]byte) error {
	if err := checkDatabase(args[2]); err != nil {
		return err
	}
	return errSameObjects
}
