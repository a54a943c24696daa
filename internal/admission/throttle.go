package admission

import (
	"errors"
	"hash/maphash"
	"net/netip"
	"runtime"
	"sync"
	"time"
)

const (
	freeFailures = 5                      // failures without a pause
	firstPause   = 100 * time.Millisecond // pause before the answer to the next failure; each further failure doubles it
	maxPause     = 2 * time.Second
	maxWaiting   = 32          // limit of logins of an address that are checked, or wait for their refusal
	maxOfUser    = 26          // how many of them may name the same user, so that others have places left
	forgetAfter  = time.Minute // time without a failure after which failures are forgotten
	maxAddresses = 10_000      // limit of pairs with recorded failures, and of pairs with a right login
)

// The errors of [Throttle.Check].
var (
	ErrRefused = errors.New("the login is wrong")
	ErrBusy    = errors.New("too many failed logins of this address")
)

// A Throttle delays the refusals of wrong logins from addresses whose earlier logins failed. It also limits how
// many CPUs login checks use. Its methods are safe for concurrent use.
type Throttle struct {
	slots  chan struct{} // holds a value for each running check; capacity: half the CPUs
	closed chan struct{}
	close  sync.Once
	seed   maphash.Seed

	mu     sync.Mutex
	failed map[pair]*failures
	known  map[pair]bool // the pairs that have logged in
}

// A pair is an address and the hash of a user's name: names are long. The user 0 stands for all users that are not
// known at the address: whoever tries many names is slowed down as one.
type pair struct {
	address netip.Prefix
	user    uint64
}

// failures records the failed logins of a pair.
type failures struct {
	at      pair
	turn    chan struct{} // holds a value while a login is checked
	waiting int
	users   map[uint64]int // how many of those that wait name a user
	count   int
	last    time.Time // when the last refusal is answered, which may be in the future
}

// NewThrottle returns a Throttle that has recorded no failures. The caller must close it.
func NewThrottle() *Throttle {
	return &Throttle{
		slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), closed: make(chan struct{}), seed: maphash.MakeSeed(),
		failed: make(map[pair]*failures), known: make(map[pair]bool),
	}
}

// Close makes all waiting calls to Check return ErrRefused. Calling Close again does nothing.
func (t *Throttle) Close() { t.close.Do(func() { close(t.closed) }) }

// Check calls check and returns nil if check returns true, otherwise ErrRefused. After many failures from an
// address, less than a minute apart, its logins are checked one at a time, and their refusals are returned one
// after the other, each after a pause that grows with the number of failures. A right login does not wait for
// refusals. If too many refusals wait, Check returns ErrBusy at once, without a check: otherwise clients that do
// not wait for their refusals could try more passwords. A user who has logged in from the address before does not
// share the address's failures, but has failures of their own there. A first login beside too many refusals of other
// users is refused as well: nothing tells it from a guess, and to check all guesses would take all CPUs. from is the
// client's HOST:PORT. user is the name that it sent, or "".
func (t *Throttle) Check(from, user string, check func() bool) error {
	at := pair{Network(from), maphash.String(t.seed, user)}
	f, ok := t.begin(at)
	if !ok {
		return ErrBusy
	}
	defer t.end(f, at.user)
	good, ok := t.check(f, check)
	if !ok {
		return ErrRefused
	}
	if good {
		t.succeed(at)
		return nil
	}
	timer := time.NewTimer(t.fail(f))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.closed:
	}
	return ErrRefused
}

// check calls check when there is a slot and, after many failures, when it is the login's turn. ok is false if t was
// closed before.
func (t *Throttle) check(f *failures, check func() bool) (good, ok bool) {
	t.mu.Lock()
	slowed := f.count > freeFailures
	t.mu.Unlock()
	if slowed {
		select {
		case f.turn <- struct{}{}:
			defer func() { <-f.turn }()
		case <-t.closed:
			return false, false
		}
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-t.closed:
		return false, false
	}
	return check(), true
}

// begin returns the failures that count for a login from a pair. ok is false if too many logins are waiting. If ok
// is true, the caller must pass the failures to end.
func (t *Throttle) begin(at pair) (f *failures, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	user := at.user
	if !t.known[at] {
		at.user = 0
	}
	f = t.failed[at]
	if f == nil {
		t.makeRoom()
		f = &failures{at: at, turn: make(chan struct{}, 1), users: make(map[uint64]int)}
		t.failed[at] = f
	}
	if f.waiting == 0 && time.Since(f.last) > forgetAfter {
		f.count = 0
	}
	if f.count > freeFailures && (f.waiting >= maxWaiting || f.users[user] >= maxOfUser) {
		return nil, false
	}
	f.waiting++
	f.users[user]++
	return f, true
}

func (t *Throttle) end(f *failures, user uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.waiting--
	if f.users[user]--; f.users[user] == 0 {
		delete(f.users, user)
	}
	if f.waiting == 0 && f.count == 0 && t.failed[f.at] == f {
		delete(t.failed, f.at)
	}
}

func (t *Throttle) succeed(at pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxAddresses && !t.known[at] {
		for forgotten := range t.known {
			delete(t.known, forgotten)
			break
		}
	}
	t.known[at] = true
}

// fail records a failure, and returns how long its refusal must wait.
func (t *Throttle) fail(f *failures) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Sub(f.last) > forgetAfter {
		f.count = 0
	}
	f.count++
	if f.last.Before(now) {
		f.last = now
	}
	if f.count > freeFailures {
		f.last = f.last.Add(min(maxPause, firstPause<<min(f.count-freeFailures-1, 10)))
	}
	return f.last.Sub(now)
}

// makeRoom forgets the failures of one pair if the map is full, preferably of one that has neither a recent failure
// nor a login that waits. The caller holds t.mu.
func (t *Throttle) makeRoom() {
	if len(t.failed) < maxAddresses {
		return
	}
	var forgotten pair
	for at, f := range t.failed {
		if forgotten = at; f.waiting == 0 && time.Since(f.last) > forgetAfter {
			break
		}
	}
	delete(t.failed, forgotten)
}
