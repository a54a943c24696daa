package redis

import (
	"bytes"
	"math"
	"math/big"
	"time"
)

func stringCommands() []*command {
	const (
		write = writes | denyOOM | usesStore
		read  = reads | usesStore
	)
	return []*command{
		{name: "get", arity: 2, flags: read | fast, first: 1, last: 1, step: 1, run: runGet,
			group: "string", since: "1.0.0", args: "key:key", summary: "Get the value of a key"},
		{name: "set", arity: -3, flags: write, first: 1, last: 1, step: 1, run: runSet, remote: remoteSet,
			group: "string", since: "1.0.0", args: "key:key value:string [condition:string] [expiration:string]", summary: "Set the string value of a key"},
		{name: "setnx", arity: 3, flags: write | fast, first: 1, last: 1, step: 1, run: runSetNX, remote: remoteSetNX,
			group: "string", since: "1.0.0", args: "key:key value:string", summary: "Set the value of a key, only if the key does not exist"},
		{name: "setex", arity: 4, flags: write, first: 1, last: 1, step: 1, run: runSetEX, remote: remoteSetEX,
			group: "string", since: "2.0.0", args: "key:key seconds:integer value:string", summary: "Set the value and expiration of a key"},
		{name: "psetex", arity: 4, flags: write, first: 1, last: 1, step: 1, run: runPSetEX, remote: remotePSetEX,
			group: "string", since: "2.6.0", args: "key:key milliseconds:integer value:string", summary: "Set the value and expiration in milliseconds of a key"},
		{name: "getset", arity: 3, flags: write | fast | inOneStep, first: 1, last: 1, step: 1, run: runGetSet,
			group: "string", since: "1.0.0", args: "key:key value:string", summary: "Set the string value of a key and return its old value"},
		{name: "getdel", arity: 2, flags: writes | usesStore | fast | inOneStep, first: 1, last: 1, step: 1, run: runGetDel,
			group: "string", since: "6.2.0", args: "key:key", summary: "Get the value of a key and delete the key"},
		{name: "getex", arity: -2, flags: writes | usesStore | fast | inOneStep, first: 1, last: 1, step: 1, run: runGetEX,
			group: "string", since: "6.2.0", args: "key:key [expiration:string]", summary: "Get the value of a key and optionally set its expiration"},
		{name: "mget", arity: -2, flags: read | fast, first: 1, last: -1, step: 1, run: runMGet, remote: remoteMGet,
			group: "string", since: "1.0.0", args: "key:key...", summary: "Get the values of all the given keys"},
		{name: "mset", arity: -3, flags: write, first: 1, last: -1, step: 2, run: runMSet, remote: remoteMSet,
			group: "string", since: "1.0.1", args: "key:key value:string...", summary: "Set multiple keys to multiple values"},
		{name: "msetnx", arity: -3, flags: write | inOneStep, first: 1, last: -1, step: 2, run: runMSetNX,
			group: "string", since: "1.0.1", args: "key:key value:string...", summary: "Set multiple keys to multiple values, only if none of the keys exist"},
		{name: "strlen", arity: 2, flags: read | fast, first: 1, last: 1, step: 1, run: runStrLen,
			group: "string", since: "2.2.0", args: "key:key", summary: "Get the length of the value stored in a key"},
		{name: "getrange", arity: 4, flags: read, first: 1, last: 1, step: 1, run: runGetRange,
			group: "string", since: "2.4.0", args: "key:key start:integer end:integer", summary: "Get a substring of the string stored at a key"},
		{name: "substr", arity: 4, flags: read, first: 1, last: 1, step: 1, run: runGetRange,
			group: "string", since: "1.0.0", args: "key:key start:integer end:integer", summary: "Get a substring of the string stored at a key"},
		{name: "setrange", arity: 4, flags: write | inOneStep, first: 1, last: 1, step: 1, run: runSetRange,
			group: "string", since: "2.2.0", args: "key:key offset:integer value:string", summary: "Overwrite part of a string at key starting at the specified offset"},
		{name: "append", arity: 3, flags: write | fast | inOneStep, first: 1, last: 1, step: 1, run: runAppend,
			group: "string", since: "2.0.0", args: "key:key value:string", summary: "Append a value to a key"},
		{name: "incr", arity: 2, flags: write | fast | inOneStep, first: 1, last: 1, step: 1, run: runIncr,
			group: "string", since: "1.0.0", args: "key:key", summary: "Increment the integer value of a key by one"},
		{name: "decr", arity: 2, flags: write | fast | inOneStep, first: 1, last: 1, step: 1, run: runDecr,
			group: "string", since: "1.0.0", args: "key:key", summary: "Decrement the integer value of a key by one"},
		{name: "incrby", arity: 3, flags: write | fast | inOneStep, first: 1, last: 1, step: 1, run: runIncrBy,
			group: "string", since: "1.0.0", args: "key:key increment:integer", summary: "Increment the integer value of a key by the given amount"},
		{name: "decrby", arity: 3, flags: write | fast | inOneStep, first: 1, last: 1, step: 1, run: runDecrBy,
			group: "string", since: "1.0.0", args: "key:key decrement:integer", summary: "Decrement the integer value of a key by the given number"},
		{name: "incrbyfloat", arity: 3, flags: write | fast | inOneStep, first: 1, last: 1, step: 1, run: runIncrByFloat,
			group: "string", since: "2.6.0", args: "key:key increment:double", summary: "Increment the float value of a key by the given amount"},
	}
}

