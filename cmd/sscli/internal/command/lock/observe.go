package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/format"
)

// errObserved ends the observation of locks.
var errObserved = errors.New("the time of --observe is over")

// observeLocks watches locks for a time, and returns an observer for each. An error means that the
// watch ended.
func observeLocks(ctx context.Context, a *app.App, s *client.Session, names []string, d time.Duration) (map[string]*observer, error) {
	w, err := s.Watch(ctx, names, client.WatchOptions{})
	if err != nil {
		return nil, err
	}
	defer w.Close() // the session ends with it
	if len(names) == 1 {
		a.Inform(fmt.Sprintf("observing lock %s for %v", format.Brief(names[0]), d))
	} else {
		a.Inform(fmt.Sprintf("observing %d locks for %v", len(names), d))
	}
	limited, cancel := context.WithTimeoutCause(ctx, d, errObserved)
	defer cancel()
	observers := make(map[string]*observer, len(names))
	for _, name := range names {
		observers[name] = &observer{since: time.Now()}
	}
	var outage app.Outage
	for {
		e, err := outage.Next(limited, a, w, "connecting again")
		if errors.Is(err, errObserved) {
			return observers, nil
		}
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case client.EventDown:
			outage.Trouble(a, e.Err, "connecting again")
		case client.EventUp:
			outage.Over(a, "")
		default:
			if o := observers[e.Key]; o != nil {
				o.see(e)
			}
		}
	}
}

// An observer counts the renewals by the present holder of a lock, as far as it sees them: it
// misses renewals while the connection is lost, and with a store that does not announce renewals.
type observer struct {
	held      bool
	holder    []byte
	since     time.Time // when it was first seen with this holder
	token     client.Version
	written   time.Time // when the holder was last seen to write the key; zero = not seen
	renewals  int
	intervals time.Duration // sum of the times between renewals
	n         int           // number of these times
	err       error         // why the lock is no longer watched
}

// see handles an event of the lock's key.
func (o *observer) see(e client.Event) {
	switch e.Kind {
	case client.EventError:
		o.err = e.Err
		return
	case client.EventSet:
		if !e.HasValue {
			return // the store does not say who wrote; addTo compares the tokens
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
		*o = observer{held: e.HasValue, holder: e.Value, since: since, token: e.Version}
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

// interval returns the time between two renewals: by the store's clock if both have a version,
// else by the local clock. 0 = not known.
func interval(a, b client.Version, atA, atB time.Time) time.Duration {
	switch {
	case !a.IsZero() && !b.IsZero():
		return b.Time().Sub(a.Time())
	case !atA.IsZero() && !atB.IsZero():
		return atB.Sub(atA)
	}
	return 0
}

// addTo adds the renewals to the state of a lock, which was observed for d and then read.
func (o *observer) addTo(status *format.LockStatus, d time.Duration) {
	r := &status.Renewals
	r.Observed = d
	if !status.Held || !o.held || status.Holder != string(o.holder) {
		return
	}
	if r.Observed, r.Seen = min(d, time.Since(o.since)), o.renewals; o.n > 0 {
		r.Every = o.intervals / time.Duration(o.n)
	}
	switch {
	case status.Token != nil && !o.token.IsZero() && status.Token.String() != o.token.String():
		r.Seen++ // a renewal that was not announced, or not yet
	case !o.written.IsZero():
		status.Age, status.Seen = time.Since(o.written), true
	}
}
