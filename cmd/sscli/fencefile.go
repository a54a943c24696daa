package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
)

// A fenceFile holds the present token of a lock, for its child alone.
type fenceFile struct {
	path string

	mu   sync.Mutex
	over bool // there will be no token any more
}

// newFenceFile makes an empty one in a directory of its own.
func newFenceFile() (*fenceFile, error) {
	dir, err := os.MkdirTemp("", "sscli-lock-")
	if err != nil {
		return nil, err
	}
	f := &fenceFile{path: filepath.Join(dir, "token")}
	if err := f.replace(""); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

// write replaces the token.
func (f *fenceFile) write(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil
	}
	return f.replace(token + "\n")
}

// empty takes the token away for good.
func (f *fenceFile) empty() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil
	}
	f.over = true
	return f.replace("")
}

// replace lets a reader find the old or the new text, whole.
func (f *fenceFile) replace(text string) error {
	next := f.path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.path)
}

func (f *fenceFile) remove() error { return os.RemoveAll(filepath.Dir(f.path)) }

// currentFence is the present token of the innermost lock run around us.
func currentFence() (wire.Version, error) {
	path := os.Getenv(envFenceFile)
	if path == "" {
		return wire.Version{}, &usageError{
			err:  errors.New("--fence lock: no lock run is around this command: " + envFenceFile + " is not set"),
			hint: "sscli lock run NAME -- sscli … --fence lock",
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return wire.Version{}, &noFenceError{err}
	}
	token := strings.TrimSuffix(string(text), "\n")
	if token == "" {
		return wire.Version{}, &noFenceError{fmt.Errorf("%s is empty", path)}
	}
	v, err := wire.ParseToken(token)
	if err != nil {
		return wire.Version{}, &noFenceError{fmt.Errorf("%s: %w", path, err)}
	}
	return v, nil
}

// A noFenceError is a lock that has no token any more.
type noFenceError struct{ err error }

func (e *noFenceError) Error() string {
	return "--fence lock: nothing was sent, the lock has no token any more: " + e.err.Error()
}

func (e *noFenceError) Unwrap() error { return e.err }

// Is tells that the error is client.ErrLockLost.
func (e *noFenceError) Is(target error) bool { return target == client.ErrLockLost }

// What the child of a lock finds in its environment.
const (
	envLockName  = "SSCLI_LOCK_NAME"
	envFence     = "SSCLI_FENCE"
	envFenceFile = "SSCLI_FENCE_FILE"
)

// holderVariable names the holder of the steps that are taken one by one.
const holderVariable = "SSCLI_LOCK_HOLDER"
