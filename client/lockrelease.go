package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/client/wait"
)

// A LockUnknownError means that a request for a lock got no usable answer, and what became
// of it could not be found out. It wraps the cause.
type LockUnknownError struct {
	Name   string
	Holder []byte

	// Free says that the lock is free. What is not known is whether its holder had it
	// until its release.
	Free bool

	// Until is when the lock has expired in any case, by the local clock; zero if not
	// known.
	Until time.Time

	Err error
}

func (e *LockUnknownError) Error() string {
	switch {
	case e.Free:
		return fmt.Sprintf("lock %q is free, but whether %q held it until its release is unknown: %v", e.Name, e.Holder, e.Err)
	case e.Until.IsZero():
		return fmt.Sprintf("lock %q may still be held by %q: %v", e.Name, e.Holder, e.Err)
	}
	return fmt.Sprintf("lock %q may be held by %q until %s: %v", e.Name, e.Holder, e.Until.UTC().Format(time.RFC3339), e.Err)
}

func (e *LockUnknownError) Unwrap() error { return e.Err }

// doubt counts the requests for a lock that the store may have applied, or may yet apply,
// without our knowing.
type doubt struct {
	n       int           // requests without an answer, each of which may yet be applied
	held    bool          // the lock may be ours, and is of no use: it must be released
	settled bool          // a later request was answered
	expiry  time.Duration // the longest expiry among those that the broker has not acknowledged
	until   time.Time     // from then on the store applies none of them
}

// add takes the outcome of a request. An answer to a later request means that the broker
// has received all earlier ones, unless they went over another connection, which is closed:
// then only their expiry counts.
func (d *doubt) add(c claim) {
	now := time.Now()
	lost, unknown := errors.AsType[*LostAnswerError](c.err)
	switch {
	case unknown && lost.answered():
		d.held = true // the store is done with it
	case unknown:
		d.n++
		if !lost.taken {
			d.settled = false
			d.expiry = max(d.expiry, lost.expiry)
		}
		d.until = later(d.until, lost.Expires)
	case c.err != nil || d.n == 0:
	case !d.settled:
		d.settle(now)
	case now.After(d.until):
		*d = doubt{held: d.held}
	}
}

// settle notes that the broker has received all requests: it counts the expiry of those that
// it has not acknowledged from now at the latest.
func (d *doubt) settle(now time.Time) {
	if !d.settled && d.expiry > 0 {
		d.until = later(d.until, now.Add(d.expiry))
	}
	d.settled = true
}

// rest waits until the store can apply none of the requests any more.
func (d doubt) rest(ctx context.Context) error {
	d.settle(time.Now())
	if !wait.For(ctx, time.Until(d.until)) {
		return context.Cause(ctx)
	}
	return nil
}

// undo releases a lock that may have been acquired, and once more when no request of ours
// can arrive any more.
func (s *Session) undo(ctx context.Context, name string, holder []byte, t LockTiming, d doubt) error {
	g, err := s.giveBack(ctx, name, holder, t)
	if err != nil || d.n == 0 || d.n == 1 && g.deleted && !d.held {
		return err
	}
	if err := d.rest(ctx); err != nil {
		return err
	}
	_, err = s.giveBack(ctx, name, holder, t)
	return err
}

// givenBack is the outcome of giveBack.
type givenBack struct {
	deleted bool      // one of our requests deleted the key
	found   bool      // the key exists, and holds another value
	sent    time.Time // when the last request was sent that was answered
	lost    *LostAnswerError
}

// giveBack deletes the lock's key if it holds our value. It sends the request again while
// no answer comes, because to delete twice does no harm, and any answer counts, also a late
// one to an earlier request. A request that stays without an answer could still arrive, so
// giveBack waits for its expiry: the next holder may use the same name as we did. lost is
// then the last such request, which may have deleted the key.
//
// If no answer comes before ctx ends, it returns the error of the last request.
func (s *Session) giveBack(ctx context.Context, name string, holder []byte, t LockTiming) (g givenBack, err error) {
	type answer struct {
		r    VDelResult
		err  error
		sent time.Time
	}
	within := min(t.Interval, s.o.Timeout)
	waiting, stop := context.WithCancel(ctx)
	answers, flying := make(chan answer), 0
	defer func() {
		stop()
		for ; flying > 0; flying-- {
			<-answers
		}
	}()
	answered := false
	var late time.Time // until then an unanswered request may be applied
	again := time.NewTimer(0)
	defer again.Stop()
	var last *pending
	var expires time.Time // of the last request
	for attempt := 0; ; {
		select {
		case <-again.C:
			if answered { // and the others have expired
				if flying > 0 && g.lost == nil {
					g.lost = last.lost(context.DeadlineExceeded)
				}
				return g, nil
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
				if s.isFinal(err) || s.life.Err() != nil {
					return g, err
				}
				again.Reset(backOff(attempt))
				break
			}
			last = p
			expires = later(expires, p.lost(nil).Expires)
			flying++
			go func() {
				r, err := typed[VDelResult](p.wait(waiting))
				answers <- answer{r, err, p.sent}
			}()
			again.Reset(within)
		case a := <-answers:
			flying--
			lost, unknown := errors.AsType[*LostAnswerError](a.err)
			switch {
			case a.err == nil:
				answered = true
				g.sent = later(g.sent, a.sent)
				g.deleted, g.found = g.deleted || a.r.Deleted, a.r.Found && !a.r.Deleted
			case unknown:
				g.lost, err = lost, lost
				if !lost.answered() {
					late = later(late, lost.Expires)
				}
			case s.isFinal(a.err) || s.life.Err() != nil:
				return g, a.err
			default:
				err = a.err
			}
			switch {
			case !answered && flying == 0:
				again.Reset(backOff(attempt))
			case answered && flying == 0:
				again.Reset(time.Until(late))
			}
		case <-ctx.Done():
			switch {
			case flying > 0:
				g.lost = last.lost(context.Cause(ctx))
				err = g.lost
			case err == nil:
				err = context.Cause(ctx)
			}
			if answered {
				return g, nil
			}
			return g, err
		}
		if s.life.Err() != nil {
			return g, ErrClosed
		}
		if answered && flying > 0 {
			again.Reset(time.Until(expires))
		}
	}
}

// release releases a lock, and once more when no request of ours can arrive any more. ours
// says that the lease lasts: a lock that is gone after an unanswered request was deleted by
// it.
func (s *Session) release(ctx context.Context, name string, holder []byte, t LockTiming, d doubt, ours bool) error {
	g, err := s.giveBack(ctx, name, holder, t)
	if err != nil {
		return err
	}
	if d.n > 0 && (!d.settled || g.sent.Before(d.until)) {
		if err := d.rest(ctx); err != nil {
			return err
		}
		if _, err := s.giveBack(ctx, name, holder, t); err != nil {
			return err
		}
	}
	switch {
	case g.deleted || !g.found && g.lost != nil && ours:
		return nil
	case !g.found && g.lost != nil:
		return &LockUnknownError{Name: name, Holder: holder, Free: true, Err: fmt.Errorf("releasing it: %w", g.lost.Err)}
	}
	return s.notHolder(ctx, name, g.found)
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
	err := s.release(ctx, name, o.Holder, timing, doubt{}, false)
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
