package redis

import (
	"math"
	"time"
)

func expireCommands() []*command {
	const (
		write = writes | usesStore | fast | needsExpiry
		read  = reads | usesStore | fast | needsExpiry
	)
	return []*command{
		{name: "expire", arity: -3, flags: write, keys: oneKey, telling: "gt lt", run: runExpire(timeUnit{seconds: true}), since: "1.0.0", args: "key:key seconds:integer [condition:string]", summary: "Set a key's time to live in seconds"},
		{name: "pexpire", arity: -3, flags: write, keys: oneKey, telling: "gt lt", run: runExpire(timeUnit{}), since: "2.6.0", args: "key:key milliseconds:integer [condition:string]", summary: "Set a key's time to live in milliseconds"},
		{name: "expireat", arity: -3, flags: write, keys: oneKey, telling: "gt lt", run: runExpire(timeUnit{seconds: true, absolute: true}), since: "1.2.0", args: "key:key unix-time-seconds:unix-time [condition:string]", summary: "Set the expiration for a key as a UNIX timestamp"},
		{name: "pexpireat", arity: -3, flags: write, keys: oneKey, telling: "gt lt", run: runExpire(timeUnit{absolute: true}), since: "2.6.0", args: "key:key unix-time-milliseconds:unix-time [condition:string]", summary: "Set the expiration for a key as a UNIX timestamp in milliseconds"},
		{name: "ttl", arity: 2, flags: read, keys: oneKey, run: runTTL(timeUnit{seconds: true}), since: "1.0.0", args: "key:key", summary: "Get the time to live for a key in seconds"},
		{name: "pttl", arity: 2, flags: read, keys: oneKey, run: runTTL(timeUnit{}), since: "2.6.0", args: "key:key", summary: "Get the time to live for a key in milliseconds"},
		{name: "expiretime", arity: 2, flags: read, keys: oneKey, run: runTTL(timeUnit{seconds: true, absolute: true}), since: "7.0.0", args: "key:key", summary: "Get the expiration Unix timestamp for a key"},
		{name: "pexpiretime", arity: 2, flags: read, keys: oneKey, run: runTTL(timeUnit{absolute: true}), since: "7.0.0", args: "key:key", summary: "Get the expiration Unix timestamp for a key in milliseconds"},
		{name: "persist", arity: 2, flags: write, keys: oneKey, run: runPersist, since: "2.2.0", args: "key:key", summary: "Remove the expiration from a key"},
	}
}

// expireOptions are the conditions that EXPIRE and its variants accept.
type expireOptions struct{ nx, xx, gt, lt bool }

func parseExpireOptions(words [][]byte) (o expireOptions, err error) {
	flags := map[string]*bool{"nx": &o.nx, "xx": &o.xx, "gt": &o.gt, "lt": &o.lt}
	for _, w := range words {
		flag := flags[lowerWord(w)]
		if flag == nil {
			return o, &Error{Text: "Unsupported option " + printable(w, maxShown)}
		}
		*flag = true
	}
	switch {
	case o.nx && (o.xx || o.gt || o.lt):
		return o, &Error{Text: "NX and XX, GT or LT options at the same time are not compatible"}
	case o.gt && o.lt:
		return o, &Error{Text: "GT and LT options at the same time are not compatible"}
	}
	return o, nil
}

// allow reports whether the expiry of a key may change. from is the current expiry (zero = never). to is
// the new expiry in milliseconds since the Unix epoch.
func (o expireOptions) allow(from time.Time, to int64) bool {
	never := from.IsZero()
	switch {
	case o.nx:
		return never
	case o.xx && never, o.gt && never:
		return false
	case o.gt:
		return to > from.UnixMilli()
	case o.lt:
		return never || to < from.UnixMilli()
	default:
		return true
	}
}

func runExpire(unit timeUnit) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error {
		o, err := parseExpireOptions(args[3:])
		if err != nil {
			return err
		}
		at, err := integerArg(args[2])
		if err != nil {
			return err
		}
		now := c.now()
		wrong := unit.seconds && (at > math.MaxInt64/1000 || at < math.MinInt64/1000)
		if unit.seconds {
			at *= 1000
		}
		if !unit.absolute {
			wrong = wrong || at > math.MaxInt64-now
			at += now
		}
		if wrong {
			return wrongExpiry(lowerWord(args[0]))
		}
		look := c.lookup
		if o.gt || o.lt { // the reply shows whether a guess of the expiry is right
			look = c.lookupShown
		}
		old, err := look(args[1])
		switch {
		case err != nil:
			return err
		case !old.Yes || !o.allow(old.Entry.Expires, at):
			return c.reply(0)
		case at <= now:
			err := c.delete(args[1])
			c.integer(1)
			return err
		}
		_, err = c.do(Op{Verb: Set, Key: old.Key, Value: old.Entry.Value, Expires: fromMilli(at), Encoding: old.Entry.Encoding})
		c.integer(1) // before the event, as in Redis
		if err == nil {
			c.event(classGeneric, "expire", old.Key)
		}
		return err
	}
}

func runTTL(unit timeUnit) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error {
		op, err := c.get(args[1])
		switch {
		case !op.Yes:
			c.integer(-2)
			return err
		case op.Entry.Expires.IsZero():
			return c.reply(-1)
		}
		ms := op.Entry.Expires.UnixMilli()
		if !unit.absolute {
			ms = max(ms-c.now(), 0)
		}
		if unit.seconds {
			ms = (ms + 500) / 1000
		}
		return c.reply(ms)
	}
}

func runPersist(c *conn, args [][]byte) error {
	old, err := c.lookup(args[1])
	if err != nil || !old.Yes || old.Entry.Expires.IsZero() {
		c.integer(0)
		return err
	}
	err = c.put(&Op{Key: old.Key, Value: old.Entry.Value, Encoding: old.Entry.Encoding}, classGeneric, "persist")
	c.integer(1)
	return err
}
