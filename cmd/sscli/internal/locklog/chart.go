package locklog

import (
	"slices"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// A Chart collects the statements of a [History] for a timeline. Its memory grows with the
// number of renewals and writes.
type Chart struct {
	from, to time.Time
	locks    []*chartLock
	guards   []*format.GuardLane
}

// A chartLock is a lock of a chart.
type chartLock struct {
	format.LockLanes
	lane int // of the present hold; -1: none
}

// Add adds a statement.
func (c *Chart) Add(e format.LockEvent) {
	c.Until(e.Time)
	if e.Guard {
		c.addGuard(e)
		return
	}
	k := c.lock(e.Name)
	switch e.What {
	case Acquired, TakenOver:
		k.close(e.Time, Gap)
		k.open(e, false)
	case ChangedHands:
		k.close(e.Time, ChangedHands)
		k.open(e, false)
	case Held:
		k.held(e)
	case Renewed, Rewritten:
		if hold := k.hold(); hold != nil {
			hold.Renewals = append(hold.Renewals, e.Time)
		}
	case Released, Expired, Deleted:
		k.close(e.Time, e.What)
	case Free:
		k.close(k.unseen(e.Time), Gap)
	case Lost:
		k.close(e.Time, Lost)
	case Gap:
		k.Gaps = append(k.Gaps, format.Interval{From: e.From, To: e.To})
		c.Until(e.From)
	}
}

// Until extends the chart to a time.
func (c *Chart) Until(t time.Time) {
	if c.from.IsZero() || t.Before(c.from) {
		c.from = t
	}
	if t.After(c.to) {
		c.to = t
	}
}

// Timeline returns what was collected.
func (c *Chart) Timeline() format.Timeline {
	t := format.Timeline{From: c.from, To: c.to}
	for _, k := range c.locks {
		lanes := k.LockLanes
		lanes.Holders = slices.Clone(lanes.Holders)
		if k.lane >= 0 {
			h := &lanes.Holders[k.lane]
			h.Holds = slices.Clone(h.Holds)
			h.Holds[len(h.Holds)-1].To = c.to
		}
		t.Locks = append(t.Locks, lanes)
	}
	for _, g := range c.guards {
		t.Guards = append(t.Guards, *g)
	}
	return t
}

func (c *Chart) lock(name string) *chartLock {
	for _, k := range c.locks {
		if k.Name == name {
			return k
		}
	}
	k := &chartLock{LockLanes: format.LockLanes{Name: name}, lane: -1}
	c.locks = append(c.locks, k)
	return k
}

// hold returns the present hold, or nil.
func (k *chartLock) hold() *format.Hold {
	if k.lane < 0 {
		return nil
	}
	holds := k.Holders[k.lane].Holds
	return &holds[len(holds)-1]
}

// open begins a hold.
func (k *chartLock) open(e format.LockEvent, earlier bool) {
	k.lane = slices.IndexFunc(k.Holders, func(h format.HolderLane) bool {
		return h.Unknown == e.NoHolder && (h.Unknown || h.Holder == e.Holder)
	})
	if k.lane < 0 {
		k.lane = len(k.Holders)
		k.Holders = append(k.Holders, format.HolderLane{Holder: e.Holder, Unknown: e.NoHolder})
	}
	h := &k.Holders[k.lane]
	h.Holds = append(h.Holds, format.Hold{Interval: format.Interval{From: e.Time, To: e.Time}, Open: earlier})
}

// close ends the present hold, if there is one.
func (k *chartLock) close(at time.Time, how string) {
	if hold := k.hold(); hold != nil {
		hold.To, hold.End = at, how
		if at.Before(hold.From) {
			hold.To = hold.From
		}
	}
	k.lane = -1
}

// held takes the statement that a lock is held, after which the same hold may go on.
func (k *chartLock) held(e format.LockEvent) {
	if hold := k.hold(); hold != nil {
		h := k.Holders[k.lane]
		if e.Continuity == string(client.ContinuityProven) || h.Unknown == e.NoHolder && h.Holder == e.Holder {
			return
		}
	}
	k.close(k.unseen(e.Time), Gap)
	k.open(e, true)
}

// unseen returns when a change that was seen at a time may have happened: since the gap
// before, if there is one.
func (k *chartLock) unseen(at time.Time) time.Time {
	if n := len(k.Gaps); n > 0 && !k.Gaps[n-1].To.Before(at) {
		return k.Gaps[n-1].From
	}
	return at
}

func (c *Chart) addGuard(e format.LockEvent) {
	var g *format.GuardLane
	for _, guard := range c.guards {
		if guard.Key == e.Name {
			g = guard
		}
	}
	if g == nil {
		g = &format.GuardLane{Key: e.Name}
		c.guards = append(c.guards, g)
	}
	switch e.What {
	case Written:
		g.Writes = append(g.Writes, e.Time)
	case Removed:
		g.Removed = append(g.Removed, e.Time)
	case Gap:
		g.Gaps = append(g.Gaps, format.Interval{From: e.From, To: e.To})
	}
}
