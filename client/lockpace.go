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
	usual    time.Duration // how long they had waited; 0 = not known
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
	if time.Since(a.last.released) < a.last.usual { // otherwise the others may be gone
		a.usual = a.last.usual
	}
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
		case 0 < pace && pace < quickHold && a.usual > 0:
			*t = turn{usual: a.usual, again: time.Now().Add(a.usual * 4 / 5)}
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

// giveWay is for how many round trips a session that comes back waits, which is longer than any other waits whose turn it is.
const giveWay = 3

// wakeTime is the time within which an ordinary system wakes a program that waits: what two clients measure differs by so
// much. Pauses that are to tell who waited longer are thus counted in round trips of at least this long.
const wakeTime = time.Millisecond

// pause returns how long to wait before an attempt on a lock that was released. The client that has waited longest tries
// first, and those that are later learn from the watch who has the lock, and do not try.
//
// A client knows from their holders how long others had waited when they acquired the lock. It tries at once if it has
// waited for nine tenths of that, and otherwise waits for up to earlyTrips, but not longer than quickHold or two round trips,
// so that also on a busy machine somebody whose turn it is comes first.
//
// A client that does not know how long others wait, and has seen none acquire the lock, waits twice as long as its rank says,
// but at most 5 ms longer. It does not if it has waited for quickHold, or if it was alone the last times, which it tests one
// time in eight. A session that has just released the lock gives way to all whose turn it is.
func (a *acquisition) pause() time.Duration {
	waited, pause := time.Since(a.began), a.rank()
	switch {
	case a.givesWay:
		return giveWay * a.trip()
	case a.knows():
		most := min(earlyTrips*a.trip(), max(2*a.trip(), quickHold))
		pause = time.Duration(max(0, 1-float64(waited)/float64(a.usual*9/10)) * float64(most))
	case a.handOvers == 0 && a.last.alone >= 3 && mathrand.N(8) > 0:
		return 0
	case a.handOvers == 0 && waited < quickHold:
		pause += min(pause, 5*time.Millisecond)
	}
	return pause + mathrand.N(a.roundTrip/10+1)
}

// earlyTrips is for how many round trips a client waits whose wait has just begun. A request on a busy machine takes several.
const earlyTrips = 16

// rank returns the pause of a client that does not know how long others had waited. One that has just come waits for a round
// trip, and each doubling of the hand-overs that it has waited for shortens that by a sixth.
func (a *acquisition) rank() time.Duration {
	const doublings = 6
	age := 1 + float64(time.Since(a.began))/float64(min(cmp.Or(a.pace(), quickHold), quickHold))
	return time.Duration(max(0, 1-math.Log2(age)/doublings) * float64(a.trip()))
}

// knows reports whether this client knows how long others wait for the lock.
func (a *acquisition) knows() bool { return a.usual > a.trip() }

// trip returns the unit of pauses.
func (a *acquisition) trip() time.Duration { return max(a.roundTrip, wakeTime) }

// Notifications cost as much as attempts: each change of the holder wakes every client that waits. So a client for which
// the lock passes quickly, but not soon to it, rests: it does not watch the key until four fifths of the usual wait are
// over, at most for four times as long as it has waited. If it does not know the usual wait, or many have waited for as long
// as it has, it rests for up to half as long as it has waited, at random.
const (
	crowdPasses = 14              // clients that wait for a lock are many
	maxRest     = 2 * time.Second // the longest rest, for which a lock can thus stay free although clients wait

	// The lock passes quickly if it was free for at most quickTrips round trips, so that enough clients watch
	// it, and was held for less than quickHold on average.
	quickTrips = 3
	quickHold  = 100 * time.Millisecond
)

// countPass counts a hand-over: the watch has reported a new holder. One that does not tell how long it had waited counts as
// if it had not, so that nobody stands back for long from clients that do not.
func (a *acquisition) countPass(e Event) {
	var waited time.Duration
	if began, ok := waitBegan(e.Value); ok {
		if waited = e.Version.Time().Sub(began); waited < 0 || waited > time.Hour {
			waited = 0
		}
	}
	known := cmp.Or(a.usual, waited)
	a.usual = known + (waited-known)/4
	if a.released.IsZero() {
		return // the lock was free when the watch began
	}
	a.handOvers++
	free := e.Time.Sub(a.released)
	switch {
	case free > quickTrips*a.trip():
		a.passed = 0
		return
	case a.passed == 0:
		a.since = e.Time
	}
	a.passed++
	a.roundTrip = min(a.roundTrip, free)
}

// pace returns the mean time in which the lock passed from client to client; 0 = it has not.
func (a *acquisition) pace() time.Duration {
	if a.passed == 0 {
		return a.lastPace
	}
	return time.Since(a.since) / time.Duration(a.passed)
}

// crowded reports whether this client should rest, because the lock passes quickly among many. A client whose turn it is
// rests only if it is refused again and again, because many have waited equally long.
func (a *acquisition) crowded() bool {
	waited, pace, passes := time.Since(a.began), a.pace(), crowdPasses
	if a.rests > 0 {
		passes = 2 + a.rests/2
	}
	switch {
	case a.passed == 0 || pace >= quickHold:
		return false
	case !a.knows():
		return a.passed >= passes
	case waited < a.usual*4/5:
		return a.passed >= min(passes, 4) && a.usual > crowdPasses*pace
	}
	return a.refusals >= passes && waited < a.usual*5/4
}

// rest ends the watch, and watches again after a while.
func (a *acquisition) rest(ctx context.Context) error {
	waited := time.Since(a.began)
	pause := waited/4 + mathrand.N(waited/4+1)
	if early := a.usual*4/5 - waited; early > 0 {
		pause = min(early, 4*waited)
	}
	limited, cancel := limitTo(ctx, a.left())
	defer cancel()
	a.closeWatch(limited)
	if err := a.s.sleep(ctx, min(pause, maxRest, a.left()/2)); err != nil {
		return err
	}
	a.rests, a.lastPace = a.rests+1, a.pace()
	return a.watch(ctx)
}
