package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/client/wait"
)

// unconfirmed counts the requests for a lock whose outcome is unknown: the store may have
// applied them, or may yet apply them.
type unconfirmed struct {
	n        int           // requests without an answer, each of which may yet be applied
	held     bool          // the lock may be ours, acquired too late to be useful: it must be released
	answered bool          // a later request was answered
	expiry   time.Duration // the longest expiry among those that the broker has not acknowledged
	until    time.Time     // from then on the store applies none of them
}

// add adds the outcome of a request. An answer to a later request means that the broker
// has received all earlier ones, unless they went over another connection, which is closed:
// then only their expiry counts.
func (u *unconfirmed) add(c claim) {
	now := time.Now()
	lost, unknown := errors.AsType[*LostAnswerError](c.err)
	switch {
	case unknown && lost.answered():
		u.held = true // the store has processed it
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

// startExpiry notes that the broker has received all requests: the expiry of those that it
// has not acknowledged counts from now at the latest.
func (u *unconfirmed) startExpiry(now time.Time) {
	if !u.answered && u.expiry > 0 {
		u.until = later(u.until, now.Add(u.expiry))
	}
	u.answered = true
}

// awaitExpiry waits until the store can apply none of the requests any more.
func (u unconfirmed) awaitExpiry(ctx context.Context) error {
	u.startExpiry(time.Now())
	if !wait.For(ctx, time.Until(u.until)) {
		return context.Cause(ctx)
	}
	return nil
}

// undo releases a lock that may have been acquired, and again after the last moment at which
// an earlier request of ours can arrive.
func (s *Session) undo(ctx context.Context, name string, holder []byte, t LockTiming, u unconfirmed) error {
	d, err := s.deleteOwn(ctx, name, holder, t)
	if err != nil || u.n == 0 || u.n == 1 && d.deleted && !u.held {
		return err
	}
	if err := u.awaitExpiry(ctx); err != nil {
		return err
	}
	_, err = s.deleteOwn(ctx, name, holder, t)
	return err
}

// A deletion is the outcome of deleteOwn.
type deletion struct {
	deleted bool      // one of our requests deleted the key
	found   bool      // the key exists, and holds another value
	sent    time.Time // when the last request was sent that was answered
	lost    *LostAnswerError
}

// deleteOwn deletes the lock's key if it holds our value. It sends the request again while
// no answer comes, because to delete twice does no harm, and any answer counts, also a late
// one to an earlier request. A request that stays without an answer could still arrive, so
// deleteOwn waits for its expiry: the next holder may use the same name as we did. lost is
// then the last such request, which may have deleted the key.
//
// If no answer comes before ctx ends, it returns the error of the last request.
func (s *Session) deleteOwn(ctx context.Context, name string, holder []byte, t LockTiming) (d deletion, err error) {
	type answer struct {
		r    VDelResult
		err  error
		sent time.Time
	}
	within := min(t.Interval, s.o.Timeout)
	waiting, stop := context.WithCancel(ctx)
	answers, inFlight := make(chan answer), 0
	defer func() {
		stop()
		for ; inFlight > 0; inFlight-- {
			<-answers
		}
	}()
	answered := false
	var late time.Time // until then an unanswered request may be applied
	again := time.NewTimer(0)
	defer again.Stop()
	var last *request
	var expires time.Time // of the last request
	for attempt := 0; ; {
		select {
		case <-again.C:
			if answered { // and the others have expired
				if inFlight > 0 && d.lost == nil {
					d.lost = last.lostAnswer(context.DeadlineExceeded)
				}
				return d, nil
			}
			if last != nil && time.Since(last.sent) >= time.Second && last.isIgnored() {
				_ = last.conn.Close() // the network path is dead
			}
			attempt++
			limited, cancel := context.WithTimeout(ctx, within)
			p, sendErr := s.send(limited, VDel(name, holder, WriteOptions{}))
			cancel()
			if sendErr != nil {
				err = sendErr
				if s.isFinal(err) || s.ctx.Err() != nil {
					return d, err
				}
				again.Reset(backOff(attempt))
				break
			}
			last = p
			expires = later(expires, p.lostAnswer(nil).Expires)
			inFlight++
			go func() {
				r, err := typed[VDelResult](p.wait(waiting))
				answers <- answer{r, err, p.sent}
			}()
			again.Reset(within)
		case a := <-answers:
			inFlight--
			lost, unknown := errors.AsType[*LostAnswerError](a.err)
			switch {
			case a.err == nil:
				answered = true
				d.sent = later(d.sent, a.sent)
				d.deleted, d.found = d.deleted || a.r.Deleted, a.r.Found && !a.r.Deleted
			case unknown:
				d.lost, err = lost, lost
				if !lost.answered() {
					late = later(late, lost.Expires)
				}
			case s.isFinal(a.err) || s.ctx.Err() != nil:
				return d, a.err
			default:
				err = a.err
			}
			switch {
			case !answered && inFlight == 0:
				again.Reset(backOff(attempt))
			case answered && inFlight == 0:
				again.Reset(time.Until(late))
			}
		case <-ctx.Done():
			switch {
			case inFlight > 0:
				d.lost = last.lostAnswer(context.Cause(ctx))
				err = d.lost
			case err == nil:
				err = context.Cause(ctx)
			}
			if answered {
				return d, nil
			}
			return d, err
		}
		if s.ctx.Err() != nil {
			return d, ErrClosed
		}
		if answered && inFlight > 0 {
			again.Reset(time.Until(expires))
		}
	}
}

// release releases a lock, and again after the last moment at which an earlier request of ours
// can arrive. ours says that the lease lasts: if the lock is gone after an unanswered request,
// that request deleted it.
func (s *Session) release(ctx context.Context, name string, holder []byte, t LockTiming, u unconfirmed, ours bool) error {
	d, err := s.deleteOwn(ctx, name, holder, t)
	if err != nil {
		return err
	}
	if u.n > 0 && (!u.answered || d.sent.Before(u.until)) {
		if err := u.awaitExpiry(ctx); err != nil {
			return err
		}
		if _, err := s.deleteOwn(ctx, name, holder, t); err != nil {
			return err
		}
	}
	switch {
	case d.deleted || !d.found && d.lost != nil && ours:
		return nil
	case !d.found && d.lost != nil:
		return &LockUnknownError{Name: name, Holder: holder, Free: true, Err: fmt.Errorf("releasing it: %w", d.lost.Err)}
	}
	return s.notHolder(ctx, name, d.found)
}

// notHolder returns a NotHolderError that names the present holder, if it can be read.
func (s *Session) notHolder(ctx context.Context, name string, held bool) error {
	status := LockStatus{Name: name, Held: held}
	if held {
		if now, err := s.LockStatus(ctx, name); err == nil {
			status = now
		}
	}
	return &NotHolderError{status}
}

// ReleaseLock releases a lock that o.Holder holds; otherwise the error is a
// *[NotHolderError]. The other options are not used. Other errors come from
// [Session.Do].
//
// An attempt without an answer is repeated until ctx ends or, without a deadline, the
// session's timeout is over. Within that time ReleaseLock also waits until a lost attempt
// can no longer be applied, so that it does not delete a lock that o.Holder acquires
// afterwards. The error is a *[LockUnknownError] if no answer came, or if an attempt got
// none and the next one found the lock free: it may have expired before.
func (s *Session) ReleaseLock(ctx context.Context, name string, o LockOptions) error {
	if err := checkHolder(name, o.Holder); err != nil {
		return err
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	timing := LockTiming{Interval: s.o.Timeout}
	err := s.release(ctx, name, o.Holder, timing, unconfirmed{}, false)
	if lost, unknown := err.(*LostAnswerError); unknown {
		return &LockUnknownError{Name: name, Holder: o.Holder, Err: fmt.Errorf("releasing it: %w", lost.Err)}
	}
	return err
}

func checkHolder(name string, holder []byte) error {
	if len(holder) == 0 {
		return invalid("no holder: give the one that the lock was acquired with")
	}
	return Get(name).Check()
}
