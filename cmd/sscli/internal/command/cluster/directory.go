package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sscli/sscli/internal/files"
)

const directoryPrefix = "sscli-forward-"

// A directory holds the files of one forward. It is locked while the forward runs, and removed at the
// end. If sscli is killed, the guard process of its kubectl removes the directory. If no kubectl was
// running, the user's next forward finds the directory unlocked and removes it.
type directory struct {
	path string
	lock *os.File // nil if the directory cannot be locked; then no other forward removes it
}

// newDirectory makes a directory for this forward, and removes the directories that killed forwards of
// this user have left.
func newDirectory() (*directory, error) {
	removeAbandoned(os.TempDir())
	for {
		path, err := os.MkdirTemp("", directoryPrefix)
		if err != nil {
			return nil, err
		}
		lock, err := lockDirectory(path)
		if !errors.Is(err, errTaken) {
			return &directory{path, lock}, nil
		}
		// Another forward locked the new directory before we could, and removes it.
	}
}

// removeAbandoned removes the directories below temp that killed forwards of this user have left. A
// directory that cannot be removed stays for the next forward.
func removeAbandoned(temp string) {
	entries, _ := os.ReadDir(temp) // after an error, ReadDir returns the entries that it has read
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), directoryPrefix) || !e.IsDir() {
			continue
		}
		path := filepath.Join(temp, e.Name())
		if info, err := e.Info(); err != nil || !isOwn(info) {
			continue
		}
		if lock, err := lockDirectory(path); err == nil {
			_ = (&directory{path, lock}).remove()
		}
	}
}

// errTaken means that another process has locked or removed a directory.
var errTaken = errors.New("the directory is in use")

// lockDirectory locks a directory until the returned file is closed. The error is errTaken if another
// process has locked or removed the directory. Any other error means that the directory cannot be
// locked.
func lockDirectory(path string) (*os.File, error) {
	lock, err := openLock(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	if err = files.TryLock(lock); errors.Is(err, files.ErrLocked) || err == nil && !hasName(lock) {
		err = errTaken
	}
	if err != nil {
		_ = lock.Close() // nothing was written
		return nil, err
	}
	return lock, nil
}

// hasName reports whether an open file's name still refers to that file. Another process may have
// removed the file.
func hasName(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(opened, named)
}
