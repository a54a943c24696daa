package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
)

// A claim is the outcome of one SET NEX of a lock.
type claim struct {
	lease  Lease  // if held
	held   bool   // the store answered OK
	gone   bool   // a held lock was not extended: it is free, or has been free since the last lease
	holder []byte // another client's value, so the lock was not extended; nil = none was read
	err    error  // why there is no usable reply
}

// unusable returns the error of the claim or, if the store answered OK, the reason why the lease is
// unusable; nil = the lease is usable.
func (c claim) unusable() error {
	switch {
	case c.err != nil || !c.held:
		return c.err
	case c.lease.Token.IsZero():
		return &ReplyError{errors.New("the store sent no version, which is the fencing token")}
	case c.lease.TermIn() <= 0:
		return ErrNoReply // this process was suspended for a while
	}
	return nil
}

// knownVersions are the versions that a held lock's key can have if the lock has not been free
// since the last lease. Any other version shows that the lock was free for a time.
type knownVersions struct {
	token Version // the last lease's token; zero = any version is possible
	seen  Version // the newest version that the watch reported with our value
	more  bool    // newer versions are possible: a renewal got no reply, or an event had no version
}

// include reports whether the key can have version v if the lock has not been free since the last
// lease.
func (k knownVersions) include(v Version) bool {
	return k.token.IsZero() || v.IsZero() || v.Equal(k.token) || v.Equal(k.seen) || k.more && v.Compare(k.token) > 0
}

// claim acquires a lock or, if held is not nil, extends a held lock. It waits for at most t.Interval,
// or for the duration limit if that is shorter. Once the request is sent, claim waits for the reply
// even if ctx ends.
//
// The request that extends a held lock would also acquire a free one. So claim reads the key
// before it extends a lock: a lock that was deleted during a break, or that a restarted store
// has forgotten, stays lost. If the store restarts between the two requests, the second one
// acquires the lock again. Nothing then shows that another client may have held it in between.
func (s *Session) claim(ctx context.Context, name string, o LockOptions, t LockTiming, limit time.Duration, held *knownVersions) claim {
	patience, cancel := limitTo(context.WithoutCancel(ctx), min(t.Interval, limit))
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
		r, err := As[GetResult](result, err)
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
	r, err := As[SetResult](result, err)
	if err != nil {
		return claim{err: err}
	}
	c := claim{lease: t.lease(sent), held: r.Applied}
	c.lease.Holder, c.lease.Token, c.lease.wall = o.Holder, r.Version, s.wall
	return c
}

// roundTrip sends a lock request on conn and waits for its reply. The context sending limits the
// sending of the request, and the context waiting limits the wait for the reply.
func (s *Session) roundTrip(sending, waiting context.Context, conn *mqtt.Conn, c Command) (sent time.Time, r Result, err error) {
	if done := s.observe(sending, c); done != nil {
		defer func() { done(r, err) }()
	}
	request, err := s.sendOn(sending, conn, c)
	if err != nil {
		return time.Time{}, nil, err
	}
	r, err = request.waitOrAbandon(waiting)
	return request.sent, r, err
}

// RenewLock extends a lock that o.Holder holds, with the TTL, Grace and Margin of o. If the
// lock is free, or another client holds it, the error is a *[NotHolderError]. If no usable
// reply came, the error is a *[LockUnknownError]. RenewLock then returns when the request has
// expired, even if ctx ends before, so that the request does not acquire the lock again after
// [Session.ReleaseLock]. Other errors come from [Session.Watch] and [Session.Do].
//
// The store has no request that extends a held lock and leaves a free one alone. So RenewLock
// first watches and reads the key. If the lock expires between the read and the renewal, the
// renewal acquires it again. The watch then reports the deletion, and RenewLock releases the
// lock. If the store announces the deletion only after it answered the renewal, RenewLock
// succeeds although another client may have held the lock in between.
func (s *Session) RenewLock(ctx context.Context, name string, options ...LockOptions) (Lease, error) {
	o, err := option(options)
	if err = cmp.Or(err, s.checkHolder(name, o.Holder)); err != nil {
		return Lease{}, err
	}
	t, err := o.Timing()
	if err != nil {
		return Lease{}, err
	}
	if err := s.reach(ctx); err != nil {
		return Lease{}, err
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	w, err := s.Watch(ctx, []string{name})
	if err != nil {
		return Lease{}, err
	}
	defer w.closeWithin(ctx) // on an error, the registration ends with the connection
	c := s.claim(ctx, name, o, t, s.o.Timeout, &knownVersions{})
	lost, unknown := errors.AsType[*LostReplyError](c.err)
	switch {
	case unknown:
		var u unconfirmed
		u.add(c)
		limited, cancel := limitTo(context.WithoutCancel(ctx), wholeSeconds(s.o.Timeout))
		defer cancel()
		_ = s.awaitExpiry(limited, u) // an error changes nothing: the outcome is unknown
		return Lease{}, &LockUnknownError{Name: name, Holder: o.Holder, Until: later(lost.Expires, time.Now()).Add(t.TTL), Err: fmt.Errorf("renewing it: %w", lost.Err)}
	case c.err != nil:
		return Lease{}, c.err
	case c.gone || c.holder != nil:
		return Lease{}, &NotHolderError{LockStatus{Name: name, Held: !c.gone, Holder: c.holder}}
	case !c.held:
		return Lease{}, s.notHolder(ctx, name, true)
	case !lapsed(w, c.lease.Token):
		if err := c.unusable(); err != nil {
			return Lease{}, &LockUnknownError{Name: name, Holder: o.Holder, Until: time.Now().Add(t.TTL), Err: fmt.Errorf("renewing it: %w", err)}
		}
		return c.lease, nil
	}
	if _, err := s.deleteOwn(ctx, name, o.Holder, t); err != nil {
		return Lease{}, &LockUnknownError{Name: name, Holder: o.Holder, Until: time.Now().Add(t.TTL), Err: fmt.Errorf("releasing it again: %w", cause(err))}
	}
	return Lease{}, &NotHolderError{LockStatus{Name: name}}
}

// lapsed reports whether the watch saw a deletion before this version, or found the key missing
// after a break.
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
