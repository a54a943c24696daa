package admission

import (
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"time"
)

const (
	freeFailures = 5                      // failures per address without a pause
	firstPause   = 100 * time.Millisecond // pause after the next failure; each further failure doubles it
	maxPause     = 2 * time.Second
	maxWaiting   = 16          // limit of waiting and running logins per address
	forgetAfter  = time.Minute // time without a failure after which an address is forgotten
	maxAddresses = 10_000      // limit of addresses with recorded failures
)

// The errors of [Throttle.Check].
var (
	ErrRefused = errors.New("the login is wrong")
	ErrBusy    = errors.New("too many failed logins of this address")
)

// A Throttle slows down logins from addresses whose earlier logins failed. It also limits how many
// CPUs login checks use. Its methods are safe for concurrent use.
type Throttle struct {
	slots  chan struct{} // holds a value for each running check; capacity: half the CPUs
	closed chan struct{}
	close  sync.Once

	mu     sync.Mutex
	failed map[netip.Prefix]*failures
}

// failures records the failed logins from an address.
type failures struct {
	turn    chan struct{} // holds a value while a login from the address pauses or is checked
	waiting int
	count   int
	last    time.Time
}

// NewThrottle returns a Throttle that has recorded no failures. The caller must close it.
func NewThrottle() *Throttle {
	return &Throttle{
		slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), closed: make(chan struct{}),
		failed: make(map[netip.Prefix]*failures),
	}
}

// Close makes all waiting calls to Check return ErrRefused. Calling Close again does nothing.
func (t *Throttle) Close() { t.close.Do(func() { close(t.closed) }) }

// Check calls check and returns nil if check returns true, otherwise ErrRefused. After many
// failures from an address, less than a minute apart, its logins are checked one at a time, each
// after a pause that grows with the number of failures. If too many logins from the address are
// waiting, Check returns ErrBusy at once. from is the client's HOST:PORT.
func (t *Throttle) Check(from string, check func() bool) error {
	address := Network(from)
	f, pause, ok := t.begin(address)
	if !ok {
		return ErrBusy
	}
	if f != nil {
		defer t.end(f)
		select {
		case f.turn <- struct{}{}:
			defer func() { <-f.turn }()
		case <-t.closed:
			return ErrRefused
		}
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.closed:
			return ErrRefused
		}
	}
	select {
	case t.slots <- struct{}{}:
	case <-t.closed:
		return ErrRefused
	}
	good := check()
	<-t.slots
	if good {
		return nil
	}
	t.fail(address)
	return ErrRefused
}

// begin returns the failures of an address and how long its next login must wait. f is nil if the
// login need not wait. ok is false if too many logins are waiting. If f is not nil, the caller must
// pass it to end.
func (t *Throttle) begin(address netip.Prefix) (f *failures, pause time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f = t.failed[address]
	if f == nil || f.count <= freeFailures {
		return nil, 0, true
	}
	if f.waiting == 0 && time.Since(f.last) > forgetAfter {
		delete(t.failed, address)
		return nil, 0, true
	}
	if f.waiting == maxWaiting {
		return nil, 0, false
	}
	f.waiting++
	return f, min(maxPause, firstPause<<min(f.count-freeFailures-1, 10)), true
}

func (t *Throttle) end(f *failures) {
	t.mu.Lock()
	f.waiting--
	t.mu.Unlock()
}

func (t *Throttle) fail(address netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failed[address]
	if f == nil {
		t.makeRoom()
		f = &failures{turn: make(chan struct{}, 1)}
		t.failed[address] = f
	}
	if time.Since(f.last) > forgetAfter {
		f.count = 0
	}
	f.count++
	f.last = time.Now()
}

// makeRoom forgets one address if the map is full, preferably one without a recent failure. The
// caller holds t.mu.
func (t *Throttle) makeRoom() {
	if len(t.failed) < maxAddresses {
		return
	}
	var forgotten netip.Prefix
	for address, f := range t.failed {
		if forgotten = address; time.Since(f.last) > forgetAfter {
			break
		}
	}
	delete(t.failed, forgotten)
}
