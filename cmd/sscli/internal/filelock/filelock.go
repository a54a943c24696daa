// Package filelock locks files between processes.
//
//	err := filelock.Try(f)
//
// The operating system releases a lock when its file is closed, so a lock never outlives its process.
package filelock

import (
	"errors"
	"os"
)

// ErrLocked means that the lock is held through another open handle of the file, usually in another
// process.
var ErrLocked = errors.New("locked by another process")

// Try locks f exclusively, until f is closed. It does not wait: if the file is already locked, it
// returns [ErrLocked].
func Try(f *os.File) error { return try(f) }
