package verb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/wire"
)

// A FenceFile holds the current token of a lock for the command under `lock run`. `lock run` creates it,
// writes each new token to it, and empties it when the lock is lost. An sscli with `--fence lock` in that
// command reads either a whole token, or an empty file and then sends nothing. Only this user can read it. Its methods may be called
// concurrently.
type FenceFile struct {
	Path string

	mu      sync.Mutex
	emptied bool // Empty was called
}

// NewFenceFile chooses a random path, and creates nothing. [FenceFile.Create] makes the directory and the file
// later, when the guard process already knows which directory to remove.
func NewFenceFile() *FenceFile {
	return &FenceFile{Path: filepath.Join(files.TempDir(), "sscli-lock-"+strconv.FormatUint(rand.Uint64(), 10), "token")}
}

// Create creates the directory and the empty file. It returns an error if the disk has no room for a token.
func (f *FenceFile) Create() error {
	if err := os.Mkdir(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	const longest = 128 // bytes; most tokens are much shorter
	if err := f.replace(strings.Repeat("\n", longest)); err != nil {
		return err
	}
	return f.replace("")
}

// Write replaces the token. It does nothing after Empty.
func (f *FenceFile) Write(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.emptied {
		return nil
	}
	return f.replace(token + "\n")
}

// Empty empties the file, or removes it. Later calls to Write do nothing.
func (f *FenceFile) Empty() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.emptied {
		return nil
	}
	f.emptied = true
	err := f.replace("")
	if err == nil {
		return nil
	}
	// There may be no room for a new file. To truncate or remove the old one needs none.
	if os.Truncate(f.Path, 0) == nil || os.Remove(f.Path) == nil {
		return nil
	}
	return err
}

// replace writes a new file and renames it, so that a reader never finds a partial token.
func (f *FenceFile) replace(text string) error {
	next := f.Path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return files.RetryBusy(func() error { return os.Rename(next, f.Path) })
}

// Remove removes the file and its directory.
func (f *FenceFile) Remove() error {
	return files.RetryBusy(func() error { return os.RemoveAll(filepath.Dir(f.Path)) })
}

// currentFence returns the current token of the innermost `lock run` around this process.
func currentFence(env Env) (wire.Version, error) {
	path, _ := env(EnvFenceFile)
	if path == "" {
		return wire.Version{}, &fault.UsageError{
			Err:  errors.New("--fence lock: this command does not run under lock run: " + EnvFenceFile + " is not set"),
			Hint: suggest.Try("`sscli lock run LOCK -- sscli … --fence lock`"),
		}
	}
	text, err := files.ReadFile(path, files.MaxText)
	token := strings.TrimSuffix(string(text), "\n")
	if err == nil && token == "" {
		err = fmt.Errorf("%s is empty", path)
	}
	if err != nil {
		return wire.Version{}, lost(env, err)
	}
	v, err := wire.ParseToken(token)
	if err != nil {
		return wire.Version{}, lost(env, fmt.Errorf("%s: %w", path, err))
	}
	return v, nil
}

// lost returns the error for a fence file without a token.
func lost(env Env, err error) error {
	name, _ := env(EnvLockName)
	return fault.About(name, &noFenceError{err, name})
}

// A noFenceError means that the fence file has no token, so the lock was lost.
type noFenceError struct {
	err  error
	lock string
}

func (e *noFenceError) Error() string {
	return "--fence lock: nothing was sent, the lock was lost: " + e.err.Error()
}

// Unwrap returns the cause, and a LockLostError, whose lock the hint names.
func (e *noFenceError) Unwrap() []error {
	return []error{e.err, &client.LockLostError{Name: e.lock}}
}

// Env looks up an environment variable; see [app.App.Env].
type Env = func(name string) (value string, ok bool)

// The environment variables of a command that runs under a lock.
const (
	EnvLockName   = "SSCLI_LOCK_NAME"
	EnvOuterLocks = "SSCLI_OUTER_LOCKS" // see OuterLocks
	EnvFence      = "SSCLI_FENCE"
	EnvFenceFile  = "SSCLI_FENCE_FILE"
)

// OuterLocks returns the value of EnvOuterLocks for a command of `lock run` that runs in this environment: the names
// of the locks around its own, outermost first, each encoded as in the query of a URL, with blanks between them.
func OuterLocks(env Env) string {
	outer, _ := env(EnvOuterLocks)
	if name, _ := env(EnvLockName); name != "" {
		outer += " " + url.QueryEscape(name)
	}
	return strings.TrimSpace(outer)
}

// IsAround reports whether a `lock run` around this command holds this lock.
func IsAround(env Env, lock string) bool {
	return lock != "" && slices.Contains(strings.Fields(OuterLocks(env)), url.QueryEscape(lock))
}

// ElsewhereHint says what to try if a lock that is around this command is the lock of another store. command
// is the beginning of the command.
func ElsewhereHint(command ...string) suggest.Hint {
	return suggest.Try("for another store: `env -u "+EnvLockName+" -u "+EnvOuterLocks+" WORDS... …`").Fill(suggest.Words, command...)
}

