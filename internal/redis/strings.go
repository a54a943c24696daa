package redis

import (
	"math"
	"net"
	"time"
)

func stringCommands() []*command {
	const (
		write = writes | denyOOM | usesStore
		read  = reads | usesStore
	)
	return []*command{
		{name: "get", arity: 2, flags: read | fast, keys: oneKey, run: runGet, since: "1.0.0", args: "key:key", summary: "Get the value of a key"},
		{name: "set", arity: -3, flags: write, keys: oneKey, value: 2, telling: "get", run: runSet, since: "1.0.0", args: "key:key value:string [condition:string] [expiration:string]", summary: "Set the string value of a key"},
		{name: "setnx", arity: 3, flags: write | fast, keys: oneKey, value: 2, run: runSetNX, since: "1.0.0", args: "key:key value:string", summary: "Set the value of a key, only if the key does not exist"},
		{name: "setex", arity: 4, flags: write, keys: oneKey, value: 3, run: runSetEX, since: "2.0.0", args: "key:key seconds:integer value:string", summary: "Set the value and expiration of a key"},
		{name: "psetex", arity: 4, flags: write, keys: oneKey, value: 3, run: runSetEX, since: "2.6.0", args: "key:key milliseconds:integer value:string", summary: "Set the value and expiration in milliseconds of a key"},
		{name: "getset", arity: 3, flags: write | tells | fast | needsLocal, keys: oneKey, value: 2, run: runGetSet, since: "1.0.0", args: "key:key value:string", summary: "Set the string value of a key and return its old value"},
		{name: "getdel", arity: 2, flags: writes | tells | usesStore | fast | needsLocal, keys: oneKey, run: runGetDel, since: "6.2.0", args: "key:key", summary: "Get the value of a key and delete the key"},
		{name: "getex", arity: -2, flags: writes | tells | usesStore | fast | needsLocal, keys: oneKey, run: runGetEX, since: "6.2.0", args: "key:key [expiration:string]", summary: "Get the value of a key and optionally set its expiration"},
		{name: "mget", arity: -2, flags: read | fast, keys: allKeys, run: runMGet, since: "1.0.0", args: "key:key...", summary: "Get the values of all the given keys"},
		{name: "mset", arity: -3, flags: write, keys: keyPairs, run: runMSet, since: "1.0.1", args: "key:key value:string...", summary: "Set multiple keys to multiple values"},
		{name: "msetnx", arity: -3, flags: write | needsLocal, keys: keyPairs, run: runMSetNX, since: "1.0.1", args: "key:key value:string...", summary: "Set multiple keys to multiple values, only if none of the keys exist"},
		{name: "strlen", arity: 2, flags: read | fast, keys: oneKey, run: runStrLen, since: "2.2.0", args: "key:key", summary: "Get the length of the value stored in a key"},
		{name: "getrange", arity: 4, flags: read, keys: oneKey, run: runGetRange, since: "2.4.0", args: "key:key start:integer end:integer", summary: "Get a substring of the string stored at a key"},
		{name: "substr", arity: 4, flags: read, keys: oneKey, run: runGetRange, since: "1.0.0", args: "key:key start:integer end:integer", summary: "Get a substring of the string stored at a key"},
	}
}

// do carries out one operation. The outcome may refer to memory of a Local, which is valid until an
// operation changes a key.
func (c *conn) do(op Op) (Op, error) {
	done := c.doInPlace(&op)
	return *done, done.Err
}

// doInPlace is like do, but does not copy the outcome: the next operation overwrites it.
func (c *conn) doInPlace(op *Op) *Op {
	c.op[0] = *op
	if c.executing && (op.Verb == Set || op.Verb == VDel) {
		if c.op[0].Err = c.mayWrite(len(op.Value)); c.op[0].Err != nil {
			return &c.op[0]
		}
	}
	c.s.opts.Backend.Do(c.s.ctx, &c.who, c.op[:])
	if c.s.local == nil {
		c.version = c.op[0].Entry.Version
		c.window.adapt(len(c.op[0].Entry.Value))
	}
	return &c.op[0]
}

