package admission

import (
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"time"
)

const (
	freeFailures = 5                      // of an address that cost it nothing
	firstPause   = 100 * time.Millisecond // after the next failure; doubled by each further one
	maxPause     = 2 * time.Second
	maxWaiting   = 16          // logins of one address that wait
	forgetAfter  = time.Minute // without a failure
	maxAddresses = 10_000      // that have failed
)

// The errors of [Throttle.Check].
var (
	ErrRefused = errors.New("the login is wrong")
	ErrBusy    = errors.New("too many failed logins of this address")
)

// A Throttle slows down the logins of addresses whose logins failed, and bounds the processor time
// that all checks take. Its methods may be called by several goroutines.
type Throttle struct {
	slots  chan struct{} // one for each check that runs; they leave half of the processors alone
	closed chan struct{}
	close  sync.Once

	mu     sync.Mutex
	failed map[netip.Prefix]*failures
}

// failures are the failed logins of an address.
type failures struct {
	turn    chan struct{} // holds a value while a login of the address is checked
	waiting int
	count   int
	last    time.Time
}

// NewThrottle returns a throttle without failures. The caller closes it.
func NewThrottle() *Throttle {
	return &Throttle{
		slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), closed: make(chan struct{}),
		failed: make(map[netip.Prefix]*failures),
	}
}

// Close ends all waits. Further calls do nothing.
func (t *Throttle) Close() { t.close.Do(func() { close(t.closed) }) }

// Check returns nil if check returns true, and otherwise ErrRefused. Logins of an address of which
// many failed in the last minute are checked one after the other, each after a pause that grows
// with the failures; when too many wait, it returns ErrBusy at once.
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

// begin returns the failures of an address that must wait, and how long; nil if it need not.
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

// fail records a failure.
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

// makeRoom forgets an address if there are too many: one that has not failed lately, or else any.
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
