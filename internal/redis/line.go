package redis

import (
	"runtime"
	"slices"
	"time"
)

// A connection stands in line if it has read muchWork bytes of requests, or more than manyArgs arguments: some 20
// commands on one key.
const (
	muchWork = 1 << 10
	manyArgs = 64
)

// enterLine locks Options.Line, if there is one, until unlock is called. It does nothing while this connection has
// locked the Local, because Line must be locked first.
func (c *conn) enterLine() {
	if c.s.opts.Line != nil && !c.inLine && !c.locked {
		c.s.opts.Line.Lock()
		c.inLine, c.lockedSince = true, time.Now()
	}
}

// holdsLong reports whether this connection has locked Options.Line or the Local for longer than Options.Hold.
func (c *conn) holdsLong() bool {
	return (c.locked || c.inLine) && time.Since(c.lockedSince) > c.s.opts.Hold()
}

// standInLine waits for the connection's turn in the line of those with much work. The Local is then locked if it
// was before. A transaction that runs does not wait.
func (c *conn) standInLine() {
	if c.inLine || c.executing {
		return
	}
	locked := c.locked
	c.unlock()
	runtime.Gosched() // see yield
	c.enterLine()
	if locked {
		c.lock()
	}
}

// longValue is the size of a value, in bytes, and longQueue the number of queued commands, at which a command counts
// as much work.
const (
	longValue = 16 << 10
	longQueue = 8
)

// isLong reports whether a command takes more than some 20 µs. The Local is locked.
func (c *conn) isLong(cmd *command, args [][]byte) bool {
	switch {
	case cmd.flags&long != 0:
		return true
	case cmd.name == "exec":
		return len(c.queue) > longQueue || slices.ContainsFunc(c.queue, func(q queued) bool { return c.isLong(q.cmd, q.args) })
	case len(args) > manyArgs:
		return true // looking at all keys would take long
	}
	for key := range cmd.keysOf(args) {
		if cmd.flags&writes != 0 && c.s.IsLong(key) {
			return true
		}
		if op, err := c.lookup(key); err == nil && len(op.Entry.Value) > longValue {
			return true
		}
	}
	return false
}
