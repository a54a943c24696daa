package gateway

import (
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
)

// expiries knows the keys that this gateway wrote with an expiry. A notification of the
// store says neither that a key was set with an expiry nor that it was deleted because of
// one; for its own writes the gateway can tell.
type expiries struct {
	mu      sync.Mutex
	flights map[string][]*expiringWrite // by key; not answered yet
	written map[string]expiry           // by key; the last write that was answered
	swept   time.Time
}

// An expiringWrite is a SET with an expiry on its way.
type expiringWrite struct {
	flight *client.InFlight
	sent   time.Time
	after  time.Duration // PX
}

// An expiry is that of one version of a key.
type expiry struct {
	version client.Version
	after   time.Duration // PX
	due     time.Time     // by the local clock; the key does not expire before
}

const (
	// mostExpiries bounds the memory for keys that expire. For one that does not fit, a
	// subscriber is told of a deletion.
	mostExpiries = 1 << 16
	// lateExpiry is how long after it is due an expiry is still expected.
	lateExpiry = time.Minute
	// answerDelay is how long a notification waits for the reply that tells whose write it
	// is about. The store sends both at once.
	answerDelay = time.Second
)

func newExpiries() *expiries {
	return &expiries{flights: make(map[string][]*expiringWrite), written: make(map[string]expiry)}
}

// begin notes a SET that was sent.
func (x *expiries) begin(key string, w *expiringWrite) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.flights[key] = append(x.flights[key], w)
}

// answered notes the outcome of a SET that is no longer in flight.
func (x *expiries) answered(key string, w *expiringWrite) {
	r, err := w.flight.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.Index(x.flights[key], w)
	if i < 0 {
		return // noted before
	}
	if left := slices.Delete(x.flights[key], i, i+1); len(left) > 0 {
		x.flights[key] = left
	} else {
		delete(x.flights, key)
	}
	set, ok := r.(client.SetResult)
	before, known := x.written[key]
	if err != nil || !ok || !set.Applied || set.Version.IsZero() || known && before.version.Compare(set.Version) >= 0 {
		return
	}
	if now := time.Now(); len(x.written) >= mostExpiries && now.Sub(x.swept) > time.Second {
		x.sweep(now)
	}
	if known || len(x.written) < mostExpiries {
		x.written[key] = expiry{version: set.Version, after: w.after, due: w.sent.Add(w.after)}
	}
}

// sweep forgets what is over. x.mu is held.
func (x *expiries) sweep(now time.Time) {
	x.swept = now
	for key, e := range x.written {
		if now.After(e.due.Add(lateExpiry)) {
			delete(x.written, key)
		}
	}
}

// last returns the last write of a key with an expiry, once those in flight are answered.
func (x *expiries) last(key string) (e expiry, known bool) {
	x.mu.Lock()
	flights := slices.Clone(x.flights[key])
	x.mu.Unlock()
	if len(flights) > 0 {
		limit := time.NewTimer(answerDelay)
		defer limit.Stop()
		for _, w := range flights {
			select {
			case <-w.flight.Done():
				x.answered(key, w)
			case <-limit.C:
			}
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	e, known = x.written[key]
	return e, known
}

// expires reports whether this gateway wrote a version, with an expiry.
func (x *expiries) expires(key string, version client.Version) bool {
	e, known := x.last(key)
	return known && !version.IsZero() && e.version.Equal(version)
}

// expired reports whether a deletion is an expiry: newest is the last version of the key
// that the store notified of, deletion the version of the deletion, and at its arrival by
// the local clock. It forgets the key.
//
// The version of a deletion may be the one that was deleted, or none. Otherwise it is
// compared with the version of the write: both were read from the store's clock.
func (x *expiries) expired(key string, newest, deletion client.Version, at time.Time) bool {
	e, known := x.last(key)
	if !known {
		return false
	}
	x.mu.Lock()
	delete(x.written, key)
	x.mu.Unlock()
	switch {
	case newest.Compare(e.version) > 0:
		return false // somebody else wrote it later
	case deletion.Compare(e.version) > 0:
		return !deletion.Time().Before(e.version.Time().Add(e.after))
	}
	return !at.Before(e.due)
}