// each carries out operations, and calls done for each of them in order. A Local carries out all
// operations or none. If the reply is sent in parts, other clients may write between read operations.
func (c *conn) each(ops []Op, done func(*Op)) error {
	if local := c.s.local; local != nil {
		if err := local.Check(&c.who, ops); err != nil {
			return err
		}
		if err := c.mayWrite(sizeOfValues(ops)); err != nil {
			return err
		}
	}
	return c.eachChecked(ops, done)
}

// eachChecked is like each, but does not check the operations first.
func (c *conn) eachChecked(ops []Op, done func(*Op)) error {
	local := c.s.local
	read := len(ops) > 0 && ops[0].Verb == Get
	for len(ops) > 0 {
		step := 1 // for a Local: the event of a change comes before the next change
		switch {
		case local != nil:
		case read:
			step = min(len(ops), int(c.window.n.Load()))
		default:
			step = len(ops)
		}
		some := ops[:step]
		ops = ops[step:]
		c.s.opts.Backend.Do(c.s.ctx, &c.who, some)
		for i := range some {
			if err := some[i].Err; err != nil {
				return err
			}
		}
		for i := range some {
			done(&some[i])
			if local == nil {
				c.version = some[i].Entry.Version
				c.window.adapt(len(some[i].Entry.Value))
				some[i].Entry.Value = nil // the reply already contains the value
			}
			if read && !c.sendPart() {
				return net.ErrClosed
			}
		}
	}
	return nil
}

// get reads a key for a command that does not write it.
func (c *conn) get(key []byte) (Op, error) {
	op, err := c.do(Op{Verb: Get, Key: key})
	c.missed(&op)
	return op, err
}

// missed sends the event "keymiss" if op, a GET, found nothing.
func (c *conn) missed(op *Op) {
	if !op.Yes && op.Err == nil {
		c.event(classMiss, "keymiss", op.Key)
	}
}

// lookup reads a key for a command that may write it. It does not send the event "keymiss".
func (c *conn) lookup(key []byte) (Op, error) {
	return c.do(Op{Verb: Get, Key: key, ForUpdate: true})
}

// lookupShown is like lookup, for commands that reply with the value or with a part of it, or copy it.
func (c *conn) lookupShown(key []byte) (Op, error) {
	return c.do(Op{Verb: Get, Key: key, ForUpdate: true, Shows: true})
}

// put sets a key and, if this succeeds, sends an event.
func (c *conn) put(op *Op, kind class, event string) error {
	op.Verb = Set
	done := c.doInPlace(op)
	if done.Err == nil {
		c.event(kind, event, done.Key)
	}
	return done.Err
}

func runGet(c *conn, args [][]byte) error {
	op := c.doInPlace(&Op{Verb: Get, Key: args[1]})
	c.missed(op)
	if c.value(op); !op.Yes {
		c.unmet = "missing"
	}
	return op.Err
}

func runMGet(c *conn, args [][]byte) error {
	c.array(len(args) - 1)
	return c.eachKey(Get, args[1:], func(op *Op) {
		c.missed(op)
		c.value(op)
	})
}

func runStrLen(c *conn, args [][]byte) error {
	op, err := c.get(args[1])
	c.integer(int64(len(op.Entry.Value)))
	return err
}

func runGetRange(c *conn, args [][]byte) error {
	from, err := integerArg(args[2])
	if err != nil {
		return err
	}
	to, err := integerArg(args[3])
	if err != nil {
		return err
	}
	op, err := c.get(args[1])
	if err != nil {
		return err
	}
	value := op.Entry.Value
	n := int64(len(value))
	empty := from < 0 && to < 0 && from > to
	if from < 0 {
		from = max(n+from, 0)
	}
	if to < 0 {
		to = max(n+to, 0)
	}
	to = min(to, n-1)
	if empty || from > to {
		value, from, to = nil, 0, -1
	}
	c.part(value[from : to+1])
	return nil
}

// setOptions are the arguments after the value of SET, or after the key of GETEX.
type setOptions struct {
	nx, xx, get, keepTTL, persist bool

	unit timeUnit
	time []byte // nil = no expiry was given
}

// timeUnit is the unit of an expiry.
type timeUnit struct {
	seconds  bool // in seconds instead of milliseconds
	absolute bool // counted from the Unix epoch instead of the current time
}

