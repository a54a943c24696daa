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
	timeline format.Timeline // without the locks
	locks    []*chartLock
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
	if c.timeline.From.IsZero() || t.Before(c.timeline.From) {
		c.timeline.From = t
	}
	if t.After(c.timeline.To) {
		c.timeline.To = t
	}
}

// Timeline returns the timeline until now. It is good until the next call of Add.
func (c *Chart) Timeline() format.Timeline {
	t := c.timeline
	for _, k := range c.locks {
		if hold := k.hold(); hold != nil {
			hold.To = t.To
		}
		t.Locks = append(t.Locks, k.LockLanes)
	}
	return t
}

func (c *Chart) lock(name string) *chartLock {
	i := slices.IndexFunc(c.locks, func(k *chartLock) bool { return k.Name == name })
	if i < 0 {
		i = len(c.locks)
		c.locks = append(c.locks, &chartLock{LockLanes: format.LockLanes{Name: name}, lane: -1})
	}
	return c.locks[i]
}

// hold returns the present hold, or nil.
func (k *chartLock) hold() *format.Hold {
	if k.lane < 0 {
		return nil
	}
	holds := k.Holders[k.lane].Holds
	return &holds[len(holds)-1]
}

// laneOf returns the lane of a holder, or -1.
func (k *chartLock) laneOf(e format.LockEvent) int {
	return slices.IndexFunc(k.Holders, func(h format.HolderLane) bool {
		return h.Unknown == e.NoHolder && (h.Unknown || h.Holder == e.Holder)
	})
}

// open begins a hold.
func (k *chartLock) open(e format.LockEvent, earlier bool) {
	if k.lane = k.laneOf(e); k.lane < 0 {
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

// held adds the statement that a lock is held, which may be about the present hold.
func (k *chartLock) held(e format.LockEvent) {
	if k.lane >= 0 && (e.Continuity == string(client.ContinuityProven) || k.lane == k.laneOf(e)) {
		return
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
	guards := c.timeline.Guards
	i := slices.IndexFunc(guards, func(g format.GuardLane) bool { return g.Key == e.Name })
	if i < 0 {
		i = len(guards)
		guards = append(guards, format.GuardLane{Key: e.Name})
		c.timeline.Guards = guards
	}
	switch g := &guards[i]; e.What {
	case Written:
		g.Writes = append(g.Writes, e.Time)
	case Removed:
		g.Removed = append(g.Removed, e.Time)
	case Gap:
		g.Gaps = append(g.Gaps, format.Interval{From: e.From, To: e.To})
	}
}
