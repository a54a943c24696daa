package config

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// othersWrite returns false. Windows has access control lists in place of modes, and the list of a
// user's own directory keeps others out.
func othersWrite(fs.FileInfo) bool { return false }

// tryLock locks a file until it is closed. The error is errLocked if another process holds the
// lock.
func tryLock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}
