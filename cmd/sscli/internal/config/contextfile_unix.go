//go:build unix

package config

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// othersWrite reports whether the group or others can write to a file.
func othersWrite(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// tryLock locks a file until it is closed. The error is errLocked if another process holds the
// lock.
func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