// parseTimeUnit returns the unit for an option of SET or GETEX, such as px. The option is in lower case.
func parseTimeUnit(option string) (_ timeUnit, ok bool) {
	switch option {
	case "ex":
		return timeUnit{seconds: true}, true
	case "px":
		return timeUnit{}, true
	case "exat":
		return timeUnit{seconds: true, absolute: true}, true
	case "pxat":
		return timeUnit{absolute: true}, true
	default:
		return timeUnit{}, false
	}
}

// parseSetOptions parses the options of SET or, if getex is true, of GETEX. Their order does not matter.
func parseSetOptions(words [][]byte, getex bool) (o setOptions, err error) {
	for i := 0; i < len(words); i++ {
		w := lowerWord(words[i])
		unit, isTime := parseTimeUnit(w)
		switch {
		case w == "nx" && !o.xx && !getex:
			o.nx = true
		case w == "xx" && !o.nx && !getex:
			o.xx = true
		case w == "get" && !getex:
			o.get = true
		case w == "keepttl" && !o.persist && o.time == nil && !getex:
			o.keepTTL = true
		case w == "persist" && getex && o.time == nil && !o.keepTTL:
			o.persist = true
		case isTime && !o.keepTTL && !o.persist && (o.time == nil || o.unit == unit) && i+1 < len(words):
			i++
			o.unit, o.time = unit, words[i]
		default:
			return o, errSyntax
		}
	}
	return o, nil
}

func wrongExpiry(name string) error {
	return &Error{Text: "invalid expire time in '" + name + "' command"}
}

// expiryTime parses an expiry and returns it in milliseconds since the Unix epoch. now is the current
// time, also in milliseconds since the Unix epoch. name is the name of the command, for errors.
func expiryTime(arg []byte, unit timeUnit, now int64, name string) (at int64, err error) {
	at, err = integerArg(arg)
	if err != nil {
		return 0, err
	}
	if at <= 0 || unit.seconds && at > math.MaxInt64/1000 {
		return 0, wrongExpiry(name)
	}
	if unit.seconds {
		at *= 1000
	}
	if !unit.absolute {
		if at > math.MaxInt64-now {
			return 0, wrongExpiry(name)
		}
		at += now
	}
	return at, nil
}

// maxMilli is the latest time that the store can hold, in milliseconds since the Unix epoch. The
// store counts microseconds.
const maxMilli = math.MaxInt64 / 1000

func fromMilli(ms int64) time.Time { return time.UnixMilli(min(ms, maxMilli)) }

// set implements SET, SETNX, SETEX, PSETEX and GETSET. name is the name of the command, for errors. If
// o.get is true, set replies with the old value; otherwise it does not reply.
func (c *conn) set(name string, key, value []byte, o setOptions) (applied bool, err error) {
	op := Op{Verb: Set, Key: key, Value: value}
	if o.time != nil {
		now := c.now()
		at, err := expiryTime(o.time, o.unit, now, name)
		if err != nil {
			return false, err
		}
		op.Expires, op.PX = fromMilli(at), at-now
	}
	if c.s.local == nil {
		return c.setRemote(name, op, o)
	}
	if o.nx || o.xx || o.get || o.keepTTL {
		look := c.lookup
		if o.get {
			look = c.lookupShown
		}
		old, err := look(key)
		if err != nil {
			return false, err
		}
		if o.get {
			c.missed(&old)
			c.value(&old)
		}
		switch {
		case o.nx && old.Yes:
			c.unmet = "exists"
			return false, nil
		case o.xx && !old.Yes:
			c.unmet = "missing"
			return false, nil
		}
		if o.keepTTL {
			op.Expires = old.Entry.Expires
		}
	}
	if err := c.put(&op, classString, "set"); err != nil {
		return false, err
	}
	if o.time != nil {
		c.event(classGeneric, "expire", key)
	}
	return true, nil
}

