package client

import (
	"cmp"
	"context"
	"math"
	mathrand "math/rand/v2"
	"time"
)

// A turn is what a session remembers of its last turn with a lock.
type turn struct {
	again    time.Time     // if other clients acquired the lock meanwhile: when to compete for it again
	usual    time.Duration // how long the session waits; one turn changes it little, so that no bad luck lasts
	alone    int           // if no others did: how many times in a row the session let them try first, and nobody did
	released time.Time     // when the session released the lock
	gaveWay  time.Time     // when it came back, let others try first, and nobody did
}

// setTurn records a turn.
func (s *Session) setTurn(name string, set func(*turn)) {
	const most = 64 // locks for which a session keeps turns
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.turns[name]
	if s.turns == nil || !known && len(s.turns) >= most {
		s.turns = make(map[string]turn)
	}
	set(&t)
	s.turns[name] = t
}

// away returns how long to stay away from the lock. A client that had to wait for a lock that passes quickly has no chance
// before those that wait already, and each client that watches costs notifications.
func (a *acquisition) away() time.Duration {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.last = a.s.turns[a.name]
	return min(time.Until(a.last.again), maxRest, a.left()/2, a.s.o.Timeout/4)
}

// remember records the turn of an acquisition that succeeded.
func (a *acquisition) remember() {
	a.s.setTurn(a.name, func(t *turn) {
		switch pace := a.pace(); {
		case a.handOvers == 0:
			*t = turn{alone: a.last.alone, gaveWay: a.last.gaveWay}
			if a.deferred {
				t.alone++
			}
		case 0 < pace && pace < quickHold:
			waited := time.Since(a.began)
			usual := cmp.Or(a.last.usual, waited)
			usual = min(max(waited, usual*7/8), usual*9/8)
			*t = turn{usual: usual, again: time.Now().Add(usual * 4 / 5)}
		default:
			*t = turn{}
		}
	})
}

// comesBack reports whether to give way to others although the lock is free: the session released it so recently that they
// have had no time to try. As long as there are none, it does so once in a while, so that giving way costs a twentieth of
// the time. On a slow network the watch has given them that time.
func (a *acquisition) comesBack() bool {
	rarely := 20 * giveWay * a.trip()
	return a.roundTrip > 0 && time.Since(a.last.released) < 2*a.trip() && time.Since(a.last.gaveWay) > rarely
}

// giveWay is for how many round trips a session that comes back waits, which is longer than any other waits.
const giveWay = 3

// manyPasses is how many hand-overs a client sees before its turn only if more than three clients wait, even if some of its
// requests are late.
const manyPasses = 6

// wakeTime is the time within which an ordinary system wakes a program that waits: what two clients measure differs by so
// much. Pauses that are to tell who waited longer are thus counted in round trips of at least this long.
const wakeTime = time.Millisecond

// pause returns how long to wait before an attempt on a lock that was released. The client that has waited longest tries
// first: a client that has just come waits for a round trip, and each doubling of the hand-overs that it has waited for
// shortens that by a sixth, or by a seventh if the session had a turn before. Those that are later learn from the watch who has the lock, and do not try.
//
// A client that has seen no other acquire the lock waits twice as long, but at most 5 ms longer. It does not if it has
// waited for quickHold, or if it was alone the last times, which it tests one time in eight. Once a client has seen
// manyPasses others acquire the lock, hand-overs that were quicker show that older clients wait: it then waits for twice the
// difference longer. A session that has just released the lock waits longer than any other.
func (a *acquisition) pause() time.Duration {
	waited, pause := time.Since(a.began), a.rank()
	switch {
	case a.givesWay:
		return giveWay * a.trip()
	case a.handOvers == 0 && a.last.alone >= 3 && mathrand.N(8) > 0:
		return 0
	case a.handOvers == 0 && waited < quickHold:
		pause += min(pause, 5*time.Millisecond)
	case a.handOvers >= manyPasses && a.passed > 0:
		pause += 2 * max(0, pause-a.gap)
	}
	return pause + mathrand.N(a.roundTrip/10+1)
}

// rank returns the pause of a client that has waited for so long, and has seen others acquire the lock.
func (a *acquisition) rank() time.Duration {
	doublings := 6.
	if a.last.usual > 0 { // the clients of a crowd come back: of 100, most have waited for more than six doublings
		doublings = 7
	}
	age := 1 + float64(time.Since(a.began))/float64(min(cmp.Or(a.pace(), quickHold), quickHold))
	return time.Duration(max(0, 1-math.Log2(age)/doublings) * float64(a.trip()))
}

// trip returns the unit of pauses.
func (a *acquisition) trip() time.Duration { return max(a.roundTrip, wakeTime) }

// Notifications cost as much as attempts: each change of the holder wakes every client that waits. So a client that has
// seen the lock pass quickly crowdPasses times, or newPasses times, rests: it does not watch the key for up to half as long
// as it has waited, at most the time in which the lock passes restPasses times, and at most maxRest, for which a lock can
// thus stay free although clients wait. Then it watches for two hand-overs, and for one more after every other rest.
const (
	crowdPasses = 8
	newPasses   = 14 // of a client without an earlier turn: in a crowd of ten, one that waits for its turn has seen fewer
	restPasses  = 24
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
	case at.Sub(a.released) > quickTrips*a.trip():
		a.passed = 0
		return
	case a.passed == 0:
		a.since = at
	}
	a.passed++
	a.roundTrip = min(a.roundTrip, at.Sub(a.released))
	a.gap += (max(0, at.Sub(a.released)-a.roundTrip) - a.gap) / 4
}

// pace returns the mean time in which the lock passed from client to client; 0 = it has not.
func (a *acquisition) pace() time.Duration {
	if a.passed == 0 {
		return a.lastPace
	}
	return time.Since(a.since) / time.Duration(a.passed)
}

// crowded reports whether the lock passes so quickly that this client should rest. A client does not rest if hand-overs take
// so long that much younger clients must have won: then the crowd is small. The oldest clients of a large crowd all try at
// once; the lock is then free for hardly longer than a round trip.
func (a *acquisition) crowded() bool {
	passes := crowdPasses
	switch {
	case a.rests > 0:
		passes = 2 + a.rests/2
	case a.last.usual == 0:
		passes = newPasses
	}
	rank := a.rank()
	return a.passed >= passes && a.pace() < quickHold && max(rank, a.trip()/4) > a.gap*3/4
}

// rest ends the watch, and watches again after a while.
func (a *acquisition) rest(ctx context.Context) error {
	most := min(maxRest, restPasses*a.pace(), time.Since(a.began)/2, a.left()/2)
	limited, cancel := limitTo(ctx, a.left())
	defer cancel()
	a.closeWatch(limited)
	if err := a.s.sleep(ctx, most/2+mathrand.N(max(most/2, 1))); err != nil {
		return err
	}
	a.rests, a.lastPace = a.rests+1, a.pace()
	return a.watch(ctx)
}
