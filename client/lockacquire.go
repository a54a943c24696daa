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
	"github.com/sscli/sscli/client/wait"
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

// LockStatus reads a lock's key. It returns the errors of [Session.Do].
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
// 5 s, because a notification can be lost. The wait survives a broken connection and,
// until Wait is over, requests that get no answer; without Wait, a first attempt that gets
// none ends it.
//
// An attempt that got no usable answer is undone, so that no lock is held without anybody
// knowing. For that the call may outlast ctx and Wait by the rest of the attempt's expiry
// (LockTiming.Interval rounded up to a second) and Options.Timeout.
//
// The errors are *[InvalidError], *[LockBusyError], and the errors of [Session.Do] and
// [Session.Watch]. A *[LockUnknownError] means that an attempt could not be undone: the
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
	first  bool       // the first attempt to get an answer is the last
	until  time.Time  // when giving up must be over; zero before
	status LockStatus // as last seen by the watch
	told   []byte     // the holder last passed to OnWait
	toldAt time.Time  // when that was
	uneasy bool       // OnTrouble was called with an error, and not with nil since
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

// watch watches the lock's key. With LockOptions.Wait it tries until that is over.
func (a *acquisition) watch(ctx context.Context) error {
	for failures := 1; ; failures++ {
		limited, cancel := context.WithTimeout(ctx, a.s.o.Timeout)
		w, err := a.s.Watch(limited, []string{a.name}, WatchOptions{})
		cancel()
		if err == nil {
			a.w = w
			a.tell(nil)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !a.triesOn(err) || time.Until(a.began.Add(a.o.Wait)) <= 0 {
			return err
		}
		a.tell(err)
		if !wait.For(ctx, min(backOff(failures), time.Until(a.began.Add(a.o.Wait)))) {
			return context.Cause(ctx)
		}
	}
}

// triesOn reports whether an acquisition that got no answer yet goes on after an error.
func (a *acquisition) triesOn(err error) bool {
	return a.o.Wait > 0 && !a.s.isFinal(err) && a.s.life.Err() == nil
}

func (a *acquisition) tell(err error) { a.o.tell(&a.uneasy, err) }

func (a *acquisition) leave(ctx context.Context) {
	if !a.until.IsZero() {
		limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.until)
		defer cancel()
		_ = a.w.Close(limited) // see leaveWatch
		return
	}
	a.s.leaveWatch(ctx, a.w)
}

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
		within := a.s.o.Timeout
		a.first = !answered && a.o.Wait == 0
		if a.first {
			within = max(within-time.Since(a.began), time.Millisecond) // the watch had a part of it
		}
		c := a.s.claim(ctx, a.name, a.o, a.timing, within, nil)
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
			a.tell(nil)
		case a.o.Try || a.s.isFinal(c.err) || a.s.life.Err() != nil || !answered && !a.triesOn(c.err):
			return Lease{}, a.giveUp(ctx, c.err)
		default:
			failures++
			a.tell(c.err)
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

// waiting calls OnWait, if it is due. It is called at least every lockPoll.
func (a *acquisition) waiting() {
	if a.o.OnWait == nil || a.told != nil && bytes.Equal(a.told, a.status.Holder) && time.Since(a.toldAt) < time.Minute {
		return
	}
	a.told, a.toldAt = append([]byte{}, a.status.Holder...), time.Now()
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
			a.tell(e.Err)
		case EventUp:
			a.tell(nil)
		case EventInitial, EventResync, EventSet, EventDelete:
			free = !e.HasValue && e.Kind != EventSet
			a.status.Holder, a.status.Token = e.Value, e.Version
		}
	}
	return free, nil
}

// giveUp undoes what the attempts may have done, and returns why.
func (a *acquisition) giveUp(ctx context.Context, why error) error {
	if lost, ok := errors.AsType[*LostAnswerError](why); ok {
		why = lost.Err // either it is undone, or the error below says that it is not
	}
	if a.doubt.n == 0 && !a.doubt.held {
		return why
	}
	a.until = later(a.doubt.until, time.Now()).Add(a.s.o.Timeout)
	if most := a.began.Add(2 * wholeSeconds(a.s.o.Timeout)); a.first && a.until.After(most) {
		a.until = most // the watch had a part of the first timeout
	}
	limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.until)
	defer cancel()
	if err := a.s.undo(limited, a.name, a.o.Holder, a.timing, a.doubt); err != nil {
		return &LockUnknownError{
			Name: a.name, Holder: a.o.Holder, Until: later(a.doubt.until, time.Now()).Add(a.timing.TTL),
			Err: fmt.Errorf("acquiring it: %w; releasing it again: %w", why, cause(err)),
		}
	}
	return why
}

// cause returns why the answer to a write was lost, or err itself if it is another error.
func cause(err error) error {
	if lost, ok := errors.AsType[*LostAnswerError](err); ok {
		return lost.Err
	}
	return err
}

// wholeSeconds rounds up, as the expiry of a request is.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A claim is the outcome of one SET NEX of a lock.
type claim struct {
	lease  Lease  // if held
	held   bool   // the store said OK
	gone   bool   // not extended: the lock is free, or was in between
	holder []byte // not extended: who holds the lock; nil if not known
	err    error  // why there is no usable answer
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

// A trail is what is known of the versions of a held lock's key. It tells a lock that was
// held all the time from one that was free in between.
type trail struct {
	token Version // of the last lease; zero: every version follows
	seen  Version // the newest that the watch announced with our value
	open  bool    // a renewal since then that got no answer, or an event without a version, may have given it another
}

// follows reports whether the key may have got this version without having been free since
// the last lease.
func (t trail) follows(v Version) bool {
	return t.token.IsZero() || v.IsZero() || v.Equal(t.token) || v.Equal(t.seen) || t.open && v.Compare(t.token) > 0
}

// claim acquires a lock or, with the trail of a held lock, extends it. Once the request is
// sent, ctx no longer ends the wait for its answer, which lasts an Interval at most, and
// not longer than within.
//
// The same request acquires a lock that is free. So a renewal reads the lock first: one that
// was deleted during a break, or that a restarted store has forgotten, stays lost.
func (s *Session) claim(ctx context.Context, name string, o LockOptions, t LockTiming, within time.Duration, held *trail) claim {
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
		r, err := typed[GetResult](s.ask(sending, conn, Get(name)))
		switch {
		case err != nil:
			return claim{err: err}
		case !r.Found:
			return claim{gone: true}
		case !bytes.Equal(r.Value, o.Holder):
			return claim{holder: r.Value}
		case !held.follows(r.Version):
			return claim{gone: true}
		}
	}
	p, err := s.sendOn(sending, conn, Set(name, o.Holder, SetOptions{Condition: NEX, TTL: t.TTL}))
	if err != nil {
		return claim{err: err}
	}
	r, err := typed[SetResult](p.wait(patience))
	if err != nil {
		p.hangUpIfDead(patience, within)
		return claim{err: err}
	}
	c := claim{lease: t.lease(p.sent), held: r.Applied}
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
	if waited >= time.Second && errors.Is(context.Cause(ctx), context.DeadlineExceeded) && p.isIgnored() {
		_ = p.conn.Close()
	}
}

// isIgnored reports whether nothing came on the connection since the request was sent.
func (p *pending) isIgnored() bool { return p.conn.LastReceived().Before(p.sent) }

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
	defer s.leaveWatch(ctx, w)
	c := s.claim(ctx, name, o, t, s.o.Timeout, &trail{})
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
		return c.lease, c.useless()
	}
	if _, err := s.giveBack(ctx, name, o.Holder, t); err != nil {
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
