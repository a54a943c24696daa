package forward

import (
	"io/fs"
	"os"
	"path/filepath"
)

// isOwn returns true: each user of Windows has a directory for temporary files.
func isOwn(fs.FileInfo) bool { return true }

// openLock opens the file to lock, because Windows cannot lock a directory.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
}

// remove removes the directory. It closes the lock first, because Windows does not remove an open
// file. For the same reason, a forward that now locks the directory keeps it.
func (d *directory) remove() error {
	_ = d.lock.Close() // nothing was written; nil is not a file, which is an error too
	return os.RemoveAll(d.path)
}
