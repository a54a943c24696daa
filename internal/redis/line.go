package redis

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/internal/admission"
)

// Turns decides when each user of a shared Local may use it.
type Turns interface {
	// Line returns a lock. A connection with many requests locks it before the Local, and so does one that has kept the
	// Local locked for as long as Hold allows and has more to do.
	Line() sync.Locker
	// LineIsLong reports whether many stand in line. A connection with many requests then locks it before it parses them.
	LineIsLong() bool
	// Hold returns how long commands may keep the Local locked at present, so that every client gets a turn soon,
	// however many want one.
	Hold() time.Duration
	// Crowded reports whether others wait for the Local who want little. A command that is much work then stands in
	// line first. Called with the Local locked.
	Crowded() bool
}

// ownTurns are the turns of a server that shares its Local with nobody.
type ownTurns struct{ line admission.Line }

func (t *ownTurns) Line() sync.Locker { return &t.line }
func (t *ownTurns) LineIsLong() bool  { return t.line.IsLong() }
func (*ownTurns) Hold() time.Duration { return maxHold }
func (*ownTurns) Crowded() bool       { return false }

// A connection stands in line if it has read muchWork bytes of requests, or more than manyArgs arguments: some 20
// commands on one key.
const (
	muchWork = 1 << 10
	manyArgs = 64
)

// enterLine locks the line, if there is one, until unlock is called. It does nothing while this connection has
// locked the Local, because the line must be locked first.
func (c *conn) enterLine() {
	if c.s.opts.Turns != nil && !c.inLine && !c.locked {
		c.s.opts.Turns.Line().Lock()
		c.inLine, c.lockedSince = true, time.Now()
	}
}

// holdsLong reports whether this connection has locked the line or the Local for longer than Turns allow.
func (c *conn) holdsLong() bool {
	return (c.locked || c.inLine) && time.Since(c.lockedSince) > c.s.opts.Turns.Hold()
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

// costlyValue is the size of a value, in bytes, and costlyQueue the number of queued commands, at which a command counts
// as much work.
const (
	costlyValue = 16 << 10
	costlyQueue = 8
)

// isCostly reports whether a command takes more than some 20 µs. The Local is locked.
func (c *conn) isCostly(cmd *command, args [][]byte) bool {
	switch {
	case cmd.flags&costly != 0:
		return true
	case cmd.name == "exec":
		return len(c.queue) > costlyQueue || slices.ContainsFunc(c.queue, func(q queued) bool { return c.isCostly(q.cmd, q.args) })
	case len(args) > manyArgs:
		return true // looking at all keys would take long
	}
	for key := range cmd.keysOf(args) {
		if cmd.flags&writes != 0 && c.s.IsCostly(key) {
			return true
		}
		if op, err := c.lookup(key); err == nil && len(op.Entry.Value) > costlyValue {
			return true
		}
	}
	return false
}
