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
	for {
		err := TryLock(f)
		if err == nil {
			// Closing the file releases the lock. The file is not removed, because another
			// process may be waiting for the lock.
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, ErrLocked) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
}
