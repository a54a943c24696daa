package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/sscli/sscli/client/mqtt"
)

// LockStatus is what is known about a lock.
type LockStatus struct {
	Name   string
	Held   bool
	Holder []byte  // nil if not held, or not known
	Token  Version // from the last acquisition or renewal; zero if not known
}

func (s LockStatus) by() string {
	if s.Holder == nil {
		return "another"
	}
	return fmt.Sprintf("%q", s.Holder)
}

// LockStatus reads a lock's key. The errors are those of [Session.Do].
func (s *Session) LockStatus(ctx context.Context, name string) (LockStatus, error) {
	r, err := s.Get(ctx, name)
	if err != nil {
		return LockStatus{Name: name}, err
	}
	return LockStatus{name, r.Found, r.Value, r.Version}, nil
}

// lockPoll is the longest time between two attempts while waiting for a lock, because a
// notification can be lost.
const lockPoll = 5 * time.Second

// AcquireLock acquires a lock and leaves it to the caller to renew or release it, with
// the lease's Holder in the options of [Session.RenewLock] and [Session.ReleaseLock].
//
// It waits for a lock that another holds, as Try and Wait say. It registers for
// notifications of the key first, so that it misses no release, and tries at least every
// 5 s, because a notification can be lost. The wait survives a broken connection. An
// attempt that is in flight when the wait ends is undone, so that no lock is held without
// anybody knowing; for that the call may outlast ctx by the request's expiry,
// LockTiming.Interval rounded up to a second, and some round trips.
//
// The errors are *[InvalidError], *[LockBusyError], and those of [Session.Do] and
// [Session.Watch]. A *[LostAnswerError] means that an attempt could not be undone: the
// lock may be held for its TTL.
func (s *Session) AcquireLock(ctx context.Context, name string, o LockOptions) (Lease, error) {
	a, err := s.newAcquisition(name, o)
	if err != nil {
		return Lease{}, err
	}
	if !o.Try {
		if err := a.watch(ctx); err != nil {
			return Lease{}, err
		}
		defer a.leave(ctx)
	}
	lease, err := a.run(ctx)
	if err == nil && o.OnLease != nil {
		o.OnLease(lease)
	}
	return lease, err
}

// An acquisition is the attempt to get a lock.
type acquisition struct {
	s      *Session
	name   string
	o      LockOptions
	timing LockTiming
	w      *Watch // nil with LockOptions.Try
	began  time.Time
	status LockStatus // as last seen by the watch
	told   []byte     // the holder last passed to OnWait
	doubt  doubt
}

func (s *Session) newAcquisition(name string, o LockOptions) (*acquisition, error) {
	t, err := o.Timing()
	if err != nil {
		return nil, err
	}
	if o.Wait < 0 {
		return nil, invalid("the wait %v must not be negative", o.Wait)
	}
	if len(o.Holder) == 0 {
		o.Holder = []byte(s.o.ClientID + ":" + rand.Text())
	}
	a := &acquisition{s: s, name: name, o: o, timing: t, began: time.Now(), status: LockStatus{Name: name, Held: true}}
	return a, Get(name).Check()
}

func (a *acquisition) watch(ctx context.Context) (err error) {
	a.w, err = a.s.Watch(ctx, []string{a.name}, WatchOptions{})
	return err
}

func (a *acquisition) leave(ctx context.Context) { a.s.leaveWatch(ctx, a.w) }

// leaveWatch closes the watch of a lock. It takes a moment for that even after ctx has
// ended.
func (s *Session) leaveWatch(ctx context.Context, w *Watch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(s.o.Timeout, 2*time.Second))
	defer cancel()
	// A registration that could not be taken back ends with the connection.
	_ = w.Close(ctx)
}

