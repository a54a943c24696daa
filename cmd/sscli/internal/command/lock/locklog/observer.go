package locklog

import (
	"bytes"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// An Observer counts the renewals by the current holder of a lock. All renewals while the
// connection is lost count as one. If the store does not announce renewals, only [Observer.AddTo] counts
// a renewal, at most one.
type Observer struct {
	held      bool
	holder    []byte
	since     time.Time // when the lock was first seen with this holder
	token     client.Version
	written   time.Time // when the holder was last seen to write the key; zero = not seen
	renewals  int
	intervals time.Duration // sum of the known times between writes by the holder
	n         int           // number of those times
	err       error         // why the lock is no longer watched
}

// NewObserver returns an Observer. The observation begins now.
func NewObserver() *Observer { return &Observer{since: time.Now()} }

// See handles an event of the lock's key.
func (o *Observer) See(e client.Event) {
	switch e.Kind {
	case client.EventError:
		o.err = e.Err
		return
	case client.EventSet:
		if !e.HasValue {
			return // the notification does not say who wrote; AddTo compares the tokens
		}
	case client.EventInitial, client.EventResync, client.EventDelete:
	default:
		return
	}
	if !o.held || !e.HasValue || !bytes.Equal(o.holder, e.Value) {
		since := e.Time
		if e.Kind == client.EventInitial {
			since = o.since
		}
		*o = Observer{held: e.HasValue, holder: e.Value, since: since, token: e.Version}
		if e.Kind == client.EventSet {
			o.written = e.Time
		}
		return
	}
	switch {
	case e.Kind == client.EventSet:
		o.renewals++
		if d := interval(o.token, e.Version, o.written, e.Time); d > 0 {
			o.intervals += d
			o.n++
		}
		o.written = e.Time
	case !e.Version.Equal(o.token):
		o.renewals++ // at least one, while the connection was lost
		o.written = time.Time{}
	}
	o.token = e.Version
}

// interval returns the time between two writes with the versions a and b, or 0 if it is not known.
// If both versions are known, interval compares their times, which are from the store's clock.
// Otherwise, interval compares the local times atA and atB.
func interval(a, b client.Version, atA, atB time.Time) time.Duration {
	switch {
	case !a.IsZero() && !b.IsZero():
		return b.Time().Sub(a.Time())
	case !atA.IsZero() && !atB.IsZero():
		return atB.Sub(atA)
	}
	return 0
}

// Err returns why the lock is no longer watched, or nil if it is still watched.
func (o *Observer) Err() error { return o.err }

// AddTo adds the observed renewals to status. d is how long the lock was observed before status was
// read.
func (o *Observer) AddTo(status *format.LockStatus, d time.Duration) {
	r := &status.Renewals
	r.Observed = d
	if !status.Held || !o.held || status.Holder != string(o.holder) {
		return
	}
	if r.Observed, r.Seen = min(d, time.Since(o.since)), o.renewals; o.n > 0 {
		r.Every = o.intervals / time.Duration(o.n)
	}
	switch {
	case !status.Token.IsZero() && !o.token.IsZero() && status.Token.String() != o.token.String():
		r.Seen++ // a renewal whose notification is missing or still to come
	case !o.written.IsZero():
		status.Age, status.Seen = time.Since(o.written), true
	}
}
