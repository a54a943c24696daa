package files

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrLocked means that the lock is held through another open handle of the file, usually in another
// process.
var ErrLocked = errors.New("locked by another process")

// TryLock locks f exclusively, until f is closed. It does not wait: if the file is already locked, it
// returns [ErrLocked].
func TryLock(f *os.File) error { return tryLock(f) }

// Lock locks a file exclusively, until unlock is called. It creates the file if needed, and waits for
// other processes until ctx ends.
func Lock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := WaitLock(ctx, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Closing the file releases the lock. The file is not removed, because another process may be waiting
	// for the lock.
	return func() { f.Close() }, nil
}

// WaitLock is like [TryLock], but waits for other processes until ctx ends.
func WaitLock(ctx context.Context, f *os.File) error {
	for {
		if err := TryLock(f); !errors.Is(err, ErrLocked) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
