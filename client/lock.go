package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sscli/sscli/client/mqtt"
)

// What the errors of locks can be tested for with errors.Is.
var (
	ErrLockBusy  = errors.New("another holds the lock")      // and there was no time to wait, or no more
	ErrLockLost  = errors.New("the lock was lost")           // while it was held; see LockLostError
	ErrNotHolder = errors.New("the lock is not held by you") // when it should be renewed or released; see NotHolderError
)

// LockOptions go with [Session.Lock], [Session.AcquireLock], [Session.RenewLock] and
// [Session.ReleaseLock]. TTL, Grace and Margin are explained at [LockTiming].
type LockOptions struct {
	TTL    time.Duration // of the lease, whole milliseconds; 0 = DefaultLockTTL
	Grace  time.Duration // 0 = a quarter of the TTL, at most 5 s; less than 0 = none
	Margin time.Duration // 0 = a tenth of the TTL, at most 2 s

	// Holder is the value that the lock's key gets. Whoever uses the same one holds
	// the same lock, at the same time: it must not be shared. Empty = the client id,
	// a colon and something random.
	Holder []byte

	Try  bool          // do not wait for a lock that another holds
	Wait time.Duration // how long to wait for it at most; 0 = as long as ctx lasts

	// The functions below are called one at a time and must neither block nor call
	// the Lock; each may be nil.

	OnWait    func(LockStatus) // another holds the lock, and is waited for; again when the holder changes
	OnLease   func(Lease)      // the lock is held, or was renewed; the first call is before Lock returns
	OnTrouble func(error)      // a renewal had no good answer, or the watch broke; it is tried again

	wall func() time.Time // the wall clock; nil = time.Now
}

// A Lease is what a good answer to an acquisition or renewal is worth.
type Lease struct {
	Holder []byte    // the value of the lock's key: LockOptions.Holder, or the one that was made up
	Token  Version   // the fencing token: the version of the lock's key
	Sent   time.Time // when the request was sent, by the local clock
	Term   time.Time // the work under the lock must begin to stop
	Until  time.Time // the work must have ended: another may hold the lock soon

	wall func() time.Time // nil = time.Now
}

// TermIn is the time left until Term, and UntilIn that until Until. Both count by
// the monotonic clock and by the wall clock, of which the first stops while a
// machine sleeps, and return what is less; a negative time has passed.
func (l Lease) TermIn() time.Duration { return l.left(l.Term) }

// UntilIn is described at TermIn.
func (l Lease) UntilIn() time.Duration { return l.left(l.Until) }

func (l Lease) left(t time.Time) time.Duration {
	now := time.Now()
	wall := now
	if l.wall != nil {
		wall = l.wall()
	}
	return min(t.Sub(now), t.Round(0).Sub(wall.Round(0)))
}

// A Lock is held, and renewed, from the return of [Session.Lock] until Release or
// until it is lost.
type Lock struct {
	s      *Session
	name   string
	o      LockOptions
	timing LockTiming
	w      *Watch
	ctx    context.Context
	end    context.CancelCauseFunc
	letGo  chan struct{} // closed by Release
	kept   chan struct{} // closed when nothing is renewed any more

	mu    sync.Mutex
	lease Lease

	once     sync.Once // guards what Release leaves
	released error

	// Of keep, and after it of Release.
	first   Version // the token of the acquisition: what is older is of an earlier holder
	broken  bool    // the watch was broken since the acquisition
	blind   bool    // the watch has ended
	doubt   doubt
	trouble error // the last renewal without a good answer
}

// Lock acquires a lock and keeps renewing it, until Release. While it is held its
// key is watched, so that a loss is known at once. ctx bounds the acquisition only;
// the lock outlives it. The errors are those of [Session.AcquireLock].
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

// Name is the key of the lock.
func (l *Lock) Name() string { return l.name }

// Holder is the value that the key has while the lock is held.
func (l *Lock) Holder() []byte { return l.o.Holder }

// Timing is what the lock is renewed by.
func (l *Lock) Timing() LockTiming { return l.timing }

// Context ends when the lock is lost, with a *[LockLostError] as its cause: when
// that becomes known, and at Lease.Term at the latest. Work under the lock must
// then stop, and have stopped at Lease().Until. It also ends with Release, with
// context.Canceled as the cause.
func (l *Lock) Context() context.Context { return l.ctx }

// Lease is the newest lease. Once the lock is lost it does not change any more.
func (l *Lock) Lease() Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease
}

// Token is the newest fencing token; that of a lock that was lost is stale.
func (l *Lock) Token() Version { return l.Lease().Token }

