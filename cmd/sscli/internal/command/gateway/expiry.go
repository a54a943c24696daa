package gateway

import (
	"context"
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

// An expiringWrite is a SET with an expiry.
type expiringWrite struct {
	began   time.Time
	after   time.Duration // PX
	watched bool          // the key is

	sent   chan struct{}    // closed when flight is set
	flight *client.InFlight // nil: it was not sent
}

// An expiry is when one version of a key expires.
type expiry struct {
	version client.Version
	after   time.Duration // PX
	due     time.Time     // by the local clock; the key does not expire before

	// replaced are the versions of earlier writes of a watched key, which the store may
	// still notify of.
	replaced []client.Version
}

const (
	// mostExpiries bounds the memory for keys that expire. For one that does not fit, a
	// subscriber is told of a deletion.
	mostExpiries = 1 << 16
	// mostReplaced bounds how far notifications may be late. For a write before that, a
	// subscriber is not told that it was one with an expiry.
	mostReplaced = 256
	// lateExpiry is how long after it is due an expiry is still expected.
	lateExpiry = time.Minute
	// answerDelay is how long a notification waits for the reply that tells whose write it
	// is about. The store sends both at once.
	answerDelay = time.Second
)

func newExpiries() *expiries {
	return &expiries{flights: make(map[string][]*expiringWrite), written: make(map[string]expiry)}
}

// begin notes a SET that is about to be sent. Its send and then [expiries.answered] must
// follow.
func (x *expiries) begin(key string, after time.Duration, watched bool) *expiringWrite {
	w := &expiringWrite{began: time.Now(), after: after, watched: watched, sent: make(chan struct{})}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.flights[key] = append(x.flights[key], w)
	return w
}

// send notes that a SET is in flight; nil: it was not sent.
func (w *expiringWrite) send(f *client.InFlight) {
	w.flight = f
	close(w.sent)
}

// answered waits for the outcome of a SET and notes it.
func (x *expiries) answered(key string, w *expiringWrite) {
	var r client.Result
	if w.flight != nil {
		r, _ = w.flight.Wait() // nil after an error
	}
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
	if !ok || !set.Applied || set.Version.IsZero() || known && before.version.Compare(set.Version) >= 0 {
		return
	}
	if now := time.Now(); len(x.written) >= mostExpiries && now.Sub(x.swept) > time.Second {
		x.sweep(now)
	}
	if !known && len(x.written) >= mostExpiries {
		return
	}
	e := expiry{version: set.Version, after: w.after, due: w.began.Add(w.after)}
	if known && w.watched {
		e.replaced = append(before.replaced, before.version)
		e.replaced = e.replaced[max(0, len(e.replaced)-mostReplaced):]
	}
	x.written[key] = e
}

// await waits until a SET has an outcome; false means that ctx ended first.
func (w *expiringWrite) await(ctx context.Context) bool {
	select {
	case <-w.sent:
	case <-ctx.Done():
		return false
	}
	if w.flight == nil {
		return true
	}
	select {
	case <-w.flight.Done():
		return true
	case <-ctx.Done():
		return false
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
		limit, cancel := context.WithTimeout(context.Background(), answerDelay)
		defer cancel()
		for _, w := range flights {
			if w.await(limit) {
				x.answered(key, w)
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
	return known && !version.IsZero() && (e.version.Equal(version) || slices.ContainsFunc(e.replaced, version.Equal))
}

// expired reports whether a deletion is an expiry: newest is the last version of the key
// that the store notified of, deletion the version of the deletion, and at its arrival by
// the local clock.
//
// The version of a deletion is the one that was deleted, a later one, or missing. A later
// one is compared with the version of the write: both were read from the store's clock.
func (x *expiries) expired(key string, newest, deletion client.Version, at time.Time) (is bool) {
	e, known := x.last(key)
	if !known {
		return false
	}
	over := true // the write has been deleted or replaced
	switch order := deletion.Compare(e.version); {
	case newest.Compare(e.version) > 0:
	case order > 0:
		is = !deletion.Time().Before(e.version.Time().Add(e.after))
	case order == 0:
		is = !at.Before(e.due)
	case !deletion.IsZero():
		over = false // an earlier version was deleted
	default:
		is = !at.Before(e.due)
		over = is || newest.Equal(e.version)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if over && x.written[key].version.Equal(e.version) {
		delete(x.written, key)
	}
	return is
}
