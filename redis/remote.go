package redis

import (
	"bytes"
	"math/rand/v2"
)

// What commands do where the store is remote: see the comment of the package.

// one carries out an operation; ok is false after an error reply.
func (c *conn) one(op Op) (done *Op, ok bool) {
	ops := c.do(op)
	if err := ops[0].Err; err != nil {
		c.fail(replyText(err))
		return nil, false
	}
	return &ops[0], true
}

// do carries out operations. The result is good until the next call.
func (c *conn) do(ops ...Op) []Op {
	c.s.opts.Backend.Do(c.s.ctx, &c.who, ops)
	if c.s.opts.Observe != nil && len(ops) > 0 {
		c.version = ops[len(ops)-1].Version
	}
	return ops
}

// firstError replies with the first error among operations; false means that there is none.
func (c *conn) firstError(ops []Op) bool {
	for i := range ops {
		if ops[i].Err != nil {
			c.fail(replyText(ops[i].Err))
			return true
		}
	}
	return false
}

func (c *conn) remoteRead(key []byte) (e Entry, found, ok bool) {
	op, ok := c.one(Op{Verb: Get, Key: key})
	if !ok {
		return Entry{}, false, false
	}
	return Entry{Value: op.Found, Version: op.Version}, op.Yes, true
}

// each makes an operation of each argument from the second on.
func each(verb Verb, args [][]byte) []Op {
	ops := make([]Op, 0, len(args)-1)
	for _, key := range args[1:] {
		ops = append(ops, Op{Verb: verb, Key: key})
	}
	return ops
}

func remoteMGet(c *conn, args [][]byte) {
	ops := c.do(each(Get, args)...)
	if c.firstError(ops) {
		return
	}
	c.array(len(ops))
	for _, op := range ops {
		c.value(Entry{Value: op.Found}, op.Yes)
	}
}

// remoteCount replies with how many operations found something.
func (c *conn) remoteCount(ops []Op) {
	ops = c.do(ops...)
	if c.firstError(ops) {
		return
	}
	n := int64(0)
	for _, op := range ops {
		if op.Yes {
			n++
		}
	}
	c.integer(n)
}

func remoteExists(c *conn, args [][]byte) { c.remoteCount(each(Get, args)) }
func remoteDel(c *conn, args [][]byte)    { c.remoteCount(each(Del, args)) }

func remoteDelIfEq(c *conn, args [][]byte) {
	c.remoteCount([]Op{{Verb: VDel, Key: args[1], Value: args[2]}})
}

func remoteDelEx(c *conn, args [][]byte) {
	if len(args) == 2 {
		remoteDel(c, args)
		return
	}
	if value, ok := c.delExValue(args); ok {
		c.remoteCount([]Op{{Verb: VDel, Key: args[1], Value: value}})
	}
}

func remoteSet(c *conn, args [][]byte) {
	o, ok := parseSetOptions(args[3:], false)
	if !ok {
		c.error(textSyntax)
		return
	}
	for _, no := range []struct {
		wanted bool
		what   string
	}{{o.xx, "SET with XX"}, {o.get, "SET with GET"}, {o.keepTTL, "SET with KEEPTTL"}} {
		if no.wanted {
			c.error(notAtomic(no.what))
			return
		}
	}
	c.remoteSet("set", args[1], args[2], o, c.ok, c.null)
}

func remoteSetNX(c *conn, args [][]byte) {
	c.remoteSet("setnx", args[1], args[2], setOptions{nx: true}, func() { c.integer(1) }, func() { c.integer(0) })
}

func remoteSetEX(c *conn, args [][]byte) {
	c.remoteSet("setex", args[1], args[3], setOptions{time: args[2], unit: expiryUnit{seconds: true}}, c.ok, c.null)
}

func remotePSetEX(c *conn, args [][]byte) {
	c.remoteSet("psetex", args[1], args[3], setOptions{time: args[2]}, c.ok, c.null)
}

func (c *conn) remoteSet(name string, key, value []byte, o setOptions, done, undone func()) {
	op := Op{Verb: Set, Key: key, Value: value}
	if o.nx {
		op.If = IfMissing
	}
	if o.time != nil {
		now := c.now()
		at, ok := c.expiryTime(o.time, o.unit, now, name)
		if !ok {
			return
		}
		if op.PX = at - now; op.PX <= 0 {
			c.error("invalid expire time in '" + name + "' command: a remote store cannot set what has expired")
			return
		}
	}
	switch got, ok := c.one(op); {
	case !ok:
	case got.Yes:
		done()
	default:
		undone()
	}
}

func remoteMSet(c *conn, args [][]byte) {
	if len(args)%2 == 0 {
		c.error("wrong number of arguments for '" + string(bytes.ToLower(args[0])) + "' command")
		return
	}
	ops := make([]Op, 0, len(args)/2)
	for i := 1; i < len(args); i += 2 {
		ops = append(ops, Op{Verb: Set, Key: args[i], Value: args[i+1]})
	}
	if !c.firstError(c.do(ops...)) {
		c.ok()
	}
}

func remoteKeys(c *conn, args [][]byte) {
	begin, n := len(c.w), 0
	err := c.allKeys(literalPrefix(args[1]), func(key []byte) bool {
		if match(args[1], key) {
			c.bulk(key)
			n++
		}
		return true
	})
	if err != nil {
		c.fail(replyText(err))
		return
	}
	c.insertArray(begin, n)
}

func remoteDBSize(c *conn, _ [][]byte) {
	n := int64(0)
	err := c.allKeys(nil, func([]byte) bool { n++; return true })
	if err != nil {
		c.fail(replyText(err))
		return
	}
	c.integer(n)
}

// remoteRandomKey chooses among the keys of the first page that has some.
func remoteRandomKey(c *conn, _ [][]byte) {
	const want = 100
	var token []byte
	for {
		keys, next, err := c.s.opts.Backend.Scan(c.s.ctx, &c.who, nil, token, want)
		switch {
		case err != nil:
			c.fail(replyText(err))
			return
		case len(keys) > 0:
			c.bulk(keys[rand.IntN(len(keys))])
			return
		case next == nil:
			c.null()
			return
		}
		token = next
	}
}