// Release ends the renewing and gives the lock back, if it is still ours. It is to
// be called in any case, once the work under the lock has ended: it also undoes a
// renewal that was under way when the lock was lost. ctx should leave time for that:
// LockTiming.Interval, rounded up to a second, and a round trip.
//
// It returns a *[NotHolderError] if the lock was no longer ours. Other errors say
// that the lock could not be given back, so that it will run out by itself; they are
// those of [Session.Do]. A second call does nothing and returns the same.
func (l *Lock) Release(ctx context.Context) error {
	l.once.Do(func() {
		close(l.letGo)
		l.end(nil)
		select {
		case <-l.kept:
			l.released = l.s.release(ctx, l.name, l.o.Holder, l.timing, l.doubt)
		case <-ctx.Done():
			l.released = context.Cause(ctx)
		}
		l.s.leaveWatch(ctx, l.w)
	})
	return l.released
}

// wallTick is how often a lock that is held looks at the wall clock: timers stop
// while a machine sleeps.
const wallTick = 250 * time.Millisecond

// keep renews the lock until it is lost or let go. When it returns nothing is
// under way any more.
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
			go func() { answers <- l.s.claim(renewing, l.name, l.o, l.timing, l.w) }()
		} else if !flying {
			wait = min(wait, until)
		}
		timer.Reset(wait)
		select {
		case c := <-answers:
			flying = false
			// What was told before the answer happened before it.
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

// judge takes the answer to a renewal. One that comes too late does not count: the
// lock may have run out, and the renewal have acquired it anew.
func (l *Lock) judge(c claim) *LockLostError {
	l.doubt.add(c)
	switch {
	case c.err != nil:
		l.trouble = c.err
		l.tell(c.err)
		return nil
	case c.gone:
		return l.loss(LossDeleted, nil)
	case !c.held:
		return l.loss(LossTaken, c.holder)
	case l.lease.TermIn() <= 0:
		return l.loss(LossNoRenewal, nil)
	}
	if c.lease.Token.IsZero() {
		c.lease.Token = l.lease.Token
	}
	l.mu.Lock()
	l.lease = c.lease
	l.mu.Unlock()
	l.trouble = nil
	if l.o.OnLease != nil {
		l.o.OnLease(c.lease)
	}
	return nil
}

func (l *Lock) tell(err error) {
	if l.o.OnTrouble != nil {
		l.o.OnTrouble(err)
	}
}

func (l *Lock) loss(why Loss, holder []byte) *LockLostError {
	return &LockLostError{Name: l.name, Loss: why, Holder: holder, Lease: l.Lease(), Err: l.trouble}
}

// heed looks through what the watch has to tell. Not everything tells its version;
// such an event counts if it certainly came after the acquisition.
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
		case EventDelete, EventSet:
			if !since && e.Version.IsZero() {
				continue
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

// A LockBusyError says that another held the lock for as long as it was waited for.
// It is ErrLockBusy.
type LockBusyError struct {
	Status LockStatus
	Waited time.Duration // LockOptions.Wait, which is over; 0 = it was only tried
}

func (e *LockBusyError) Error() string {
	text := fmt.Sprintf("lock %q is held by %s", e.Status.Name, e.Status.by())
	if e.Waited > 0 {
		text += fmt.Sprintf(", waited %v", e.Waited)
	}
	return text
}

// Is tells that the error is ErrLockBusy.
func (e *LockBusyError) Is(target error) bool { return target == ErrLockBusy }

// Loss is why a lock was lost.
type Loss string

// The reasons for which a lock is lost.
const (
	LossNoRenewal Loss = "no renewal was answered in time" // see Err; or this process or machine slept
	LossDeleted   Loss = "its key was deleted or ran out"
	LossTaken     Loss = "another holds it"
)

// A LockLostError is the cause of a Lock's context. It is ErrLockLost.
type LockLostError struct {
	Name   string
	Loss   Loss
	Holder []byte // who holds it now, with LossTaken; nil if not known
	Lease  Lease  // the last
	Err    error  // the last trouble with renewing; nil if there was none
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

// Is tells that the error is ErrLockLost.
func (e *LockLostError) Is(target error) bool { return target == ErrLockLost }

func (e *LockLostError) Unwrap() error { return e.Err }

// A NotHolderError says that a lock could not be renewed or released because it is
// free, or another holds it. It is ErrNotHolder.
type NotHolderError struct {
	Status LockStatus
}

func (e *NotHolderError) Error() string {
	if !e.Status.Held {
		return fmt.Sprintf("lock %q is free: it ran out, or was released", e.Status.Name)
	}
	return fmt.Sprintf("lock %q is held by %s", e.Status.Name, e.Status.by())
}

// Is tells that the error is ErrNotHolder.
func (e *NotHolderError) Is(target error) bool { return target == ErrNotHolder }
