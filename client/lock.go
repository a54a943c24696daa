package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// What the errors of locks can be tested for with errors.Is.
var (
	ErrLockBusy  = errors.New("another holds the lock")      // and there was no time to wait, or no more
	ErrLockLost  = errors.New("the lock was lost")           // while it was held; see LockLostError
	ErrNotHolder = errors.New("the lock is not held by you") // when it should be renewed or released; see NotHolderError
)

// LockOptions go with [Session.Lock] and [Session.AcquireLock]. TTL, Grace and
// Margin are explained at [LockTiming].
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
}

// A Lease is what a good answer to an acquisition or renewal is worth.
type Lease struct {
	Token wire.Version // the fencing token: the version of the lock's key
	Sent  time.Time    // when the request was sent, by the local clock
	Term  time.Time    // whoever works under the lock must begin to stop
	Until time.Time    // and must have ended: another may hold the lock soon
}

// TermIn is the time left until Term, and UntilIn that until Until. Both count by
// the monotonic clock and by the wall clock, of which the first stops while a
// machine sleeps, and return what is less; a negative time has passed.
func (l Lease) TermIn() time.Duration { return left(l.Term) }

// UntilIn is described at TermIn.
func (l Lease) UntilIn() time.Duration { return left(l.Until) }

func left(t time.Time) time.Duration {
	now := time.Now()
	return min(t.Sub(now), t.Round(0).Sub(now.Round(0)))
}

// A Lock is held, and renewed, from the return of [Session.Lock] until Release or
// until it is lost.
type Lock struct {
	name   string
	holder []byte
	timing LockTiming
	ctx    context.Context
}

// Lock acquires a lock and keeps renewing it. ctx bounds the acquisition only.
//
// The errors are those of [Session.AcquireLock].
func (s *Session) Lock(ctx context.Context, name string, o LockOptions) (*Lock, error) {
	return nil, errors.ErrUnsupported
}

// Name is the key of the lock.
func (l *Lock) Name() string { return l.name }

// Holder is the value that the key has while the lock is held.
func (l *Lock) Holder() []byte { return l.holder }

// Timing is what the lock is renewed by.
func (l *Lock) Timing() LockTiming { return l.timing }

// Context ends when the lock is lost, with a *[LockLostError] as its cause: when
// that becomes known, and at Lease.Term at the latest. Work under the lock must
// then stop, and have stopped at Lease().Until. It also ends with Release, with
// context.Canceled as the cause.
func (l *Lock) Context() context.Context { return l.ctx }

// Lease is the newest lease. Once the lock is lost it does not change any more.
func (l *Lock) Lease() Lease { return Lease{} }

// Token is the newest fencing token; that of a lock that was lost is stale.
func (l *Lock) Token() wire.Version { return l.Lease().Token }

// Release ends the renewing and gives the lock back, if it is still ours. It is to
// be called in any case, once the work under the lock has ended: it also undoes a
// renewal that was under way when the lock was lost. ctx should leave time for that:
// LockTiming.Interval and a round trip.
//
// It returns a *[NotHolderError] if the lock was no longer ours. Other errors say
// that the lock could not be given back, so that it will run out by itself; they are
// those of [Session.Do]. A second call does nothing and returns the same.
func (l *Lock) Release(ctx context.Context) error { return errors.ErrUnsupported }

// AcquireLock acquires a lock and leaves it to the caller to renew or release it.
//
// A lock that another holds is waited for, as Try and Wait say: the store is asked
// to notify of its key first, so that no release is missed, and as a notification
// may be lost the lock is tried at least every 5 s. Whatever was sent when the
// waiting ends is undone, so that no lock is held that nobody knows of; for that
// the call may outlast ctx by the request's expiry, LockTiming.Interval rounded up
// to a second, and two round trips.
//
// The errors: *[InvalidError], *[LockBusyError] (which is [ErrLockBusy]), and
// those of [Session.Do] and [Session.Watch].
func (s *Session) AcquireLock(ctx context.Context, name string, o LockOptions) (Lease, error) {
	return Lease{}, errors.ErrUnsupported
}

// RenewLock prolongs a lock that holder has. TTL, Grace, Margin and Holder of the
// options count; Holder must be there.
//
// The store has no request that prolongs a lock and does not acquire a free one.
// A lock that was free is therefore acquired for a moment, and given back: the
// error is a *[NotHolderError] then too.
func (s *Session) RenewLock(ctx context.Context, name string, o LockOptions) (Lease, error) {
	return Lease{}, errors.ErrUnsupported
}

// ReleaseLock gives a lock back if holder has it; if not, the error is a
// *[NotHolderError]. Other errors are those of [Session.Do].
func (s *Session) ReleaseLock(ctx context.Context, name string, holder []byte) error {
	return errors.ErrUnsupported
}

// LockStatus is what is known of a lock.
type LockStatus struct {
	Name   string
	Held   bool
	Holder []byte       // nil if not held, or not known
	Token  wire.Version // of the last acquisition or renewal; zero if not known
}

// LockStatus reads a lock's key. The errors are those of [Session.Do].
func (s *Session) LockStatus(ctx context.Context, name string) (LockStatus, error) {
	return LockStatus{}, errors.ErrUnsupported
}

// A LockBusyError says that another held the lock for as long as it was waited for.
// It is ErrLockBusy.
type LockBusyError struct {
	Status LockStatus
	Waited time.Duration // 0 = it was only tried
}

func (e *LockBusyError) Error() string { return fmt.Sprintf("lock %q: %v", e.Status.Name, ErrLockBusy) }

// Is tells that the error is ErrLockBusy.
func (e *LockBusyError) Is(target error) bool { return target == ErrLockBusy }

// Loss is why a lock was lost.
type Loss string

// The reasons for which a lock is lost.
const (
	LossNoRenewal Loss = "no renewal was answered in time" // the store or the way to it, or this process slept
	LossDeleted   Loss = "its key was deleted or ran out"
	LossTaken     Loss = "another holds it"
	LossRefused   Loss = "the store or the broker refused the renewal" // for good; see Err
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
	return fmt.Sprintf("lock %q: %v", e.Status.Name, ErrNotHolder)
}

// Is tells that the error is ErrNotHolder.
func (e *NotHolderError) Is(target error) bool { return target == ErrNotHolder }