// run tries and waits until the lock is held or the attempt is given up.
func (a *acquisition) run(ctx context.Context) (Lease, error) {
	answered, failures := false, 0
	for {
		if _, err := a.heed(); err != nil {
			return Lease{}, a.giveUp(ctx, err)
		}
		c := a.s.claim(ctx, a.name, a.o, a.timing, nil)
		if ctx.Err() != nil {
			a.doubt.add(c)
			a.doubt.held = a.doubt.held || c.held
			return Lease{}, a.giveUp(ctx, context.Cause(ctx))
		}
		a.doubt.add(c)
		if c.err = c.useless(); c.err != nil && c.held {
			a.doubt.held = true
		}
		switch {
		case c.err == nil && c.held:
			return c.lease, nil
		case c.err == nil:
			answered, failures = true, 0
		case !answered || a.o.Try || a.s.isFinal(c.err) || a.s.life.Err() != nil:
			return Lease{}, a.giveUp(ctx, c.err)
		default:
			failures++
			if a.o.OnTrouble != nil {
				a.o.OnTrouble(c.err)
			}
		}
		if a.o.Try {
			// Only for the message, so an error does not matter.
			if now, err := a.s.LockStatus(ctx, a.name); err == nil && now.Held {
				a.status = now
			}
			return Lease{}, a.giveUp(ctx, &LockBusyError{Status: a.status})
		}
		if err := a.wait(ctx, failures, c.err); err != nil {
			return Lease{}, a.giveUp(ctx, err)
		}
	}
}

