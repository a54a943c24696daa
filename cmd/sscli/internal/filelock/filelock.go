// Package filelock locks files between processes.
//
//	err := filelock.Try(f)
//
// The system releases a lock when its file is closed, so a lock never outlives its process.
package filelock

import (
	"errors"
	"os"
)

// ErrLocked means that the lock is held through another open file, usually by another process.
var ErrLocked = errors.New("locked by another process")

// Try locks a file exclusively until it is closed. The error is [ErrLocked] if the lock is held.
func Try(f *os.File) error { return try(f) }
