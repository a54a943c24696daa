package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
)

// expiries records this gateway's writes with an expiry. A notification of the store does not show
// whether a SET has an expiry, or whether a key was deleted or has expired. For its own writes, the
// gateway can tell from these records.
type expiries struct {
	mu       sync.Mutex
	inflight map[string][]*expiringWrite // writes without a reply, by key
	written  map[string]expiry           // the last acknowledged write, by key
	bytes    int                         // total length of the keys in written
	swept    time.Time                   // time of the last sweep
}

type expiringWrite struct {
	began   time.Time
	after   time.Duration // the key expires this long after the write
	watched bool          // the gateway watches the key
	done    chan struct{} // closed when the outcome is known
}

// An expiry records when one version of a key expires.
type expiry struct {
	version client.Version
	after   time.Duration // the key expires this long after the write
	due     time.Time     // earliest time of the expiry, by the local clock

	// replaced has the versions of earlier writes, if the key is watched: their notifications may
	// still arrive.
	replaced []client.Version
}

const (
	// maxExpiries is the maximum number of keys in expiries.written, and maxExpiryBytes the maximum of
	// their total length in bytes. The expiry of any other key is reported as a deletion.
	maxExpiries    = 1 << 16
	maxExpiryBytes = 16 << 20
	// maxReplaced is the maximum length of expiry.replaced. If the notification of a write comes after
	// more than maxReplaced later writes, the write counts as a SET without an expiry.
	maxReplaced = 256
	// maxLateness is how long after its due time an expiry is still expected.
	maxLateness = time.Minute
	// replyTimeout is how long a notification waits for the replies to writes in flight. The version
	// in a reply shows whether the notification is about that write.
	replyTimeout = time.Second
)

func newExpiries() *expiries {
	return &expiries{inflight: make(map[string][]*expiringWrite), written: make(map[string]expiry)}
}

// begin records a SET that is about to be sent. The caller must call finish afterwards.
func (x *expiries) begin(key string, after time.Duration, watched bool) *expiringWrite {
	w := &expiringWrite{began: time.Now(), after: after, watched: watched, done: make(chan struct{})}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inflight[key] = append(x.inflight[key], w)
	return w
}

// finish records the reply to a SET. r is nil if the SET was not sent, was refused or got no reply.
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
	if known && before.version.Compare(set.Version) >= 0 { // the reply to a later write came first
		if w.watched {
			before.addReplaced(set.Version)
			x.written[key] = before
		}
		return
	}
	if now := time.Now(); x.full(key) && now.Sub(x.swept) > time.Second {
		x.sweep(now)
	}
	if !known {
		if x.full(key) {
			return
		}
		x.bytes += len(key)
	}
	e := expiry{version: set.Version, after: w.after, due: w.began.Add(w.after)}
	if known && w.watched {
		before.addReplaced(before.version)
		e.replaced = before.replaced
	}
	x.written[key] = e
}

// addReplaced appends a version to e.replaced, and drops the first ones beyond maxReplaced.
func (e *expiry) addReplaced(v client.Version) {
	e.replaced = append(e.replaced, v)
	e.replaced = e.replaced[max(0, len(e.replaced)-maxReplaced):]
}

// full reports whether there is no room for another key. x.mu must be held.
func (x *expiries) full(key string) bool {
	return len(x.written) >= maxExpiries || x.bytes+len(key) > maxExpiryBytes
}

// forget removes the record of a key. x.mu must be held.
func (x *expiries) forget(key string) {
	x.bytes -= len(key)
	delete(x.written, key)
}

// sweep forgets the writes whose expiry was due more than maxLateness ago. x.mu must be held.
func (x *expiries) sweep(now time.Time) {
	x.swept = now
	for key, e := range x.written {
		if now.After(e.due.Add(maxLateness)) {
			x.forget(key)
		}
	}
}

// last returns the last acknowledged write of key with an expiry. It first waits up to replyTimeout
// for the replies to writes of key that are in flight.
func (x *expiries) last(key string) (e expiry, known bool) {
	x.mu.Lock()
	inflight := slices.Clone(x.inflight[key])
	x.mu.Unlock()
	if len(inflight) > 0 {
		limit, cancel := context.WithTimeout(context.Background(), replyTimeout)
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

// expires reports whether this gateway wrote this version of key with an expiry.
func (x *expiries) expires(key string, version client.Version) bool {
	e, known := x.last(key)
	return known && !version.IsZero() && (e.version.Equal(version) || slices.ContainsFunc(e.replaced, version.Equal))
}

// expired reports whether a deletion is the expiry of a recorded write. newest is the version in the
// key's last notification before the deletion. deletion is the version in the notification of the
// deletion, and at is the local time when that notification arrived.
//
// The notification of a deletion has the deleted version, a later version, or none. A later version is
// the time of the deletion by the store's clock, so expired compares it with the time in the version of
// the write.
func (x *expiries) expired(key string, newest, deletion client.Version, at time.Time) (is bool) {
	e, known := x.last(key)
	if !known {
		return false
	}
	over := true // the record of the write is no longer needed
	switch order := deletion.Compare(e.version); {
	case newest.Compare(e.version) > 0:
	case order > 0:
		is = !deletion.Time().Before(e.version.Time().Add(e.after))
	case order == 0:
		is = !at.Before(e.due)
	case !deletion.IsZero():
		over = false // the deleted version is older than the write
	default:
		is = !at.Before(e.due)
		over = is || newest.Equal(e.version)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if now, known := x.written[key]; over && known && now.version.Equal(e.version) {
		x.forget(key)
	}
	return is
}
