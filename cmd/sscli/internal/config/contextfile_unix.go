//go:build unix

package config

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// othersWrite tells whether somebody but the owner can write to a file.
func othersWrite(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// tryLock's lock ends when the file is closed. The error is errLocked if somebody
// has it.
func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