// read looks a key up for a command that only reads; ok is false after an error reply.
func (c *conn) read(key []byte) (e Entry, found, ok bool) {
	if c.s.engine == nil {
		return c.remoteRead(key)
	}
	if e, found = c.s.engine.Lookup(key); !found {
		c.event(misses, "keymiss", key)
	}
	return e, found, true
}

// put sets a key; ok is false after an error reply. The events of the command are the
// caller's, except for a new key's.
func (c *conn) put(key, value []byte, expires time.Time, isNew bool) (ok bool) {
	return c.putMade(Whole, key, value, expires, isNew)
}

// putMade is put for a value that was made in another way, or that is kept.
func (c *conn) putMade(made Making, key, value []byte, expires time.Time, isNew bool) (ok bool) {
	if err := c.s.engine.Put(&c.who, Put{Key: key, Value: value, Expires: expires, Made: made}); err != nil {
		c.fail(replyText(err))
		return false
	}
	if isNew {
		c.event(created, "new", key)
	}
	return true
}

// remove removes a key that is there; ok is false after an error reply.
func (c *conn) remove(key []byte) (ok bool) {
	if err := c.s.engine.Remove(&c.who, key); err != nil {
		c.fail(replyText(err))
		return false
	}
	return true
}

// replyText is the line of an error reply.
func replyText(err error) string {
	if e, ok := err.(*Error); ok {
		return e.Error()
	}
	return "ERR " + err.Error()
}

func (c *conn) value(e Entry, found bool) {
	if !found {
		c.null()
		return
	}
	c.bulk(e.Value)
}

func runGet(c *conn, args [][]byte) {
	if e, found, ok := c.read(args[1]); ok {
		c.value(e, found)
	}
}

func runMGet(c *conn, args [][]byte) {
	c.array(len(args) - 1)
	for _, key := range args[1:] {
		e, found, _ := c.read(key)
		c.value(e, found)
	}
}

func runStrLen(c *conn, args [][]byte) {
	if e, _, ok := c.read(args[1]); ok {
		c.integer(int64(len(e.Value)))
	}
}

func runGetRange(c *conn, args [][]byte) {
	from, ok := c.integerArg(args[2])
	if !ok {
		return
	}
	to, ok := c.integerArg(args[3])
	if !ok {
		return
	}
	e, _, ok := c.read(args[1])
	if !ok {
		return
	}
	n := int64(len(e.Value))
	if from < 0 && to < 0 && from > to {
		c.bulk(nil)
		return
	}
	if from < 0 {
		from = max(n+from, 0)
	}
	if to < 0 {
		to = max(n+to, 0)
	}
	to = min(to, n-1)
	if from > to || n == 0 {
		c.bulk(nil)
		return
	}
	c.bulk(e.Value[from : to+1])
}

// setOptions are the words after the value of SET, or after the key of GETEX.
type setOptions struct {
	nx, xx, get, keepTTL, persist bool

	unit expiryUnit
	time []byte // nil: no expiry was given
}

// expiryUnit is how a time is meant.
type expiryUnit struct {
	seconds, absolute bool
}

// expiryWord returns the unit that an option of SET and GETEX names.
func expiryWord(word string) (unit expiryUnit, ok bool) {
	switch word {
	case "ex":
		return expiryUnit{seconds: true}, true
	case "px":
		return expiryUnit{}, true
	case "exat":
		return expiryUnit{seconds: true, absolute: true}, true
	case "pxat":
		return expiryUnit{absolute: true}, true
	}
	return expiryUnit{}, false
}

