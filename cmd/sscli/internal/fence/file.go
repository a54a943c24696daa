package fence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
)

// A fenceFile holds the present token of a lock, for its child alone.
type File struct {
	Path string

	mu   sync.Mutex
	over bool // there will be no token any more
}

// newFenceFile makes an empty one in a directory of its own.
func NewFile() (*File, error) {
	dir, err := os.MkdirTemp("", "sscli-lock-")
	if err != nil {
		return nil, err
	}
	f := &File{Path: filepath.Join(dir, "token")}
	if err := f.replace(""); err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return f, nil
}

// write replaces the token.
func (f *File) Write(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil
	}
	return f.replace(token + "\n")
}

// empty takes the token away for good.
func (f *File) Empty() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil
	}
	f.over = true
	return f.replace("")
}

// replace lets a reader find the old or the new text, whole.
func (f *File) replace(text string) error {
	next := f.Path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.Path)
}

func (f *File) Remove() error { return os.RemoveAll(filepath.Dir(f.Path)) }

// currentFence is the present token of the innermost lock run around us.
func currentFence() (wire.Version, error) {
	path := os.Getenv(EnvFenceFile)
	if path == "" {
		return wire.Version{}, &explain.UsageError{
			Err:  errors.New("--fence lock: no lock run is around this command: " + EnvFenceFile + " is not set"),
			Hint: "sscli lock run NAME -- sscli … --fence lock",
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
	EnvLockName  = "SSCLI_LOCK_NAME"
	EnvFence     = "SSCLI_FENCE"
	EnvFenceFile = "SSCLI_FENCE_FILE"
)

// holderVariable names the holder of the steps that are taken one by one.
const HolderVariable = "SSCLI_LOCK_HOLDER"
