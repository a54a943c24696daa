package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/client/mqtt"
)

// A claim is the outcome of one SET NEX of a lock.
type claim struct {
	lease  Lease  // if held
	held   bool   // the store said OK
	gone   bool   // a held lock was not extended: it is free, or was free since the last lease
	holder []byte // another holder's value, so the lock was not extended; nil = none was read
	err    error  // why there is no usable answer
}

// unusable returns why an acquisition cannot be used although the store said OK.
func (c claim) unusable() error {
	switch {
	case c.err != nil || !c.held:
		return c.err
	case c.lease.Token.IsZero():
		return &AnswerError{errors.New("the store sent no version, which is the fencing token")}
	case c.lease.TermIn() <= 0:
		return context.DeadlineExceeded // this process was suspended for a while
	}
	return nil
}

// knownVersions are the versions that the key of a held lock can have if the lock was never
// free since the last lease. Any other version shows that it was free for a time.
type knownVersions struct {
	token Version // of the last lease; zero = any version is possible
	seen  Version // the newest that the watch announced with our value
	more  bool    // and newer ones: from a renewal without an answer, or an event without a version
}

// include reports whether the key may have this version without having been free since the
// last lease.
func (k knownVersions) include(v Version) bool {
	return k.token.IsZero() || v.IsZero() || v.Equal(k.token) || v.Equal(k.seen) || k.more && v.Compare(k.token) > 0
}

// claim acquires a lock or, with the known versions of a held lock, extends it. Once the request is
// sent, ctx no longer ends the wait for its answer, which lasts an Interval at most, and
// not longer than within.
//
// The same request acquires a lock that is free. So a renewal reads the lock first: a lock that
// was deleted during a break, or that a restarted store has forgotten, stays lost. If the store
// restarts between the two requests, the second one acquires the lock again, and nothing shows that
// another client may have held it meanwhile.
func (s *Session) claim(ctx context.Context, name string, o LockOptions, t LockTiming, within time.Duration, held *knownVersions) claim {
	within = min(t.Interval, within)
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	sending, stop := context.WithCancelCause(patience)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	conn, err := s.connection(sending)
	if err != nil {
		return claim{err: err}
	}
	if held != nil {
		_, result, err := s.roundTrip(sending, sending, conn, Get(name))
		r, err := typed[GetResult](result, err)
		switch {
		case err != nil:
			return claim{err: err}
		case !r.Found:
			return claim{gone: true}
		case !bytes.Equal(r.Value, o.Holder):
			return claim{holder: r.Value}
		case !held.include(r.Version):
			return claim{gone: true}
		}
	}
	sent, result, err := s.roundTrip(sending, patience, conn, Set(name, o.Holder, SetOptions{Condition: NEX, TTL: t.TTL}))
	r, err := typed[SetResult](result, err)
	if err != nil {
		return claim{err: err}
	}
	c := claim{lease: t.lease(sent), held: r.Applied}
	c.lease.Holder, c.lease.Token, c.lease.wall = o.Holder, r.Version, o.wall
	return c
}

// roundTrip sends a request for a lock on a given connection and waits for its answer, each
// with its own context.
func (s *Session) roundTrip(sending, waiting context.Context, conn *mqtt.Conn, c Command) (sent time.Time, r Result, err error) {
	request, err := s.sendOn(sending, conn, c)
	if err != nil {
		return time.Time{}, nil, err
	}
	r, err = request.wait(waiting)
	return request.sent, r, err
}

// RenewLock extends a lock that o.Holder holds. It also uses the TTL, Grace and Margin of
// o. If the lock is free, or another holds it, the error is a *[NotHolderError]. If no
// usable answer came, it is a *[LockUnknownError]. Other errors come from
// [Session.Watch] and [Session.Do].
//
// The store has no request that extends a held lock and leaves a free one alone. So
// RenewLock watches and reads the key first. If the lock expires between that and the
// renewal, the renewal acquires it anew; the watch reports the deletion, and RenewLock
// releases the lock again. If the store announces the deletion only after it answered the
// renewal, that goes unnoticed: the lock is held, but another may have held it in between.
func (s *Session) RenewLock(ctx context.Context, name string, o LockOptions) (Lease, error) {
	if err := checkHolder(name, o.Holder); err != nil {
		return Lease{}, err
	}
	t, err := o.Timing()
	if err != nil {
		return Lease{}, err
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	w, err := s.Watch(ctx, []string{name}, WatchOptions{})
	if err != nil {
		return Lease{}, err
	}
	defer w.Close() // a registration that could not be stopped ends with the connection
	c := s.claim(ctx, name, o, t, s.o.Timeout, &knownVersions{})
	lost, unknown := errors.AsType[*LostAnswerError](c.err)
	switch {
	case unknown:
		return Lease{}, &LockUnknownError{Name: name, Holder: o.Holder, Until: later(lost.Expires, time.Now()).Add(t.TTL), Err: fmt.Errorf("renewing it: %w", lost.Err)}
	case c.err != nil:
		return Lease{}, c.err
	case c.gone || c.holder != nil:
		return Lease{}, &NotHolderError{LockStatus{Name: name, Held: !c.gone, Holder: c.holder}}
	case !c.held:
		return Lease{}, s.notHolder(ctx, name, true)
	case !lapsed(w, c.lease.Token):
		return c.lease, c.unusable()
	}
	if _, err := s.deleteOwn(ctx, name, o.Holder, t); err != nil {
		return Lease{}, &LockUnknownError{Name: name, Holder: o.Holder, Until: time.Now().Add(t.TTL), Err: fmt.Errorf("releasing it again: %w", cause(err))}
	}
	return Lease{}, &NotHolderError{LockStatus{Name: name}}
}

// lapsed reports whether a watch has seen a deletion before a version, or found the key
// missing after a break.
func lapsed(w *Watch, version Version) bool {
	for {
		e, ok, err := w.pop()
		if err != nil || !ok {
			return false
		}
		switch {
		case e.Kind == EventDelete && (e.Version.IsZero() || e.Version.Compare(version) < 0):
			return true
		case e.Kind == EventResync && !e.HasValue:
			return true
		}
	}
}
