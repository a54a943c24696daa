package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sscli/sscli/internal/files"
)

// isOwn returns true, because each user of Windows has their own directory for temporary files.
func isOwn(fs.FileInfo) bool { return true }

// lockName is the name of the file to lock, because Windows cannot lock a directory.
const lockName = "lock"

func openLock(path string) (*os.File, error) {
	return os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
}

// remove removes the directory. It removes the lock file last. Windows does not remove open files, so
// remove first closes the lock file. Another forward may briefly open the lock file, so remove tries
// again for two seconds.
func (d *directory) remove() error {
	var entries []os.DirEntry
	// Reading fails while another forward has the directory open.
	err := files.RetryBusy(func() (err error) {
		entries, err = os.ReadDir(d.path)
		return err
	})
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.path, e.Name())))
		}
	}
	_ = d.lock.Close() // returns an error if lock is nil
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		_ = os.Remove(filepath.Join(d.path, lockName)) // if the file remains, the next line fails
		gone := os.Remove(d.path)
		if gone == nil || errors.Is(gone, fs.ErrNotExist) {
			return err
		}
		if time.Since(begin) > 2*time.Second {
			return errors.Join(err, gone)
		}
	}
}
