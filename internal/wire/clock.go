package wire

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// MaxDrift is how far the reading of a Clock may be ahead of the wall clock. The SDKs have the same limit, and
// the store refuses a timestamp or a fencing token that is further ahead of its clock (protocol.md 3.2, 3.4, 4 row 12).
const MaxDrift = 60 * time.Second

// The errors of a [Clock]. The clock is unchanged when a method returns one.
var (
	ErrDrift           = errors.New("the HLC is too far ahead of the wall clock")
	ErrCounterOverflow = errors.New("the HLC counter would overflow")
)

// A Clock is a hybrid logical clock: except in Stamp it never goes back, and is never behind a version
// that it has observed (protocol.md 3.4). It may be used by several goroutines.
type Clock struct {
	now func() time.Time

	mu   sync.Mutex
	last Version
}

// NewClock returns a clock named node. The name must be unique and must not contain a colon.
// now reads the wall clock and is usually time.Now.
func NewClock(node string, now func() time.Time) *Clock {
	return &Clock{now: now, last: Version{Node: node}}
}

// Tick returns a reading greater than all earlier readings, for a message to send. The error wraps
// ErrDrift or ErrCounterOverflow; on an error the clock is unchanged.
func (c *Clock) Tick() (Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tick(c.now().UnixMilli())
}

// Stamp is like Tick at the time wall, for a message that must be sent. Where Tick returns an error, the
// wall clock was set back. The clock then starts again at wall, because the store accepts a timestamp that
// is behind its clock (protocol.md 3.2).
func (c *Clock) Stamp(wall time.Time) Version {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := wall.UnixMilli()
	if v, err := c.tick(now); err == nil {
		return v
	}
	c.last.Wall, c.last.Counter = now, 0
	return c.last
}

// tick returns the reading after all earlier ones. It requires c.mu.
func (c *Clock) tick(now int64) (Version, error) {
	if now > c.last.Wall {
		return c.move(now, 0, now)
	}
	return c.step(c.last.Wall, c.last.Counter, now)
}

// Observe moves the clock past a received version. It ignores a version whose node is the clock's
// own. The errors are the same as for Tick.
func (c *Clock) Observe(seen Version) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now().UnixMilli()
	var err error
	switch {
	case seen.Node == c.last.Node:
	case now > c.last.Wall && now > seen.Wall:
		_, err = c.move(now, 0, now)
	case c.last.Wall == seen.Wall:
		_, err = c.step(c.last.Wall, max(c.last.Counter, seen.Counter), now)
	case c.last.Wall > seen.Wall:
		_, err = c.step(c.last.Wall, c.last.Counter, now)
	default:
		_, err = c.step(seen.Wall, seen.Counter, now)
	}
	return err
}

// step moves the clock to the reading after wall:counter.
func (c *Clock) step(wall int64, counter uint64, now int64) (Version, error) {
	if counter == math.MaxUint64 {
		return Version{}, ErrCounterOverflow
	}
	return c.move(wall, counter+1, now)
}

func (c *Clock) move(wall int64, counter uint64, now int64) (Version, error) {
	// The difference can overflow if a reading is in the far future, so compare first.
	if limit := MaxDrift.Milliseconds(); wall > now && (wall-now < 0 || wall-now > limit) {
		return Version{}, fmt.Errorf("%w: %d ms, at most %d", ErrDrift, uint64(wall)-uint64(now), limit)
	}
	c.last.Wall, c.last.Counter = wall, counter
	return c.last, nil
}
