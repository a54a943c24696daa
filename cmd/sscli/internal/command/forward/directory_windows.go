package forward

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sscli/sscli/internal/busyfile"
)

// isOwn returns true, because on Windows each user has a directory for temporary files.
func isOwn(fs.FileInfo) bool { return true }

// lockName is the name of the file to lock, because Windows cannot lock a directory.
const lockName = "lock"

func openLock(path string) (*os.File, error) {
	return os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
}

// remove removes the files, then the lock with the directory. Windows does not remove an open file,
// so remove closes the lock first. Another forward may have the lock open for a moment: remove tries
// again for two seconds. It fails if that forward has made the directory its own.
func (d *directory) remove() error {
	var entries []os.DirEntry
	// Another forward opens the directory to see whether it is abandoned.
	err := busyfile.Retry(func() (err error) {
		entries, err = os.ReadDir(d.path)
		return err
	})
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.path, e.Name())))
		}
	}
	_ = d.lock.Close() // fails if lock is nil; nothing was written to the file
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		_ = os.Remove(filepath.Join(d.path, lockName)) // if this fails, so does the next line
		gone := os.Remove(d.path)
		if gone == nil || errors.Is(gone, fs.ErrNotExist) {
			return err
		}
		if time.Since(begin) > 2*time.Second {
			return errors.Join(err, gone)
		}
	}
}
