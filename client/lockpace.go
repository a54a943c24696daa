package client

import (
	"cmp"
	"context"
	"math"
	mathrand "math/rand/v2"
	"time"
)

// pause returns how long to wait before an attempt on a lock that was released. The client that has waited longest tries
// first: a client that has just come waits for a round trip, and each doubling of the hand-overs that it has waited for
// shortens that by a sixth. Those that are later learn from the watch who has the lock, and do not try.
//
// A client that has seen no other acquire the lock waits twice as long, but at most 5 ms longer. It does not if it has
// waited for quickHold, or if it was alone the last times, which it tests one time in eight. In a crowd, a last hand-over
// that was quicker shows that an older client waits: this client then waits for twice the difference longer.
func (a *acquisition) pause() time.Duration {
	const doublings = 6
	waited := time.Since(a.began)
	age := 1 + float64(waited)/float64(min(cmp.Or(a.pace(), quickHold), quickHold))
	pause := time.Duration(max(0, 1-math.Log2(age)/doublings) * float64(a.roundTrip))
	switch {
	case a.handOvers == 0 && a.last.alone >= 3 && mathrand.N(8) > 0:
		return 0
	case a.handOvers == 0 && waited < quickHold:
		pause += min(pause, 5*time.Millisecond)
	case a.handOvers >= crowdPasses && a.passed > 0:
		pause += 2 * max(0, pause-a.gap)
	}
	return pause + mathrand.N(a.roundTrip/10+1)
}

// Notifications cost as much as attempts: each change of the holder wakes every client that waits. So a client that has
// seen the lock pass quickly crowdPasses times rests: it does not watch the key for about as long as it has waited, at most
// the time in which the lock passes restPasses times, and at most maxRest, for which a lock can thus stay free although
// clients wait. After each rest it watches for one more hand-over than after the one before, so that the oldest hardly rest.
const (
	crowdPasses = 12
	restPasses  = 64
	maxRest     = 2 * time.Second

	// The lock passes quickly if it was free for at most quickTrips round trips, so that enough clients watch
	// it, and was held for less than quickHold on average.
	quickTrips = 3
	quickHold  = 100 * time.Millisecond
)

func (a *acquisition) countPass(at time.Time) {
	if a.released.IsZero() {
		return // the lock was free when the watch began
	}
	a.handOvers++
	switch {
	case at.Sub(a.released) > quickTrips*a.roundTrip:
		a.passed = 0
		return
	case a.passed == 0:
		a.since = at
	}
	a.passed++
	a.roundTrip = min(a.roundTrip, at.Sub(a.released))
	a.gap = max(0, at.Sub(a.released)-a.roundTrip)
}

// pace returns the mean time in which the lock passed from client to client; 0 = it has not.
func (a *acquisition) pace() time.Duration {
	if a.passed == 0 {
		return a.lastPace
	}
	return time.Since(a.since) / time.Duration(a.passed)
}

// crowded reports whether the lock passes so quickly that this client should rest.
func (a *acquisition) crowded() bool {
	passes := crowdPasses
	if a.rests > 0 {
		passes = a.rests + 2
	}
	return a.passed >= passes && a.pace() < quickHold
}

// rest ends the watch, and watches again after a while.
func (a *acquisition) rest(ctx context.Context) error {
	most := min(maxRest, restPasses*a.pace(), time.Since(a.began), a.left()/2)
	limited, cancel := limitTo(ctx, a.left())
	defer cancel()
	a.closeWatch(limited)
	if err := a.s.sleep(ctx, most/3+mathrand.N(max(most*2/3, 1))); err != nil {
		return err
	}
	a.rests, a.lastPace = a.rests+1, a.pace()
	return a.watch(ctx)
}
