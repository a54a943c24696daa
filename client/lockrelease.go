package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/internal/retry"
)

// unconfirmed tracks the lock requests whose outcome is unknown: the store may have applied
// them, or may still apply them.
type unconfirmed struct {
	n        int           // requests without a reply, each of which may still be applied
	held     bool          // we may hold the lock, acquired too late to be useful; it must be released
	answered bool          // a later request was answered
	expiry   time.Duration // the longest expiry among the requests that the broker has not acknowledged
	until    time.Time     // when all of the requests have expired, after which the store applies none of them
}

// add adds the outcome of a request. The reply to a later request shows that the broker has
// received all earlier requests on the same connection. Earlier connections are closed; a
// request that was sent on one of them can be applied until it expires.
func (u *unconfirmed) add(c claim) {
	now := time.Now()
	lost, unknown := errors.AsType[*LostReplyError](c.err)
	switch {
	case unknown && lost.answered():
		u.held = true // the store has processed the request
	case unknown:
		u.n++
		if !lost.accepted {
			u.answered = false
			u.expiry = max(u.expiry, lost.expiry)
		}
		u.until = later(u.until, lost.Expires)
	case c.err != nil || u.n == 0:
	case !u.answered:
		u.startExpiry(now)
	case now.After(u.until):
		*u = unconfirmed{held: u.held}
	}
}

// startExpiry records that the broker has received all requests. So the message expiry of the requests
// that the broker has not acknowledged began no later than now.
func (u *unconfirmed) startExpiry(now time.Time) {
	if !u.answered && u.expiry > 0 {
		u.until = later(u.until, now.Add(u.expiry))
	}
	u.answered = true
}

// awaitExpiry waits until all requests have expired, so that the store can apply none of them. It returns an
// error if ctx ends or the session is closed first.
func (s *Session) awaitExpiry(ctx context.Context, u unconfirmed) error {
	u.startExpiry(time.Now())
	return s.sleep(ctx, time.Until(u.until))
}

// undo releases a lock that may have been acquired. If an earlier request may still be applied,
// undo waits until that request has expired, and releases the lock again.
func (s *Session) undo(ctx context.Context, name string, holder []byte, t LockTiming, u unconfirmed) error {
	ctx, stop := s.whileOpen(ctx)
	defer stop()
	d, err := s.deleteOwn(ctx, name, holder, t)
	if err != nil || u.n == 0 || u.n == 1 && d.deleted && !u.held {
		return err
	}
	if err := s.awaitExpiry(ctx, u); err != nil {
		return err
	}
	_, err = s.deleteOwn(ctx, name, holder, t)
	return err
}

// A deletion is the outcome of deleteOwn.
type deletion struct {
	deleted bool      // one of our requests deleted the key
	found   bool      // the key exists and holds another value
	sent    time.Time // when the last answered request was sent
	lost    *LostReplyError
}

// deleteOwn deletes the lock's key if it holds our value. It repeats the request until one is
// answered, because deleting twice does no harm; a reply to any of the requests counts. An
// unanswered request could still arrive later and delete the lock of a next holder that uses
// the same value. So deleteOwn waits until that request has expired. It then sets lost to the
// last unanswered request, which may have deleted the key.
//
// If no reply comes before ctx ends, deleteOwn returns the error of the last request that may have
// deleted the key or, if there is none, of the last request.
func (s *Session) deleteOwn(ctx context.Context, name string, holder []byte, t LockTiming) (deletion, error) {
	waiting, stop := context.WithCancel(ctx)
	d := &deleter{
		s:       s,
		command: VDel(name, holder),
		within:  min(t.Interval, s.o.Timeout),
		replies: make(chan deleteReply),
		again:   time.NewTimer(0),
	}
	defer func() {
		d.again.Stop()
		stop()
		for ; d.inFlight > 0; d.inFlight-- {
			<-d.replies
		}
	}()
	for {
		var final error
		select {
		case <-d.again.C:
			if d.answered { // and the unanswered requests have expired
				if d.inFlight > 0 && d.lost == nil {
					d.lost = d.last.lostReply(ErrNoReply)
				}
				return d.deletion, nil
			}
			final = d.send(ctx, waiting)
		case a := <-d.replies:
			final = d.handle(a)
		case <-ctx.Done():
			return d.end(context.Cause(ctx))
		}
		switch {
		case final != nil:
			return d.deletion, d.orLost(final)
		case s.ctx.Err() != nil:
			return d.deletion, d.orLost(ErrClosed)
		}
		if d.answered && d.inFlight > 0 {
			d.again.Reset(time.Until(d.expires))
		}
	}
}

// A deleter is the state of deleteOwn.
type deleter struct {
	deletion
	s        *Session
	command  Command
	within   time.Duration // time between two requests
	replies  chan deleteReply
	inFlight int
	again    *time.Timer // fires when the next request is due, or the last one has expired
	attempt  int
	last     *request  // the last request sent; nil = none
	expires  time.Time // when all requests sent so far have expired
	late     time.Time // when all requests that ended without a reply have expired
	answered bool
	err      error // the last error
}

type deleteReply struct {
	VDelResult
	err  error
	sent time.Time
}

