package config

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// othersWrite: Windows has access lists in place of modes, and a user's own
// directory has one that keeps others out.
func othersWrite(fs.FileInfo) bool { return false }

// tryLock's lock ends when the file is closed. The error is errLocked if somebody
// has it.
func tryLock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}
