package client

import "time"

// DefaultLockTTL is the TTL of a lock whose options do not set one.
const DefaultLockTTL = 15 * time.Second

// minLockInterval is the shortest LockTiming.Interval that Timing accepts.
const minLockInterval = 200 * time.Millisecond

// LockTiming holds the times of a lease. They are measured with the local clock only, so a clock
// that shows the wrong time does no harm. The Margin allows for a clock that runs fast or slow, and
// for the delay before the client acts.
//
//	sent ──────── renewals, each Interval ────────▶ Term ─── Grace ──▶ Until ─ Margin ─▶ the lock expires
//	 0     Interval    2 Interval     3 Interval = TTL−Margin−Grace   TTL−Margin        TTL, at the earliest
//
// All times count from the moment when the last successful request was sent; the store starts
// the TTL later. A renewal is due every Interval and must be answered within one Interval.
type LockTiming struct {
	TTL      time.Duration // time to live of the key
	Margin   time.Duration // time between Lease.Until and the key's expiry
	Grace    time.Duration // time between Lease.Term and Lease.Until
	Interval time.Duration // (TTL − Margin − Grace) / 3
}

// Timing returns the timing with the defaults filled in: a TTL of DefaultLockTTL, a Margin of a tenth
// of the TTL but at most 2 s, and a Grace of a quarter of the TTL but at most 5 s. The error is an
// *[InvalidError], for example if the Interval would be less than 200 ms.
func (o LockOptions) Timing() (LockTiming, error) {
	t := LockTiming{TTL: o.TTL, Margin: o.Margin, Grace: max(o.Grace, 0)}
	if t.TTL == 0 {
		t.TTL = DefaultLockTTL
	}
	if t.Margin == 0 {
		t.Margin = min(2*time.Second, t.TTL/10)
	}
	if o.Grace == 0 {
		t.Grace = min(5*time.Second, t.TTL/4)
	}
	t.Interval = (t.TTL - t.Margin - t.Grace) / 3
	switch {
	case t.TTL < 0 || t.TTL%time.Millisecond != 0:
		return t, invalid("a lock's time to live of %v: expected whole milliseconds", t.TTL)
	case t.Margin < 0:
		return t, invalid("the margin %v of a lock must not be negative", t.Margin)
	case t.Interval < minLockInterval:
		least := 3*minLockInterval + t.Margin + t.Grace
		switch { // by default, the margin and the grace grow with the TTL
		case o.Margin == 0 && o.Grace == 0:
			least = 3 * minLockInterval * 100 / 65
		case o.Margin == 0:
			least = min(least-t.Margin+2*time.Second, (least-t.Margin)*10/9)
		case o.Grace == 0:
			least = min(least-t.Grace+5*time.Second, (least-t.Grace)*4/3)
		}
		least = (least + time.Millisecond - 1).Truncate(time.Millisecond)
		return t, invalid("a lock's time to live of %v leaves %v for a renewal, which must be at least %v: use %v or more", t.TTL, max(t.Interval, 0).Round(time.Millisecond), minLockInterval, least)
	}
	return t, nil
}

// lease returns the lease, still without its token, of a successful request that was sent at the
// time sent.
func (t LockTiming) lease(sent time.Time) Lease {
	until := sent.Add(t.TTL - t.Margin)
	return Lease{Sent: sent, Term: until.Add(-t.Grace), Until: until}
}