// HolderVariable is the environment variable for the holder name in `lock acquire`, `lock renew` and
// `lock release`. `lock run` sets it for its command.
const HolderVariable = "SSCLI_LOCK_HOLDER"

// FenceFlags holds the fencing flags of a command that writes. A command binds them, and calls Options
// after it has parsed its operands.
type FenceFlags struct {
	token config.Text
	Force bool // --force-fence
}

// fenceOfLock is the value of --fence that stands for the token of the surrounding `lock run`.
const fenceOfLock = "lock"

// Bind adds the flags to fs.
func (f *FenceFlags) Bind(fs *pflag.FlagSet) {
	fs.Var(&f.token, "fence", "fencing `TOKEN`: the version of the lock that protects the key, @FILE to read it from FILE, or lock for the token of the surrounding lock run")
	fs.BoolVar(&f.Force, "force-fence", false, "override the fencing token of the key, and fence out the holder of its lock")
}

// Options returns the write options with the token of --fence; --force-fence does not change them.
// With --fence lock, Options reads the fence file, so call it right before sending.
func (f *FenceFlags) Options(env Env) (client.WriteOptions, error) {
	switch {
	case f.Force && f.token != "":
		return client.WriteOptions{}, fault.Usagef("--fence and --force-fence: use one of them")
	case f.token == "":
		return client.WriteOptions{}, nil
	}
	token, err := ParseFence(env, string(f.token))
	return client.WriteOptions{Fence: token}, err
}

// ParseFence returns the token for a value of --fence: a token, "lock" for the token in the fence file, or
// @FILE for the token in FILE.
func ParseFence(env Env, text string) (wire.Version, error) {
	if text == fenceOfLock {
		return currentFence(env)
	}
	from := ""
	if name, ok := strings.CutPrefix(text, "@"); ok {
		if current, _ := env(EnvFenceFile); name == current {
			return currentFence(env)
		}
		content, err := files.ReadFile(name, files.MaxText)
		if err != nil {
			return wire.Version{}, &fault.UsageError{Err: fmt.Errorf("--fence: %w", err)}
		}
		text, from = strings.TrimRight(string(content), "\r\n"), name+": "
	}
	token, err := wire.ParseToken(text)
	if err != nil {
		return wire.Version{}, &fault.UsageError{Err: fmt.Errorf("%s%w", from, err), Hint: suggest.Try("the token as the lock's reply gave it, unchanged; or `--fence lock` in a command of sscli lock run")}
	}
	return token, nil
}

// CheckFence is like [CheckFenceKey], for the key of a command that has a token.
func CheckFence(env Env, c client.Command) error {
	if c.Fence() == "" {
		return nil
	}
	return CheckFenceKey(env, c.Key())
}

// CheckFenceKey returns a usage error if a key is the lock of a surrounding `lock run`. Tokens are for
// other keys: a write to the lock itself with a token would fence the lock, and then nobody could
// renew, release or acquire it.
func CheckFenceKey(env Env, key string) error {
	if !IsAround(env, key) {
		return nil
	}
	return &fault.UsageError{
		Err:  fmt.Errorf("%s is the lock of a surrounding lock run: a write of it with a token would end the lock", format.Brief(key)),
		Hint: append(suggest.Try("write another key with the token"), ElsewhereHint("sscli")...),
	}
}

// LatestFence returns the latest time that a key's token can have, given the key's version. The version
// holds the time of the last write, and the store accepts no token that is more than [wire.MaxDrift] ahead
// of that time.
func LatestFence(written wire.Version) time.Time { return written.Time().Add(wire.MaxDrift) }

// IsFenceFromFuture reports whether a key's token is from the future, that is, newer than the key's version.
// A token that the store issued before the write cannot be newer. refused is a token that the store
// refused because the key's token is higher.
func IsFenceFromFuture(written, refused wire.Version) bool {
	return !written.IsZero() && refused.Compare(written) > 0 && !refused.Time().After(LatestFence(written))
}

// AboutFutureFence returns two sentences that explain that a key's token is from the future. now is the local
// time.
func AboutFutureFence(written wire.Version, now time.Time) []string {
	return []string{
		"the key's token is from the future: a clock was ahead, by at most a minute, when the key was written with it",
		"tokens that the store issues after " + FenceTime(LatestFence(written), now) + " pass",
	}
}

// FutureFenceHint returns the hint for a key's token that is from the future. inLock is true if the command
// runs under `lock run`, which renews the token. force is the command or the flag that overrides the
// key's token.
func FutureFenceHint(written wire.Version, inLock bool, force suggest.Hint, now time.Time) suggest.Hint {
	passes := FenceTime(LatestFence(written), now)
	hint := suggest.Say("after " + passes + ", lock again and use the token")
	if inLock {
		hint = suggest.Say("run it again with --fence lock after " + passes)
	}
	return append(hint, force.Then(" overrides the key's token now, and fences out every holder until then")...)
}

// FenceTime formats a time, and adds how far the time is from now.
func FenceTime(at, now time.Time) string {
	return at.UTC().Format("2006-01-02T15:04:05.000Z") + " (" + format.Age(now.Sub(at)) + ")"
}
