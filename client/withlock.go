package client

import (
	"context"
	"errors"
)

// Set stores a value with the lock's current fencing token, which replaces a token in the options. It sends nothing if
// [Lock.Err] returns an error, and returns that error. It stops waiting for the reply when the lock is lost.
//
// Set fences the key for good: the store then refuses every write that has no token, or an older one, with an error that
// matches [ErrFenced], also after Release, until the key is deleted with a token or expires. Use [Session.Set] while the
// lock is held for a key that others write without a lock.
func (l *Lock) Set(ctx context.Context, key string, value []byte, o ...SetOptions) (SetResult, error) {
	return As[SetResult](l.do(ctx, Set(key, value, o...)))
}

// Del deletes a key like Set stores one.
func (l *Lock) Del(ctx context.Context, key string) (DelResult, error) {
	return As[DelResult](l.do(ctx, Del(key)))
}

// VDel deletes a key that holds value, like Set stores one.
func (l *Lock) VDel(ctx context.Context, key string, value []byte) (VDelResult, error) {
	return As[VDelResult](l.do(ctx, VDel(key, value)))
}

func (l *Lock) do(ctx context.Context, c Command) (Result, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	ctx, cancel := l.while(ctx)
	defer cancel()
	return retried(ctx, l.s, c, func() (Result, error) {
		if err := l.Err(); err != nil {
			return nil, err
		}
		return l.s.do(ctx, c.WithFence(l.Token()))
	})
}

// while returns a context that ends when ctx ends or the lock is lost.
func (l *Lock) while(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() {
		if lost := context.Cause(l.ctx); errors.Is(lost, ErrLockLost) {
			cancel(lost)
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// WithLock acquires a lock, calls f and releases the lock, also if f panics. The context of f ends with ctx,
// and when the lock is lost; f must then return before l.Lease().Until.
//
// WithLock returns the errors of [Session.Lock] and f. If the lock was lost while f ran, the error matches
// [ErrLockLost], whatever f returned. The release may take LockTiming.Interval, rounded up to whole seconds,
// and Options.Timeout longer than ctx; an error of the release is joined to the error of f.
func (s *Session) WithLock(ctx context.Context, name string, f func(ctx context.Context, l *Lock) error, o ...LockOptions) (err error) {
	l, err := s.Lock(ctx, name, o...)
	if err != nil {
		return err
	}
	work, cancel := l.while(ctx)
	defer func() {
		cancel()
		lost := context.Cause(l.ctx) // ErrLockLost, or how f released the lock; nil if it is held
		releasing, cancel := limitTo(context.WithoutCancel(ctx), wholeSeconds(l.timing.Interval)+s.o.Timeout)
		defer cancel()
		released := l.Release(releasing)
		switch {
		case !errors.Is(lost, ErrLockLost):
			err = errors.Join(err, released)
		case !errors.Is(err, ErrLockLost):
			err = errors.Join(err, lost)
		}
	}()
	return f(work, l)
}
