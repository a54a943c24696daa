//go:build unix && !solaris && !aix

package repl

import (
	"os"
	"syscall"
)

// lockFile locks the file. It waits while another process holds the lock.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}