// parseSetOptions reads options in any order; getex says which command they are for.
func parseSetOptions(words [][]byte, getex bool) (o setOptions, ok bool) {
	for i := 0; i < len(words); i++ {
		w := string(bytes.ToLower(words[i]))
		unit, isExpiry := expiryWord(w)
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
		case isExpiry && !o.keepTTL && !o.persist && (o.time == nil || o.unit == unit) && i+1 < len(words):
			i++
			o.unit, o.time = unit, words[i]
		default:
			return o, false
		}
	}
	return o, true
}

// expiryTime reads a time that a value is to have, in milliseconds since the epoch;
// ok is false after an error reply.
func (c *conn) expiryTime(arg []byte, u expiryUnit, now int64, name string) (at int64, ok bool) {
	at, ok = c.integerArg(arg)
	if !ok {
		return 0, false
	}
	bad := at <= 0 || u.seconds && at > math.MaxInt64/1000
	if !bad && u.seconds {
		at *= 1000
	}
	if !bad && !u.absolute {
		bad = at > math.MaxInt64-now
		at += now
	}
	if bad {
		c.error("invalid expire time in '" + name + "' command")
		return 0, false
	}
	return at, true
}

// lastMilli is the last time that the store can hold.
const lastMilli = math.MaxInt64 / 1000

func fromMilli(ms int64) time.Time { return time.UnixMilli(min(ms, lastMilli)) }

func runSet(c *conn, args [][]byte) {
	o, ok := parseSetOptions(args[3:], false)
	if !ok {
		c.error(textSyntax)
		return
	}
	c.setGeneric("set", args[1], args[2], o, c.ok, c.null)
}

func runSetNX(c *conn, args [][]byte) {
	c.setGeneric("setnx", args[1], args[2], setOptions{nx: true}, func() { c.integer(1) }, func() { c.integer(0) })
}

func runSetEX(c *conn, args [][]byte) {
	c.setGeneric("setex", args[1], args[3], setOptions{time: args[2], unit: expiryUnit{seconds: true}}, c.ok, c.null)
}

func runPSetEX(c *conn, args [][]byte) {
	c.setGeneric("psetex", args[1], args[3], setOptions{time: args[2]}, c.ok, c.null)
}

// setGeneric is all forms of SET.
func (c *conn) setGeneric(name string, key, value []byte, o setOptions, done, undone func()) {
	var expires time.Time
	if o.time != nil {
		at, ok := c.expiryTime(o.time, o.unit, c.now(), name)
		if !ok {
			return
		}
		expires = fromMilli(at)
	}
	old, found := c.s.engine.Lookup(key)
	if o.get {
		if !found {
			c.event(misses, "keymiss", key)
		}
		c.value(old, found)
	}
	if o.nx && found || o.xx && !found {
		if !o.get {
			undone()
		}
		return
	}
	if o.keepTTL {
		expires = old.Expires
	}
	if !c.put(key, value, expires, !found) {
		return
	}
	c.event(strings_, "set", key)
	if o.time != nil {
		c.event(generic, "expire", key)
	}
	if !o.get {
		done()
	}
}

func runGetSet(c *conn, args [][]byte) {
	e, found, _ := c.read(args[1])
	c.value(e, found)
	if c.put(args[1], args[2], time.Time{}, !found) {
		c.event(strings_, "set", args[1])
	}
}

func runGetDel(c *conn, args [][]byte) {
	e, found, _ := c.read(args[1])
	c.value(e, found)
	if found && c.remove(args[1]) {
		c.event(generic, "del", args[1])
	}
}

func runGetEX(c *conn, args [][]byte) {
	o, ok := parseSetOptions(args[2:], true)
	if !ok {
		c.error(textSyntax)
		return
	}
	e, found, _ := c.read(args[1])
	if !found {
		c.null()
		return
	}
	now := c.now()
	var at int64
	if o.time != nil {
		if at, ok = c.expiryTime(o.time, o.unit, now, "getex"); !ok {
			return
		}
	}
	c.bulk(e.Value)
	switch {
	case o.time != nil && o.unit.absolute && at <= now:
		if c.remove(args[1]) {
			c.event(generic, "del", args[1])
		}
	case o.time != nil:
		if c.putMade(e.Made, args[1], e.Value, fromMilli(at), false) {
			c.event(generic, "expire", args[1])
		}
	case o.persist && !e.Expires.IsZero():
		if c.putMade(e.Made, args[1], e.Value, time.Time{}, false) {
			c.event(generic, "persist", args[1])
		}
	}
}