// wait returns nil when it is time to try again: the lock may be free, or a poll is due.
// trouble is the error of the last attempt.
func (a *acquisition) wait(ctx context.Context, failures int, trouble error) error {
	again := lockPoll/2 + mathrand.N(lockPoll/2)
	if failures > 0 {
		again = min(backOff(failures), lockPoll)
	}
	poll := time.NewTimer(again)
	defer poll.Stop()
	var over <-chan time.Time
	if a.o.Wait > 0 {
		limit := time.NewTimer(a.o.Wait - time.Since(a.began))
		defer limit.Stop()
		over = limit.C
	}
	for {
		free, err := a.heed()
		switch {
		case err != nil:
			return err
		case free:
			return nil
		}
		a.waiting()
		select {
		case <-a.w.wake:
		case <-poll.C:
			return nil
		case <-over:
			if trouble != nil {
				return trouble
			}
			return &LockBusyError{Status: a.status, Waited: a.o.Wait}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *acquisition) waiting() {
	if a.o.OnWait == nil || a.told != nil && bytes.Equal(a.told, a.status.Holder) {
		return
	}
	a.told = append([]byte{}, a.status.Holder...)
	a.o.OnWait(a.status)
}

// heed reads the events of the watch. It reports whether the lock may be free, and keeps
// who holds it.
func (a *acquisition) heed() (free bool, err error) {
	for a.w != nil {
		e, ok, err := a.w.pop()
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		switch e.Kind {
		case EventDown:
			if a.o.OnTrouble != nil {
				a.o.OnTrouble(e.Err)
			}
		case EventInitial, EventResync, EventSet, EventDelete:
			free = !e.HasValue && e.Kind != EventSet
			a.status.Holder, a.status.Token = e.Value, e.Version
		}
	}
	return free, nil
}

// giveUp undoes what the attempts may have done, and returns why.
func (a *acquisition) giveUp(ctx context.Context, why error) error {
	if a.doubt.n == 0 && !a.doubt.held {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(time.Until(a.doubt.until), a.doubt.expiry)+2*a.s.o.Timeout)
	defer cancel()
	err := a.s.undo(ctx, a.name, a.o.Holder, a.timing, a.doubt)
	if lost, ok := errors.AsType[*LostAnswerError](why); ok {
		why = lost.Err // either it is undone, or the error below says that it is not
	}
	if err == nil {
		return why
	}
	if lost, ok := errors.AsType[*LostAnswerError](err); ok {
		err = lost.Err
	}
	return &LostAnswerError{
		Command: Set(a.name, a.o.Holder, SetOptions{Condition: NEX}), Expires: a.doubt.until,
		Err: fmt.Errorf("%w; and then it could not be released: %w", why, err),
	}
}

// A claim is the outcome of one SET NEX of a lock.
type claim struct {
	lease  Lease         // if held
	held   bool          // the store said OK
	gone   bool          // not extended: the lock is free
	holder []byte        // not extended: who holds the lock; nil if not known
	err    error         // why there is no usable answer
	expiry time.Duration // of the request
}

// useless returns why an acquisition cannot be used although the store said OK.
func (c claim) useless() error {
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

// claim acquires a lock or, with the watch of a held lock, extends it. Once the request is
// sent, ctx no longer ends the wait for its answer, which lasts an Interval at most.
//
// The same request acquires a lock that is free. So on a connection on which the watch has
// not read the lock, claim reads it first: a lock deleted during a break stays deleted.
func (s *Session) claim(ctx context.Context, name string, o LockOptions, t LockTiming, w *Watch) claim {
	within := min(t.Interval, s.o.Timeout)
	c := claim{expiry: (within + time.Second).Truncate(time.Second)} // at least what send uses
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	sending, stop := context.WithCancelCause(patience)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	conn, err := s.connection(sending)
	if err != nil {
		c.err = err
		return c
	}
	if w != nil && !w.isOn(conn) {
		r, err := typed[GetResult](s.ask(sending, conn, Get(name)))
		if err != nil {
			c.err = err
			return c
		}
		if !r.Found || !bytes.Equal(r.Value, o.Holder) {
			c.gone, c.holder = !r.Found, r.Value
			return c
		}
	}
	p, err := s.sendOn(sending, conn, Set(name, o.Holder, SetOptions{Condition: NEX, TTL: t.TTL}))
	if err != nil {
		c.err = err
		return c
	}
	r, err := typed[SetResult](p.wait(patience))
	if err != nil {
		c.err = err
		p.hangUpIfDead(patience, within)
		return c
	}
	c.lease, c.held = t.lease(p.sent), r.Applied
	c.lease.Holder, c.lease.Token, c.lease.wall = o.Holder, r.Version, o.wall
	return c
}

// ask sends a request for a lock on a given connection.
func (s *Session) ask(ctx context.Context, conn *mqtt.Conn, c Command) (Result, error) {
	p, err := s.sendOn(ctx, conn, c)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	r, err := p.wait(ctx)
	if err != nil {
		p.hangUpIfDead(ctx, time.Since(begin))
	}
	return r, err
}

// hangUpIfDead closes the connection of a request that timed out, if the broker has not
// even sent a PUBACK for a second: the network path is dead, and the keep-alive would
// notice too late. The next attempt then uses a new connection.
func (p *pending) hangUpIfDead(ctx context.Context, waited time.Duration) {
	if waited >= time.Second && errors.Is(context.Cause(ctx), context.DeadlineExceeded) && p.conn.LastReceived().Before(p.sent) {
		_ = p.conn.Close()
	}
}

// doubt counts our unanswered requests for a lock: the store may have applied them, or
// may still do so.
type doubt struct {
	n       int           // unanswered requests
	held    bool          // acquired too late to be useful; must be released
	settled bool          // a later request was answered
	expiry  time.Duration // the longest expiry among them
	until   time.Time     // from then on the store applies none of them
}

// add takes the outcome of a request. An answer to a later request means that the broker
// has all earlier ones, unless they went over another connection, which is closed: then
// only their expiry counts.
func (d *doubt) add(c claim) {
	now := time.Now()
	lost, unknown := errors.AsType[*LostAnswerError](c.err)
	switch {
	case unknown:
		d.n++
		d.settled = false
		d.expiry = max(d.expiry, c.expiry)
		if lost.Expires.After(d.until) {
			d.until = lost.Expires
		}
	case c.err != nil || d.n == 0:
	case !d.settled:
		d.settle(now)
	case now.After(d.until):
		*d = doubt{held: d.held}
	}
}

func (d *doubt) settle(now time.Time) {
	if end := now.Add(d.expiry); !d.settled && end.After(d.until) {
		d.until = end
	}
	d.settled = true
}

// rest waits until the store can apply none of the requests any more.
func (d doubt) rest(ctx context.Context) error {
	d.settle(time.Now())
	if !pause(ctx, time.Until(d.until)) {
		return context.Cause(ctx)
	}
	return nil
}

// undo releases a lock that may have been acquired, and once more when no request of ours
// can arrive any more.
func (s *Session) undo(ctx context.Context, name string, holder []byte, t LockTiming, d doubt) error {
	r, _, err := s.giveBack(ctx, name, holder, t)
	if err != nil || d.n == 0 || d.n == 1 && r.Deleted && !d.held {
		return err
	}
	if err := d.rest(ctx); err != nil {
		return err
	}
	_, _, err = s.giveBack(ctx, name, holder, t)
	return err
}

// giveBack deletes the lock's key if it holds our value, and repeats the request until it
// is answered: to delete twice does no harm. maybe reports that an earlier, unanswered
// request may have deleted the key. If it did not, it could still arrive, so giveBack
// waits for its expiry: the next holder may use the same name as we did.
func (s *Session) giveBack(ctx context.Context, name string, holder []byte, t LockTiming) (r VDelResult, maybe bool, err error) {
	var late time.Time // until then an unanswered request may be applied
	for attempt := 1; ; attempt++ {
		limited, cancel := context.WithTimeout(ctx, min(t.Interval, s.o.Timeout))
		r, err := s.VDel(limited, name, holder, WriteOptions{})
		cancel()
		if err == nil {
			if r.Deleted {
				pause(ctx, time.Until(late))
			}
			return r, maybe, nil
		}
		if ctx.Err() != nil || s.isFinal(err) || s.life.Err() != nil {
			return r, maybe, err
		}
		if lost, unknown := errors.AsType[*LostAnswerError](err); unknown {
			maybe = true
			if lost.Expires.After(late) {
				late = lost.Expires
			}
		}
		if !pause(ctx, backOff(attempt)) {
			return r, maybe, err
		}
	}
}

// release releases a lock, and once more when no request of ours can arrive any more.
func (s *Session) release(ctx context.Context, name string, holder []byte, t LockTiming, d doubt) error {
	r, maybe, err := s.giveBack(ctx, name, holder, t)
	if err != nil {
		return err
	}
	if d.n > 0 && (!d.settled || time.Now().Before(d.until)) {
		if err := d.rest(ctx); err != nil {
			return err
		}
		if _, _, err := s.giveBack(ctx, name, holder, t); err != nil {
			return err
		}
	}
	if r.Deleted || !r.Found && maybe {
		return nil
	}
	return s.notHolder(ctx, name, r.Found)
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
// *[NotHolderError]. The other options are not used. Other errors are those of
// [Session.Do].
//
// An unanswered attempt is repeated until ctx ends or, without a deadline, the session's
// timeout is over. Within that time ReleaseLock also waits until a lost attempt can no
// longer be applied, so that it does not delete a lock that o.Holder acquires afterwards.
func (s *Session) ReleaseLock(ctx context.Context, name string, o LockOptions) error {
	if err := checkHolder(name, o.Holder); err != nil {
		return err
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	return s.release(ctx, name, o.Holder, LockTiming{Interval: s.o.Timeout}, doubt{})
}

func checkHolder(name string, holder []byte) error {
	if len(holder) == 0 {
		return invalid("no holder: want what the lock was acquired with")
	}
	return Get(name).Check()
}

// RenewLock extends a lock that o.Holder holds. It also uses the TTL, Grace and Margin of
// o. If the lock is free, or another holds it, the error is a *[NotHolderError]; other
// errors are those of [Session.Watch] and [Session.Do].
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
	defer s.leaveWatch(ctx, w)
	now, err := w.Next(ctx)
	switch {
	case err != nil:
		return Lease{}, err
	case !now.HasValue || !bytes.Equal(now.Value, o.Holder):
		return Lease{}, &NotHolderError{LockStatus{name, now.HasValue, now.Value, now.Version}}
	}
	c := s.claim(ctx, name, o, t, w)
	switch {
	case c.err != nil:
		return Lease{}, c.err
	case c.gone || c.holder != nil:
		return Lease{}, &NotHolderError{LockStatus{Name: name, Held: !c.gone, Holder: c.holder}}
	case !c.held:
		return Lease{}, s.notHolder(ctx, name, true)
	case !lapsed(w, c.lease.Token):
		return c.lease, c.useless()
	}
	if _, _, err := s.giveBack(ctx, name, o.Holder, t); err != nil {
		return Lease{}, err
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
