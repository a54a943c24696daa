package files

import (
	"errors"
	"os"
)

// ErrLocked means that the lock is held through another open handle of the file, usually in another
// process.
var ErrLocked = errors.New("locked by another process")

// TryLock locks f exclusively, until f is closed. It does not wait: if the file is already locked, it
// returns [ErrLocked].
func TryLock(f *os.File) error { return tryLock(f) }