func runMSet(c *conn, args [][]byte)   { c.msetGeneric(args, false) }
func runMSetNX(c *conn, args [][]byte) { c.msetGeneric(args, true) }

func (c *conn) msetGeneric(args [][]byte, nx bool) {
	if len(args)%2 == 0 {
		c.error("wrong number of arguments for '" + string(bytes.ToLower(args[0])) + "' command")
		return
	}
	fresh := make(map[string]struct{})
	for i := 1; i < len(args); i += 2 {
		_, found := c.s.engine.Lookup(args[i])
		if found && nx {
			c.integer(0)
			return
		}
		if !found {
			fresh[string(args[i])] = struct{}{}
		}
	}
	if err := c.s.engine.Room(len(fresh)); err != nil {
		c.fail(replyText(err))
		return
	}
	for i := 1; i < len(args); i += 2 {
		_, isNew := fresh[string(args[i])]
		delete(fresh, string(args[i]))
		if !c.put(args[i], args[i+1], time.Time{}, isNew) {
			return
		}
		c.event(strings_, "set", args[i])
	}
	if nx {
		c.integer(1)
		return
	}
	c.ok()
}

func runSetRange(c *conn, args [][]byte) {
	offset, ok := c.integerArg(args[2])
	if !ok {
		return
	}
	if offset < 0 {
		c.error(textOutOfRange)
		return
	}
	e, found := c.s.engine.Lookup(args[1])
	part := args[3]
	if len(part) == 0 {
		c.integer(int64(len(e.Value)))
		return
	}
	if offset > maxBulk || offset+int64(len(part)) > maxBulk {
		c.error(textTooLong)
		return
	}
	value := make([]byte, max(int64(len(e.Value)), offset+int64(len(part))))
	copy(value, e.Value)
	copy(value[offset:], part)
	if c.putMade(Edited, args[1], value, e.Expires, !found) {
		c.event(strings_, "setrange", args[1])
		c.integer(int64(len(value)))
	}
}

func runAppend(c *conn, args [][]byte) {
	e, found := c.s.engine.Lookup(args[1])
	if found && len(e.Value)+len(args[2]) > maxBulk {
		c.error(textTooLong)
		return
	}
	value := append(bytes.Clone(e.Value), args[2]...)
	made := Whole
	if found {
		made = Edited
	}
	if c.putMade(made, args[1], value, e.Expires, !found) {
		c.event(strings_, "append", args[1])
		c.integer(int64(len(value)))
	}
}

func runIncr(c *conn, args [][]byte) { c.increment(args[1], 1) }
func runDecr(c *conn, args [][]byte) { c.increment(args[1], -1) }

func runIncrBy(c *conn, args [][]byte) {
	if n, ok := c.integerArg(args[2]); ok {
		c.increment(args[1], n)
	}
}

func runDecrBy(c *conn, args [][]byte) {
	n, ok := c.integerArg(args[2])
	switch {
	case !ok:
	case n == math.MinInt64:
		c.error("decrement would overflow")
	default:
		c.increment(args[1], -n)
	}
}

func (c *conn) increment(key []byte, by int64) {
	e, found := c.s.engine.Lookup(key)
	n := int64(0)
	if found {
		var ok bool
		if n, ok = c.integerArg(e.Value); !ok {
			return
		}
	}
	if by < 0 && n < math.MinInt64-by || by > 0 && n > math.MaxInt64-by {
		c.error(textOverflow)
		return
	}
	if c.put(key, formatInt(n+by), e.Expires, !found) {
		c.event(strings_, "incrby", key)
		c.integer(n + by)
	}
}

func runIncrByFloat(c *conn, args [][]byte) {
	e, found := c.s.engine.Lookup(args[1])
	n, ok := new(big.Float).SetPrec(mantissa), true
	if found {
		if n, ok = parseFloat(e.Value); !ok {
			c.error(textFloat)
			return
		}
	}
	by, ok := parseFloat(args[2])
	if !ok {
		c.error(textFloat)
		return
	}
	if n.IsInf() || by.IsInf() || n.Add(n, by).IsInf() || n.MantExp(nil) > 16384 {
		c.error(textNotFinite)
		return
	}
	value := formatFloat(n)
	if c.putMade(Counted, args[1], value, e.Expires, !found) {
		c.event(strings_, "incrbyfloat", args[1])
		c.bulk(value)
	}
}
