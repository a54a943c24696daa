package redis

import (
	"bytes"
	"math"
	"time"
)

func expiryCommands() []*command {
	const (
		write = writes | usesStore | fast | inOneStep | expiry
		read  = reads | usesStore | fast | inOneStep | expiry
	)
	rows := []*command{
		{name: "expire", arity: -3, flags: write, run: runExpire(expiryUnit{seconds: true}), since: "1.0.0", args: "key:key seconds:integer [condition:string]", summary: "Set a key's time to live in seconds"},
		{name: "pexpire", arity: -3, flags: write, run: runExpire(expiryUnit{}), since: "2.6.0", args: "key:key milliseconds:integer [condition:string]", summary: "Set a key's time to live in milliseconds"},
		{name: "expireat", arity: -3, flags: write, run: runExpire(expiryUnit{seconds: true, absolute: true}), since: "1.2.0", args: "key:key unix-time-seconds:unix-time [condition:string]", summary: "Set the expiration for a key as a UNIX timestamp"},
		{name: "pexpireat", arity: -3, flags: write, run: runExpire(expiryUnit{absolute: true}), since: "2.6.0", args: "key:key unix-time-milliseconds:unix-time [condition:string]", summary: "Set the expiration for a key as a UNIX timestamp in milliseconds"},
		{name: "ttl", arity: 2, flags: read, run: runTTL(expiryUnit{seconds: true}), since: "1.0.0", args: "key:key", summary: "Get the time to live for a key in seconds"},
		{name: "pttl", arity: 2, flags: read, run: runTTL(expiryUnit{}), since: "2.6.0", args: "key:key", summary: "Get the time to live for a key in milliseconds"},
		{name: "expiretime", arity: 2, flags: read, run: runTTL(expiryUnit{seconds: true, absolute: true}), since: "7.0.0", args: "key:key", summary: "Get the expiration Unix timestamp for a key"},
		{name: "pexpiretime", arity: 2, flags: read, run: runTTL(expiryUnit{absolute: true}), since: "7.0.0", args: "key:key", summary: "Get the expiration Unix timestamp for a key in milliseconds"},
		{name: "persist", arity: 2, flags: write, run: runPersist, since: "2.2.0", args: "key:key", summary: "Remove the expiration from a key"},
	}
	for _, cmd := range rows {
		cmd.first, cmd.last, cmd.step, cmd.group = 1, 1, 1, "generic"
	}
	return rows
}

// expireOptions are the conditions of EXPIRE.
type expireOptions struct{ nx, xx, gt, lt bool }

func (c *conn) expireOptions(words [][]byte) (o expireOptions, ok bool) {
	for _, w := range words {
		switch string(bytes.ToLower(w)) {
		case "nx":
			o.nx = true
		case "xx":
			o.xx = true
		case "gt":
			o.gt = true
		case "lt":
			o.lt = true
		default:
			c.error("Unsupported option " + printable(w, len(w)))
			return o, false
		}
	}
	switch {
	case o.nx && (o.xx || o.gt || o.lt):
		c.error("NX and XX, GT or LT options at the same time are not compatible")
		return o, false
	case o.gt && o.lt:
		c.error("GT and LT options at the same time are not compatible")
		return o, false
	}
	return o, true
}

// met tells whether an expiry may be changed to at.
func (o expireOptions) met(now time.Time, at int64) bool {
	never := now.IsZero()
	switch {
	case o.nx:
		return never
	case o.xx && never, o.gt && never:
		return false
	case o.gt:
		return at > now.UnixMilli()
	case o.lt:
		return never || at < now.UnixMilli()
	default:
		return true
	}
}

func runExpire(u expiryUnit) func(*conn, [][]byte) {
	return func(c *conn, args [][]byte) {
		key := args[1]
		o, ok := c.expireOptions(args[3:])
		if !ok {
			return
		}
		at, ok := c.integerArg(args[2])
		if !ok {
			return
		}
		now := c.now()
		bad := u.seconds && (at > math.MaxInt64/1000 || at < math.MinInt64/1000)
		if u.seconds {
			at *= 1000
		}
		if !u.absolute {
			bad = bad || at > math.MaxInt64-now
			at += now
		}
		if bad {
			c.error("invalid expire time in '" + string(bytes.ToLower(args[0])) + "' command")
			return
		}
		e, found := c.s.engine.Lookup(key)
		switch {
		case !found || !o.met(e.Expires, at):
			c.integer(0)
		case at <= now:
			if c.remove(key) {
				c.event(generic, "del", key)
				c.integer(1)
			}
		default:
			if c.putMade(e.Made, key, e.Value, fromMilli(at), false) {
				c.integer(1)
				c.event(generic, "expire", key)
			}
		}
	}
}

func runTTL(u expiryUnit) func(*conn, [][]byte) {
	return func(c *conn, args [][]byte) {
		e, found, ok := c.read(args[1])
		if !ok {
			return
		}
		switch {
		case !found:
			c.integer(-2)
			return
		case e.Expires.IsZero():
			c.integer(-1)
			return
		}
		ms := e.Expires.UnixMilli()
		if !u.absolute {
			ms = max(ms-c.now(), 0)
		}
		if u.seconds {
			ms = (ms + 500) / 1000
		}
		c.integer(ms)
	}
}

func runPersist(c *conn, args [][]byte) {
	e, found := c.s.engine.Lookup(args[1])
	if !found || e.Expires.IsZero() {
		c.integer(0)
		return
	}
	if c.putMade(e.Made, args[1], e.Value, time.Time{}, false) {
		c.event(generic, "persist", args[1])
		c.integer(1)
	}
}