// send sends a request. Another goroutine waits for the reply, until the context waiting ends, and passes
// the outcome on. send returns an error if another attempt would be useless.
func (d *deleter) send(ctx, waiting context.Context) error {
	if d.last != nil {
		d.s.abandonSilent(d.last.conn, d.last.sent)
	}
	d.attempt++
	limited, cancel := limitTo(ctx, d.within)
	defer cancel()
	done := d.s.observe(limited, d.command)
	if done == nil {
		done = func(Result, error) {}
	}
	r, err := d.s.send(limited, d.command)
	if err != nil {
		done(nil, err)
		d.err = err
		d.again.Reset(retry.Pause(d.attempt, 0))
		return d.ifFinal(err)
	}
	d.last = r
	d.expires = later(d.expires, r.lostReply(nil).Expires)
	d.inFlight++
	go func() {
		reply, err := r.wait(waiting)
		done(reply, err)
		result, err := As[VDelResult](reply, err)
		d.replies <- deleteReply{result, err, r.sent}
	}()
	d.again.Reset(d.within)
	return nil
}

// ifFinal returns err if another attempt would be useless.
func (d *deleter) ifFinal(err error) error {
	if d.s.isFinal(err) || d.s.ctx.Err() != nil {
		return err
	}
	return nil
}

// handle handles the outcome of a request. It returns an error if another attempt would be
// useless.
func (d *deleter) handle(a deleteReply) error {
	d.inFlight--
	lost, unknown := errors.AsType[*LostReplyError](a.err)
	switch {
	case a.err == nil:
		d.answered = true
		d.sent = later(d.deletion.sent, a.sent)
		d.deleted, d.found = d.deleted || a.Deleted, a.Found && !a.Deleted
	case unknown:
		d.lost, d.err = lost, lost
		if !lost.answered() {
			d.late = later(d.late, lost.Expires)
		}
	default:
		d.err = a.err
		if err := d.ifFinal(a.err); err != nil {
			return err
		}
	}
	switch {
	case d.inFlight > 0:
	case d.answered:
		d.again.Reset(time.Until(d.late))
	default:
		d.again.Reset(retry.Pause(d.attempt, 0))
	}
	return nil
}

// end returns the outcome when the context has ended; cause is the reason why it ended.
func (d *deleter) end(cause error) (deletion, error) {
	switch {
	case d.inFlight > 0:
		d.lost = d.last.lostReply(cause)
	case d.err == nil:
		d.err = cause
	}
	if d.answered {
		return d.deletion, nil
	}
	return d.deletion, d.orLost(d.err)
}

// orLost returns the error of an unanswered request that may have deleted the key. If there was no such
// request, it returns err.
func (d *deleter) orLost(err error) error {
	if d.lost != nil {
		return d.lost
	}
	return err
}

// release releases a lock. If an earlier request may still be applied, release waits until that request
// has expired, and releases the lock again. ours is true if the lock was not lost before the release. In
// that case, if the lock is gone after an unanswered request to delete it, that request deleted it.
func (s *Session) release(ctx context.Context, name string, holder []byte, t LockTiming, u unconfirmed, ours bool) error {
	ctx, stop := s.whileOpen(ctx)
	defer stop()
	d, err := s.deleteOwn(ctx, name, holder, t)
	if err != nil {
		return err
	}
	if u.n > 0 && (!u.answered || d.sent.Before(u.until)) {
		if err := s.awaitExpiry(ctx, u); err != nil {
			return err
		}
		if _, err := s.deleteOwn(ctx, name, holder, t); err != nil {
			return err
		}
	}
	switch {
	case d.deleted || !d.found && d.lost != nil && ours:
		s.setTurn(name, func(t *turn) { t.released = d.sent })
		return nil
	case d.lost != nil: // one of our requests may have deleted the key, even if another client holds the lock now
		return &LockUnknownError{Name: name, Holder: holder, Over: true, Err: fmt.Errorf("releasing it: %w", d.lost.Err)}
	}
	return s.notHolder(ctx, name, d.found)
}

// notHolder returns a NotHolderError with the current holder, if it can be read.
func (s *Session) notHolder(ctx context.Context, name string, held bool) error {
	status := LockStatus{Name: name, Held: held}
	if held {
		if now, err := s.LockStatus(ctx, name); err == nil {
			status = now
		}
	}
	return &NotHolderError{status}
}

// ReleaseLock releases a lock that holder holds; otherwise the error is a *[NotHolderError]. Other
// errors come from [Session.Do].
//
// ReleaseLock repeats an unanswered request until ctx ends or, if ctx has no deadline, until
// Options.Timeout has passed. Within that time it also waits until an unanswered request can no
// longer be applied, so that it does not delete a lock that holder acquires afterwards. The
// error is a *[LockUnknownError] if no reply came, or if one request got no reply and a later
// one found the lock free or held by another: the lock may have expired before the release.
func (s *Session) ReleaseLock(ctx context.Context, name string, holder []byte) error {
	if err := s.checkHolder(name, holder); err != nil {
		return err
	}
	if err := s.reach(ctx); err != nil {
		return err
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	timing := LockTiming{Interval: s.o.Timeout}
	err := s.release(ctx, name, holder, timing, unconfirmed{}, false)
	if lost, unknown := err.(*LostReplyError); unknown {
		return &LockUnknownError{Name: name, Holder: holder, Err: fmt.Errorf("releasing it: %w", lost.Err)}
	}
	return err
}

func (s *Session) checkHolder(name string, holder []byte) error {
	if err := s.check(); err != nil {
		return err
	}
	if len(holder) == 0 {
		return invalid("no holder: give the one that the lock was acquired with")
	}
	return Get(name).Check()
}
