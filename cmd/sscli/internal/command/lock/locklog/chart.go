package locklog

import (
	"slices"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// A Chart collects the statements of a [History] for a timeline. Its memory grows with the
// number of renewals and writes.
type Chart struct{ timeline format.Timeline }

// Add adds a statement to the chart.
func (c *Chart) Add(e format.LockEvent) {
	c.Until(e.Time)
	lanes := &c.timeline.Locks
	if e.Guard {
		lanes = &c.timeline.Guards
	}
	l := laneOf(lanes, e.Name, false)
	switch e.What {
	case Acquired, TakenOver:
		closeHold(l, e.Time, Gap)
		openHold(l, e)
	case ChangedHands:
		closeHold(l, e.Time, ChangedHands)
		openHold(l, e)
	case Held:
		holder, _ := presentHold(l)
		if holder == nil || e.Continuity != string(client.ContinuityProven) && !is(*holder, e.Holder, e.NoHolder) {
			closeHold(l, earliest(l, e.Time), Gap)
			openHold(l, e)
		}
	case Renewed, Rewritten:
		if _, hold := presentHold(l); hold != nil {
			hold.Renewals = append(hold.Renewals, e.Time)
		}
	case Released, Expired, Deleted, Lost:
		closeHold(l, e.Time, e.What)
	case Free:
		closeHold(l, earliest(l, e.Time), Gap)
	case Written:
		l.Writes = append(l.Writes, e.Time)
	case Removed:
		l.Removed = append(l.Removed, e.Time)
	case Gap:
		l.Gaps = append(l.Gaps, format.Interval{From: e.From, To: e.To})
		c.Until(e.From)
	}
}

// Until extends the chart, if necessary, to include the time t.
func (c *Chart) Until(t time.Time) {
	if c.timeline.From.IsZero() || t.Before(c.timeline.From) {
		c.timeline.From = t
	}
	if t.After(c.timeline.To) {
		c.timeline.To = t
	}
}

// Timeline returns the timeline of all statements so far. The next call to Add may change it.
func (c *Chart) Timeline() format.Timeline {
	for i := range c.timeline.Locks {
		if _, hold := presentHold(&c.timeline.Locks[i]); hold != nil {
			hold.To = c.timeline.To
		}
	}
	return c.timeline
}

// laneOf returns the lane of a lock, a key or a holder. It adds the lane if there is none.
func laneOf(lanes *[]format.Lane, name string, unknown bool) *format.Lane {
	i := slices.IndexFunc(*lanes, func(l format.Lane) bool { return is(l, name, unknown) })
	if i < 0 {
		i = len(*lanes)
		*lanes = append(*lanes, format.Lane{Name: name, Unknown: unknown})
	}
	return &(*lanes)[i]
}

// is reports whether l is the lane for name or, if unknown is true, the lane for unknown holders. All
// unknown holders of a lock share a lane.
func is(l format.Lane, name string, unknown bool) bool {
	return l.Unknown == unknown && (unknown || l.Name == name)
}

// presentHold returns the lane of a lock's current holder and its current hold. Both are nil if
// nobody holds the lock.
func presentHold(lock *format.Lane) (*format.Lane, *format.Hold) {
	for i := range lock.Holders {
		l := &lock.Holders[i]
		if hold := &l.Holds[len(l.Holds)-1]; hold.End == "" {
			return l, hold
		}
	}
	return nil, nil
}

// openHold adds a hold to the lane of the holder in e. For a Held statement, which does not contain
// the time of the acquisition, the hold is marked as Open: the lock was held before e.
func openHold(lock *format.Lane, e format.LockEvent) {
	l := laneOf(&lock.Holders, e.Holder, e.NoHolder)
	l.Holds = append(l.Holds, format.Hold{Interval: format.Interval{From: e.Time, To: e.Time}, Open: e.What == Held})
}

// closeHold ends the current hold, if there is one.
func closeHold(lock *format.Lane, at time.Time, end string) {
	if _, hold := presentHold(lock); hold != nil {
		hold.To, hold.End = at, end
		if at.Before(hold.From) {
			hold.To = hold.From
		}
	}
}

// earliest returns the earliest time at which a change may have happened. This is the beginning of
// the last gap, if the change may have happened during that gap. If not, earliest returns seen, the
// time of the event.
func earliest(l *format.Lane, seen time.Time) time.Time {
	if n := len(l.Gaps); n > 0 && !l.Gaps[n-1].To.Before(seen) {
		return l.Gaps[n-1].From
	}
	return seen
}