// setRemote sends a SET to a remote store. It returns an error for options that such a store does not
// support.
func (c *conn) setRemote(name string, op Op, o setOptions) (applied bool, err error) {
	switch {
	case o.xx:
		return false, notAtomic("SET with XX")
	case o.get:
		return false, notAtomic("SET with GET")
	case o.keepTTL:
		return false, notAtomic("SET with KEEPTTL")
	case o.time != nil && op.PX <= 0:
		return false, &Error{Text: wrongExpiry(name).(*Error).Text + ": a remote store cannot set what has expired"}
	case o.nx:
		op.If = IfMissing
	}
	done, err := c.do(op)
	if o.nx && !done.Yes {
		c.unmet = "exists"
	}
	return done.Yes, err
}

func runSet(c *conn, args [][]byte) error {
	o, err := parseSetOptions(args[3:], false)
	if err != nil {
		return err
	}
	applied, err := c.set("set", args[1], args[2], o)
	switch {
	case o.get:
	case applied:
		c.ok()
	default:
		c.null()
	}
	return err
}

func runSetNX(c *conn, args [][]byte) error {
	applied, err := c.set("setnx", args[1], args[2], setOptions{nx: true})
	c.bool(applied)
	return err
}

// runSetEX implements SETEX and PSETEX.
func runSetEX(c *conn, args [][]byte) error {
	name := lowerWord(args[0])
	_, err := c.set(name, args[1], args[3], setOptions{time: args[2], unit: timeUnit{seconds: name == "setex"}})
	c.ok()
	return err
}

func runGetSet(c *conn, args [][]byte) error {
	_, err := c.set("getset", args[1], args[2], setOptions{get: true})
	return err
}

func runGetDel(c *conn, args [][]byte) error {
	old, err := c.lookupShown(args[1])
	if err != nil {
		return err
	}
	c.missed(&old)
	if c.value(&old); !old.Yes {
		c.unmet = "missing"
		return nil
	}
	return c.delete(args[1])
}

func runGetEX(c *conn, args [][]byte) error {
	o, err := parseSetOptions(args[2:], true)
	if err != nil {
		return err
	}
	old, err := c.lookupShown(args[1])
	if err != nil {
		return err
	}
	c.missed(&old)
	if !old.Yes {
		c.unmet = "missing"
		return c.reply(nil)
	}
	op := Op{Key: args[1], Value: old.Entry.Value, Encoding: old.Entry.Encoding}
	now, at := c.now(), int64(0)
	if o.time != nil {
		if at, err = expiryTime(o.time, o.unit, now, "getex"); err != nil {
			return err
		}
		op.Expires = fromMilli(at)
	}
	c.value(&old)
	switch {
	case o.time != nil && at <= now:
		err = c.delete(args[1])
	case o.time != nil:
		err = c.put(&op, classGeneric, "expire")
	case o.persist && !old.Entry.Expires.IsZero():
		err = c.put(&op, classGeneric, "persist")
	}
	return err
}

// setPairs returns a SET for each pair of key and value in args, which begins with the name of the
// command.
func (c *conn) setPairs(args [][]byte) ([]Op, error) {
	switch {
	case c.s.local != nil && len(args) > maxAtomic:
		return nil, errManyPairs
	case len(args)%2 == 0:
		return nil, wrongArguments(lowerWord(args[0]))
	}
	ops := make([]Op, 0, len(args)/2)
	for i := 1; i < len(args); i += 2 {
		ops = append(ops, Op{Verb: Set, Key: args[i], Value: args[i+1]})
	}
	return ops, nil
}

func (c *conn) sendSet(op *Op) { c.event(classString, "set", op.Key) }

var errManyPairs = &Error{Text: "more than 16383 keys cannot be set in one step"}

func runMSet(c *conn, args [][]byte) error {
	ops, err := c.setPairs(args)
	if err == nil {
		err = c.setAll(ops)
	}
	c.ok()
	return err
}

func runMSetNX(c *conn, args [][]byte) error {
	ops, err := c.setPairs(args)
	if err != nil {
		return err
	}
	for _, op := range ops {
		if old, err := c.lookup(op.Key); err != nil || old.Yes {
			c.unmet = "exists"
			c.integer(0)
			return err
		}
	}
	err = c.setAll(ops)
	c.integer(1)
	return err
}

// setAll carries out SETs in one step.
func (c *conn) setAll(ops []Op) error {
	if !c.executing {
		c.messages = 2 * len(ops)
		defer func() { c.messages = 0 }()
	}
	return c.each(ops, c.sendSet)
}
