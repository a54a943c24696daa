package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sscli/sscli/client/mqtt"
)

// The errors of locks, for errors.Is.
var (
	ErrLockBusy  = errors.New("another holds the lock")      // see LockBusyError
	ErrLockLost  = errors.New("the lock was lost")           // see LockLostError
	ErrNotHolder = errors.New("the lock is not held by you") // see NotHolderError
)

// LockOptions go with [Session.Lock], [Session.AcquireLock], [Session.RenewLock] and
// [Session.ReleaseLock]. TTL, Grace and Margin are explained at [LockTiming].
type LockOptions struct {
	TTL    time.Duration // of the lease, whole milliseconds; 0 = DefaultLockTTL
	Grace  time.Duration // 0 = a quarter of the TTL, at most 5 s; less than 0 = none
	Margin time.Duration // 0 = a tenth of the TTL, at most 2 s

	// Holder is the value to store in the lock's key. Two processes with the same
	// Holder hold the lock at the same time, so it must be unique. Empty = the client
	// id, a colon and a random text.
	Holder []byte

	Try  bool          // do not wait for a lock that another holds
	Wait time.Duration // how long to wait at most; 0 = until ctx ends

	// The functions below are called one at a time. They must not block and must not
	// call methods of the Lock. Each may be nil.

	OnWait    func(LockStatus) // waiting, because another holds the lock; called again when the holder changes, and every minute
	OnLease   func(Lease)      // the lock was acquired or renewed; first called before Lock returns
	OnTrouble func(error)      // a request did not succeed, or the watch broke; it is tried again. nil: it has succeeded since

	wall func() time.Time // the wall clock; nil = time.Now
}

// A Lease is the time for which a successful acquisition or renewal holds the lock.
type Lease struct {
	Holder []byte    // the value of the lock's key: LockOptions.Holder, or the one generated for it
	Token  Version   // the fencing token: the version of the lock's key
	Sent   time.Time // when the request was sent, by the local clock
	Term   time.Time // work under the lock must begin to stop
	Until  time.Time // work under the lock must have stopped: another may hold it soon after

	wall func() time.Time // nil = time.Now
}

// TermIn returns the time left until Term; it is negative after Term. It compares the
// monotonic clock, which stops while a machine sleeps, and the wall clock, and returns
// the shorter time.
func (l Lease) TermIn() time.Duration { return l.left(l.Term) }

// UntilIn returns the time left until Until, measured like TermIn.
func (l Lease) UntilIn() time.Duration { return l.left(l.Until) }

func (l Lease) left(t time.Time) time.Duration {
	now := time.Now()
	wall := now
	if l.wall != nil {
		wall = l.wall()
	}
	return min(t.Sub(now), t.Round(0).Sub(wall.Round(0)))
}

// A Lock is held and renewed from the return of [Session.Lock] until Release, or until
// it is lost.
type Lock struct {
	s      *Session
	name   string
	o      LockOptions
	timing LockTiming
	w      *Watch
	ctx    context.Context
	end    context.CancelCauseFunc
	letGo  chan struct{} // closed by Release
	kept   chan struct{} // closed when keep has returned

	mu    sync.Mutex
	lease Lease

	once     sync.Once // guards released
	released error

	// Owned by keep, and by Release once keep has returned.
	first   Version // the token of the acquisition; older versions belong to earlier holders
	seen    Version // the newest version that the watch announced with our value
	unsaid  bool    // the watch announced our value without a version
	open    bool    // a renewal since the last lease got no usable answer
	broken  bool    // the watch was broken since the acquisition
	blind   bool    // the watch has ended
	doubt   doubt
	trouble error // why the last renewal did not succeed; nil if it did
	told    bool  // OnTrouble was called with an error, and not with nil since
}

// Lock acquires a lock and renews it until Release. It watches the lock's key
// meanwhile, so that a loss is known at once. ctx bounds the acquisition only; the lock
// outlives it. It returns the errors of [Session.AcquireLock].
func (s *Session) Lock(ctx context.Context, name string, o LockOptions) (*Lock, error) {
	a, err := s.newAcquisition(name, o)
	if err != nil {
		return nil, err
	}
	if !s.hold() {
		return nil, mqtt.ErrClosed
	}
	if err := a.watch(ctx); err != nil {
		s.wg.Done()
		return nil, err
	}
	lease, err := a.run(ctx)
	if err != nil {
		a.leave(ctx)
		s.wg.Done()
		return nil, err
	}
	l := &Lock{
		s: s, name: name, o: a.o, timing: a.timing, w: a.w,
		letGo: make(chan struct{}), kept: make(chan struct{}),
		lease: lease, first: lease.Token, doubt: a.doubt,
	}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	if o.OnLease != nil {
		o.OnLease(lease)
	}
	go func() {
		defer s.wg.Done()
		defer close(l.kept)
		l.keep()
	}()
	return l, nil
}

