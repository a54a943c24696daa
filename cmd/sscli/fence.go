package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/config"
)

// fencing are the flags of every command that writes.
type fencing struct {
	token config.Text
	force bool
}

// fenceOfLock is the --fence that means the lock run around us.
const fenceOfLock = "lock"

func (f *fencing) bind(fs *pflag.FlagSet) {
	fs.Var(&f.token, "fence", "fencing `TOKEN`: the version of the lock that protects the key, or lock for that of the lock run around this command")
	fs.BoolVar(&f.force, "force-fence", false, "get past the fencing token of the key, and fence out whoever holds its lock")
}

func (f *fencing) options() (client.WriteOptions, error) {
	switch {
	case f.force && f.token != "":
		return client.WriteOptions{}, usage("--fence together with --force-fence: want one of them")
	case f.token == "":
		return client.WriteOptions{}, nil
	case f.token == fenceOfLock:
		token, err := currentFence()
		return client.WriteOptions{Fence: token}, err
	}
	token, err := wire.ParseToken(string(f.token))
	if err != nil {
		return client.WriteOptions{}, &usageError{err: err, hint: "the token as the lock's reply gave it, unchanged; or --fence lock inside of sscli lock run"}
	}
	return client.WriteOptions{Fence: token}, nil
}

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
