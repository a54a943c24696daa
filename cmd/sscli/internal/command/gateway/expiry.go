package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
)

// expiries records the keys that this gateway wrote with an expiry. The store's notifications for a
// SET with and without an expiry are alike, and so are those for an expiry and a DEL. With these
// records, the gateway can distinguish them for its own writes.
type expiries struct {
	mu       sync.Mutex
	inflight map[string][]*expiringWrite // by key; writes not answered yet
	written  map[string]expiry           // by key; the latest answered write
	swept    time.Time
}

// An expiringWrite is a SET with an expiry.
type expiringWrite struct {
	began   time.Time
	after   time.Duration // PX
	watched bool          // the gateway watches the key
	done    chan struct{} // closed when the outcome is known
}

// An expiry says when one version of a key expires.
type expiry struct {
	version client.Version
	after   time.Duration // PX
	due     time.Time     // earliest expiry, by the local clock

	// replaced holds the versions of a watched key's earlier writes, whose notifications may still
	// arrive.
	replaced []client.Version
}

const (
	// maxExpiries is the maximum number of keys whose expiry is recorded. The expiry of any other
	// key is reported as a deletion.
	maxExpiries = 1 << 16
	// maxReplaced is how many later writes of a key may be acknowledged before the notification
	// of an earlier one arrives. An even later notification counts as a SET without an expiry.
	maxReplaced = 256
	// maxLateness is how long after its due time an expiry is still expected.
	maxLateness = time.Minute
	// answerTimeout is how long a notification waits for the replies to writes in flight. A reply
	// shows whether the notification is about that write. The store sends both at the same time.
	answerTimeout = time.Second
)

func newExpiries() *expiries {
	return &expiries{inflight: make(map[string][]*expiringWrite), written: make(map[string]expiry)}
}

// begin records a SET that is about to be sent. finish must follow.
func (x *expiries) begin(key string, after time.Duration, watched bool) *expiringWrite {
	w := &expiringWrite{began: time.Now(), after: after, watched: watched, done: make(chan struct{})}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inflight[key] = append(x.inflight[key], w)
	return w
}

// finish records the result of a SET. r is nil if the SET was not sent or not answered.
func (x *expiries) finish(key string, w *expiringWrite, r client.Result) {
	defer close(w.done)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inflight[key] = slices.DeleteFunc(x.inflight[key], func(other *expiringWrite) bool { return other == w })
	if len(x.inflight[key]) == 0 {
		delete(x.inflight, key)
	}
	set, ok := r.(client.SetResult)
	before, known := x.written[key]
	if !ok || !set.Applied || set.Version.IsZero() {
		return
	}
	if known && before.version.Compare(set.Version) >= 0 { // a later write has finished first
		if w.watched {
			before.replaced = append(before.replaced, set.Version)
			x.written[key] = before
		}
		return
	}
	if now := time.Now(); len(x.written) >= maxExpiries && now.Sub(x.swept) > time.Second {
		x.sweep(now)
	}
	if !known && len(x.written) >= maxExpiries {
		return
	}
	e := expiry{version: set.Version, after: w.after, due: w.began.Add(w.after)}
	if known && w.watched {
		e.replaced = append(before.replaced, before.version)
		e.replaced = e.replaced[max(0, len(e.replaced)-maxReplaced):]
	}
	x.written[key] = e
}

// sweep forgets the writes that have certainly expired. x.mu must be held.
func (x *expiries) sweep(now time.Time) {
	x.swept = now
	for key, e := range x.written {
		if now.After(e.due.Add(maxLateness)) {
			delete(x.written, key)
		}
	}
}

// last returns the latest write that gave key an expiry. It first waits up to answerTimeout for
// the replies to the writes of key that are in flight.
func (x *expiries) last(key string) (e expiry, known bool) {
	x.mu.Lock()
	inflight := slices.Clone(x.inflight[key])
	x.mu.Unlock()
	if len(inflight) > 0 {
		limit, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		for _, w := range inflight {
			select {
			case <-w.done:
			case <-limit.Done():
			}
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	e, known = x.written[key]
	return e, known
}

// expires reports whether this gateway wrote a version with an expiry.
func (x *expiries) expires(key string, version client.Version) bool {
	e, known := x.last(key)
	return known && !version.IsZero() && (e.version.Equal(version) || slices.ContainsFunc(e.replaced, version.Equal))
}

// expired reports whether a deletion is an expiry. newest is the version in the latest earlier
// notification of the key, deletion is the version of the deletion, and at is the local time when
// the notification of the deletion arrived.
//
// The notification of a deletion has the deleted version, a later one, or none. A later version is
// compared with the version of the write, because both come from the store's clock.
func (x *expiries) expired(key string, newest, deletion client.Version, at time.Time) (is bool) {
	e, known := x.last(key)
	if !known {
		return false
	}
	over := true // the write was deleted or replaced
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