// Name returns the key of the lock.
func (l *Lock) Name() string { return l.name }

// Holder returns the value of the key while the lock is held.
func (l *Lock) Holder() []byte { return l.o.Holder }

// Timing returns the timing of the lease and its renewals.
func (l *Lock) Timing() LockTiming { return l.timing }

// Context returns a context that ends when the lock is lost, with a *[LockLostError] as
// its cause: as soon as the loss is known, and at Lease().Term at the latest. Work under
// the lock must then stop before Lease().Until. Release ends the context with
// context.Canceled as its cause.
func (l *Lock) Context() context.Context { return l.ctx }

// Lease returns the newest lease. It no longer changes once the lock is lost.
func (l *Lock) Lease() Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease
}

// Token returns the newest fencing token. Each renewal gives a newer one, so call Token for
// each write:
//
//	o := SetOptions{WriteOptions: WriteOptions{Fence: l.Token()}}
//	_, err := s.Set(l.Context(), key, value, o)
//
// The token of a lost lock is stale.
func (l *Lock) Token() Version { return l.Lease().Token }

// Release stops the renewals and releases the lock if it is still ours. Call it in any
// case once the work under the lock has ended: it also undoes a renewal that was in
// flight when the lock was lost. ctx should leave time for that: LockTiming.Interval,
// rounded up to a second, and a round trip.
//
// The error is a *[NotHolderError] if the lock was no longer ours. Any other
// error is one that [Session.Do] returns, and means that the lock may not have been
// released: it then stays until it expires. A second call does nothing and returns the same error.
func (l *Lock) Release(ctx context.Context) error {
	l.once.Do(func() {
		close(l.letGo)
		l.end(nil)
		select {
		case <-l.kept:
			l.released = l.s.release(ctx, l.name, l.o.Holder, l.timing, l.doubt, !errors.Is(context.Cause(l.ctx), ErrLockLost))
		case <-ctx.Done():
			l.released = context.Cause(ctx)
		}
		l.s.leaveWatch(ctx, l.w)
	})
	return l.released
}

// wallTick is how often a held lock checks the wall clock, because timers stop while a
// machine sleeps.
const wallTick = 250 * time.Millisecond

// keep renews the lock until it is lost or released. No request is in flight when it
// returns.
func (l *Lock) keep() {
	renewing, stop := context.WithCancel(context.Background())
	defer stop()
	answers := make(chan claim, 1)
	flying, failures := false, 0
	due := l.lease.Sent.Add(l.timing.Interval)
	var began time.Time // of the last attempt
	timer := time.NewTimer(0)
	defer timer.Stop()
	wake := l.w.wake
	lost := l.heed(false)
	for lost == nil {
		lease := l.Lease()
		wait := min(lease.TermIn(), wallTick)
		if wait <= 0 {
			lost = l.loss(LossNoRenewal, nil)
			break
		}
		if until := time.Until(due); !flying && until <= 0 {
			flying, began = true, time.Now()
			held := trail{token: lease.Token, seen: l.seen, open: l.open || l.unsaid}
			go func() { answers <- l.s.claim(renewing, l.name, l.o, l.timing, l.s.o.Timeout, &held) }()
		} else if !flying {
			wait = min(wait, until)
		}
		timer.Reset(wait)
		select {
		case c := <-answers:
			flying = false
			// Events that came before the answer happened before it.
			if lost = l.heed(true); lost != nil {
				l.doubt.add(c)
				break
			}
			if c.err != nil {
				failures++
				due = began.Add(min(backOff(failures), l.timing.Interval))
			} else {
				failures = 0
				due = c.lease.Sent.Add(l.timing.Interval)
			}
			lost = l.judge(c)
		case <-wake:
			if lost = l.heed(true); l.blind {
				wake = nil
			}
		case <-timer.C:
		case <-l.letGo:
			stop()
			if flying {
				l.doubt.add(<-answers)
			}
			return
		case <-l.s.life.Done():
			l.trouble = mqtt.ErrClosed
			lost = l.loss(LossNoRenewal, nil)
		}
	}
	l.end(lost)
	stop()
	if flying {
		l.doubt.add(<-answers)
	}
}

// judge takes the answer to a renewal. A late answer does not count: the lock may have
// expired, and the renewal acquired it anew.
func (l *Lock) judge(c claim) *LockLostError {
	l.doubt.add(c)
	switch {
	case c.err != nil:
		_, unanswered := errors.AsType[*LostAnswerError](c.err)
		l.open = l.open || unanswered
		l.trouble = c.err
		l.tell(c.err)
		return nil
	case c.gone:
		return l.loss(LossDeleted, nil)
	case !c.held:
		return l.loss(LossTaken, c.holder)
	case l.lease.TermIn() <= 0:
		return l.loss(LossNoRenewal, nil)
	case c.lease.Token.IsZero():
		c.lease.Token = l.lease.Token
	case c.lease.Token.Compare(l.lease.Token) <= 0:
		return l.loss(LossDeleted, nil) // the store has forgotten the lock
	}
	l.mu.Lock()
	l.lease = c.lease
	l.mu.Unlock()
	l.trouble, l.open = nil, false
	l.tell(nil)
	if l.o.OnLease != nil {
		l.o.OnLease(c.lease)
	}
	return nil
}

