//go:build unix

package forward

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a directory belongs to the user.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// openLock opens the file to lock: the directory itself.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}

// remove removes the directory, which is locked until it is gone.
func (d *directory) remove() error {
	defer d.lock.Close() // nothing was written; nil is not a file, which is an error too
	return os.RemoveAll(d.path)
}
