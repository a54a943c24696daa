//go:build unix

package cluster

import (
	"io/fs"
	"os"
	"syscall"
)

func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// openLock opens the directory itself, because Unix can lock directories.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}

// remove removes the directory, then releases its lock.
func (d *directory) remove() error {
	defer d.lock.Close() // returns an error if lock is nil
	return os.RemoveAll(d.path)
}