func (l *Lock) tell(err error) { l.o.tell(&l.told, err) }

// tell calls OnTrouble, with nil only once after an error. told says whether that is due.
func (o *LockOptions) tell(told *bool, err error) {
	if o.OnTrouble != nil && (err != nil || *told) {
		o.OnTrouble(err)
	}
	*told = err != nil
}

func (l *Lock) loss(why Loss, holder []byte) *LockLostError {
	return &LockLostError{Name: l.name, Loss: why, Holder: holder, Lease: l.Lease(), Err: l.trouble}
}

// heed reads the events of the watch. An event without a version counts only if since
// says that it came after the acquisition.
func (l *Lock) heed(since bool) *LockLostError {
	for {
		e, ok, err := l.w.pop()
		if err != nil && !l.blind {
			l.blind = true
			l.tell(fmt.Errorf("the lock is no longer watched: %w", err))
		}
		if !ok {
			return nil
		}
		switch e.Kind {
		case EventDown:
			l.broken = l.broken || since
			l.tell(e.Err)
			continue
		case EventUp:
			l.tell(nil)
			continue
		case EventDelete, EventSet:
			if !since && e.Version.IsZero() {
				continue
			}
			if string(e.Value) == string(l.o.Holder) {
				l.unsaid = l.unsaid || e.Version.IsZero()
				if e.Version.Compare(l.seen) > 0 {
					l.seen = e.Version
				}
			}
		case EventResync:
			if !l.broken && e.Version.IsZero() {
				continue
			}
		default:
			continue
		}
		if !e.Version.IsZero() && e.Version.Compare(l.first) < 0 {
			continue
		}
		switch {
		case e.HasValue && string(e.Value) != string(l.o.Holder):
			return l.loss(LossTaken, e.Value)
		case !e.HasValue && e.Kind != EventSet:
			return l.loss(LossDeleted, nil)
		}
	}
}

// A LockBusyError means that another held the lock until the end of the wait. It
// matches ErrLockBusy.
type LockBusyError struct {
	Status LockStatus
	Waited time.Duration // LockOptions.Wait; 0 = with LockOptions.Try
}

func (e *LockBusyError) Error() string {
	text := fmt.Sprintf("lock %q is held by %s", e.Status.Name, e.Status.by())
	if e.Waited > 0 {
		text += fmt.Sprintf(", waited %v", e.Waited)
	}
	return text
}

// Is reports whether target is ErrLockBusy.
func (e *LockBusyError) Is(target error) bool { return target == ErrLockBusy }

// Loss is why a lock was lost.
type Loss string

// The reasons why a lock was lost.
const (
	LossNoRenewal Loss = "no renewal was answered in time" // see LockLostError.Err; or this process or machine slept
	LossDeleted   Loss = "its key was deleted or expired"  // or the store has restarted empty
	LossTaken     Loss = "another holds it"
)

// A LockLostError is the cause with which a Lock's context ends. It matches ErrLockLost.
type LockLostError struct {
	Name   string
	Loss   Loss
	Holder []byte // the new holder, with LossTaken; nil if not known
	Lease  Lease  // the last
	Err    error  // why the last renewal did not succeed; nil if it did
}

func (e *LockLostError) Error() string {
	switch {
	case e.Holder != nil:
		return fmt.Sprintf("lock %q was lost: %q holds it", e.Name, e.Holder)
	case e.Err != nil:
		return fmt.Sprintf("lock %q was lost: %s: %v", e.Name, e.Loss, e.Err)
	}
	return fmt.Sprintf("lock %q was lost: %s", e.Name, e.Loss)
}

// Is reports whether target is ErrLockLost.
func (e *LockLostError) Is(target error) bool { return target == ErrLockLost }

func (e *LockLostError) Unwrap() error { return e.Err }

// A NotHolderError means that a lock was not renewed or released because it is free, or
// another holds it. It matches ErrNotHolder.
type NotHolderError struct {
	Status LockStatus
}

func (e *NotHolderError) Error() string {
	if !e.Status.Held {
		return fmt.Sprintf("lock %q is free: it expired, or was released", e.Status.Name)
	}
	return fmt.Sprintf("lock %q is held by %s", e.Status.Name, e.Status.by())
}

// Is reports whether target is ErrNotHolder.
func (e *NotHolderError) Is(target error) bool { return target == ErrNotHolder }
