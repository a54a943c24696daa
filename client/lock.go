package client

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
)

// LockOptions are the options of [Session.Lock], [Session.WithLock], [Session.AcquireLock] and
// [Session.RenewLock]. See [LockTiming] for the meaning of TTL, Grace and Margin.
type LockOptions struct {
	TTL    time.Duration // how long the lock's key lives, whole milliseconds; 0 = DefaultLockTTL
	Grace  time.Duration // 0 = a quarter of the TTL, at most 5 s; negative = none
	Margin time.Duration // 0 = a tenth of the TTL, at most 2 s

	// Holder is the value to store in the lock's key. It must be unique: two processes with the
	// same Holder can hold the lock at the same time. Empty = one is generated: HolderName, a colon, and 20
	// characters that are unique and, if the lock was not free, tell other clients when the wait began. So they know
	// how long the present holder had waited, and leave the lock to a client that has waited as long.
	Holder []byte

	HolderName string // if Holder is empty, how the generated one begins; need not be unique; empty = the client id

	Try  bool          // do not wait for a lock that another client holds
	Wait time.Duration // the longest wait; 0 = until ctx ends

	// OnWait, OnLease and OnTrouble are called one at a time. They must not block and must not
	// call methods of the Lock. Each may be nil.
	OnWait    func(LockStatus) // another client holds the lock; called when the wait begins, when the holder changes, and every minute
	OnLease   func(Lease)      // the lock was acquired or renewed; first called before Lock returns
	OnTrouble func(error)      // a request or the watch failed and is retried; called with nil once it has recovered
}

// A Lease is the time for which a successful acquisition or renewal holds the lock.
type Lease struct {
	Holder []byte    // the value of the lock's key: LockOptions.Holder, or the generated one
	Token  Version   // the fencing token: the version of the lock's key
	Sent   time.Time // when the request was sent, by the local clock
	Term   time.Time // when work under the lock must begin to stop
	Until  time.Time // when work under the lock must have stopped; another client may hold the lock soon after
	Again  bool      // from AcquireLock: Holder already held the lock, so an earlier lease may be in use

	wall func() time.Time // nil = time.Now
}

// TermIn returns the time left until Term; it is negative after Term. It measures with the
// monotonic clock, which stops while a machine sleeps, and with the wall clock, and returns the
// shorter time.
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

// A Lock is a lock that [Session.Lock] acquired. It is renewed until Release, or until it is
// lost.
type Lock struct {
	s      *Session
	name   string
	o      LockOptions
	timing LockTiming
	w      *Watch
	ctx    context.Context
	cancel context.CancelCauseFunc

	releasing chan struct{} // closed by Release
	kept      chan struct{} // closed when keep has returned

	mu    sync.Mutex
	lease Lease

	once       sync.Once // guards releaseErr
	releaseErr error

	// Owned by keep, and by Release once keep has returned.
	first       Version // the token of the acquisition; older versions belong to earlier holders
	seen        Version // the newest version that the watch reported with our value
	unversioned bool    // the watch reported our value without a version
	unanswered  bool    // a renewal since the last lease got no usable reply
	broken      bool    // the watch has lost its connection since the acquisition
	unwatched   bool    // the watch has ended
	unconfirmed unconfirmed
	trouble     error // why the last renewal failed; nil if it succeeded
	troubled    bool  // OnTrouble was last called with an error
}

// Lock acquires a lock and renews it until Release. It also watches the lock's key, so that a
// loss is noticed immediately. ctx bounds the acquisition only, not the life of the lock. Lock
// returns the errors of [Session.AcquireLock].
func (s *Session) Lock(ctx context.Context, name string, options ...LockOptions) (*Lock, error) {
	a, err := s.newAcquisition(name, options)
	if err != nil {
		return nil, err
	}
	if !s.hold() {
		return nil, mqtt.ErrClosed
	}
	if err := s.reach(ctx); err != nil {
		s.wg.Done()
		return nil, err
	}
	if err := a.begin(ctx); err != nil {
		s.wg.Done()
		return nil, err
	}
	lease, err := a.run(ctx)
	if err != nil {
		a.closeWatch(ctx)
		s.wg.Done()
		return nil, err
	}
	l := &Lock{
		s: s, name: name, o: a.o, timing: a.timing, w: a.w,
		releasing: make(chan struct{}), kept: make(chan struct{}),
		lease: lease, first: lease.Token, unconfirmed: a.unconfirmed,
	}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	if a.o.OnLease != nil {
		a.o.OnLease(lease)
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

// Holder returns the value that the lock's key has while the lock is held.
func (l *Lock) Holder() []byte { return bytes.Clone(l.o.Holder) }

// Timing returns the timing of the lease and its renewals.
func (l *Lock) Timing() LockTiming { return l.timing }

// Context returns a context that ends when the lock is lost, with a *[LockLostError] as its
// cause. It ends as soon as the loss is known, and at Lease().Term at the latest. Work under
// the lock must then stop before Lease().Until. Release ends the context with context.Canceled
// as its cause. The context of a zero Lock has ended.
func (l *Lock) Context() context.Context {
	if err := l.check(); err != nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(err)
		return ctx
	}
	return l.ctx
}

// Err returns nil while the lock is held. After a loss it returns a *[LockLostError], and after Release a
// *[NotHolderError]. If this process was stopped until the lease was over, Err returns the error even before
// the lock's context ends.
func (l *Lock) Err() error {
	if err := l.check(); err != nil {
		return err
	}
	switch err := context.Cause(l.ctx); {
	case errors.Is(err, ErrLockLost):
		return err
	case err != nil:
		return &NotHolderError{LockStatus{Name: l.name}}
	}
	if lease := l.Lease(); lease.TermIn() <= 0 {
		return &LockLostError{Name: l.name, Loss: LossNoRenewal, Lease: lease}
	}
	return nil
}

// check returns an error if the lock does not come from Lock.
func (l *Lock) check() error {
	if l.ctx == nil {
		return invalid("the zero Lock holds nothing; a Lock comes from Session.Lock")
	}
	return nil
}

// Lease returns the newest lease. After the lock is lost, the lease no longer changes.
func (l *Lock) Lease() Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease
}

// Token returns the newest fencing token. Each renewal gives a newer one, so call Token for
// each write, or use the methods of Lock that write. The token of a lost lock is stale.
func (l *Lock) Token() Version { return l.Lease().Token }

// Release stops the renewals and releases the lock if it is still ours. Always call Release
// once the work under the lock has ended: it also undoes a renewal that was in flight when the
// lock was lost. ctx should leave time for that: LockTiming.Interval, rounded up to whole seconds,
// plus a round trip.
//
// The error is a *[NotHolderError] if the lock was no longer ours. A *[LockUnknownError] with Over set
// means that the lock is no longer ours, and that it is unknown whether it was ours until the release.
// Any other error is one that [Session.Do] returns, and means that the lock may not have been released;
// it then stays held until it expires. A second call does nothing and returns the same error.
func (l *Lock) Release(ctx context.Context) error {
	if err := l.check(); err != nil {
		return err
	}
	l.once.Do(func() {
		close(l.releasing)
		l.cancel(nil)
		select {
		case <-l.kept:
			l.releaseErr = l.s.release(ctx, l.name, l.o.Holder, l.timing, l.unconfirmed, !errors.Is(context.Cause(l.ctx), ErrLockLost))
		case <-ctx.Done():
			l.releaseErr = context.Cause(ctx)
		}
		_ = l.w.closeWithin(ctx) // on an error, the registration ends with the connection
	})
	return l.releaseErr
}
