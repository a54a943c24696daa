package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// A reading is what was read of a lock, or why it could not be read.
type reading struct {
	status format.LockStatus
	err    error
}

// parseObserve reads the value of --observe. Empty is 0, which does not observe.
func parseObserve(text config.Text) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := config.ParseDuration(string(text))
	if err != nil {
		return 0, fault.Usagef("--observe: %w", err)
	}
	if d <= 0 {
		return 0, fault.Usagef("--observe %s: must be greater than 0", text)
	}
	return d, nil
}

// locksInFlight is the number of locks that are read at the same time.
const locksInFlight = 64

// readLocks reads the keys of locks.
func readLocks(ctx context.Context, s *client.Session, names []string) []reading {
	type sent struct {
		f   *client.InFlight
		err error
	}
	queue := make(chan sent, locksInFlight)
	go func() {
		defer close(queue)
		p := s.Pipeline(locksInFlight)
		for _, name := range names {
			f, err := p.Send(ctx, client.Get(name))
			queue <- sent{f, err}
		}
	}()
	readings := make([]reading, 0, len(names))
	for item := range queue {
		var result client.Result
		err := item.err
		if err == nil {
			result, err = item.f.Wait()
		}
		r := reading{status: format.LockStatus{Name: names[len(readings)]}, err: err}
		if got, ok := result.(client.GetResult); ok && err == nil {
			r.status.Held, r.status.Holder = got.Found, string(got.Value)
			r.status.Token, r.status.Age = app.Version(got.Version), time.Since(got.Version.Time())
		}
		readings = append(readings, r)
	}
	return readings
}

// look reads locks, after observing them for d if that is not 0. A lock that cannot be read
// does not keep the others from being observed.
func look(a *app.App, ctx context.Context, s *client.Session, names []string, d time.Duration) ([]reading, error) {
	readings := readLocks(ctx, s, names)
	if d == 0 {
		return readings, nil
	}
	var readable []string
	for _, r := range readings {
		if r.err == nil {
			readable = append(readable, r.status.Name)
		}
	}
	if len(readable) == 0 {
		return readings, nil
	}
	observed, err := observeLocks(a, ctx, s, readable, d)
	if err != nil {
		return nil, err
	}
	for i, r := range readings {
		if r.err == nil {
			readings[i], observed = observed[0], observed[1:]
		}
	}
	return readings, nil
}

// errObserved ends the observation of locks.
var errObserved = errors.New("the time of --observe is over")

// observeLocks watches locks for a time, and then reads them. The error is one of the watch.
func observeLocks(a *app.App, ctx context.Context, s *client.Session, names []string, d time.Duration) ([]reading, error) {
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
	seen := make(map[string]*observer, len(names))
	refused := make(map[string]error)
	for _, name := range names {
		seen[name] = &observer{since: time.Now()}
	}
	var outage app.Outage
	for {
		e, err := outage.Next(limited, a, w, "connecting again")
		if errors.Is(err, errObserved) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case client.EventDown:
			outage.Trouble(a, e.Err, "connecting again")
		case client.EventUp:
			outage.Over(a, "")
		case client.EventError:
			refused[e.Key] = e.Err
		default:
			if o := seen[e.Key]; o != nil {
				o.see(e)
			}
		}
	}
	readings := readLocks(ctx, s, names)
	for i := range readings {
		r := &readings[i]
		if r.err == nil {
			r.err = refused[r.status.Name]
		}
		if r.err == nil {
			seen[r.status.Name].judge(&r.status, d)
		}
	}
	return readings, nil
}

// An observer counts the renewals by the present holder of a lock. It counts what it sees:
// there may have been more in a break, and with a store that does not announce renewals.
type observer struct {
	present bool
	holder  []byte
	since   time.Time // when it was first seen to have this holder
	token   client.Version
	at      time.Time // of the last notification that the holder wrote the key; zero: none
	seen    int
	between time.Duration // the sum of the times between renewals
	n       int           // of those times
}

// see takes an event of the lock's key.
func (o *observer) see(e client.Event) {
	switch e.Kind {
	case client.EventInitial, client.EventResync, client.EventSet, client.EventDelete:
	default:
		return
	}
	if e.Kind == client.EventSet && !e.HasValue {
		return // the store does not say who holds the lock: judge compares the token
	}
	if !o.present || !e.HasValue || !bytes.Equal(o.holder, e.Value) {
		since := e.Time
		if e.Kind == client.EventInitial {
			since = o.since
		}
		*o = observer{present: e.HasValue, holder: e.Value, since: since, token: e.Version}
		if e.Kind == client.EventSet {
			o.at = e.Time
		}
		return
	}
	switch {
	case e.Kind == client.EventSet:
		o.seen++
		if between := apart(o.token, e.Version, o.at, e.Time); between > 0 {
			o.between += between
			o.n++
		}
		o.at = e.Time
	case !e.Version.Equal(o.token):
		o.seen++ // at least once, in the break
		o.at = time.Time{}
	}
	o.token = e.Version
}

// apart returns the time between two renewals: by the store's clock if both have a version,
// else by the local one. 0 means that it is not known.
func apart(a, b client.Version, atA, atB time.Time) time.Duration {
	switch {
	case !a.IsZero() && !b.IsZero():
		return b.Time().Sub(a.Time())
	case !atA.IsZero() && !atB.IsZero():
		return atB.Sub(atA)
	}
	return 0
}

// judge adds what was seen to the present state of a lock, which was observed for d.
func (o *observer) judge(status *format.LockStatus, d time.Duration) {
	status.Renewals.Observed = d
	if !status.Held || !o.present || status.Holder != string(o.holder) {
		return
	}
	r := &status.Renewals
	if r.Observed, r.Seen = min(d, time.Since(o.since)), o.seen; o.n > 0 {
		r.Every = o.between / time.Duration(o.n)
	}
	switch {
	case status.Token != nil && !o.token.IsZero() && status.Token.String() != o.token.String():
		r.Seen++ // it was not announced, or not yet
	case !o.at.IsZero():
		status.Age, status.Seen = time.Since(o.at), true
	}
}
