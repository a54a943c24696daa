package verb

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// ReadKey reads a key. It fails if there is no reply within --timeout or, with --retry-for, within that time.
func ReadKey(ctx context.Context, a *app.App, s *client.Session, key string) (client.GetResult, error) {
	o := exchange.NewStore(a, s).Do(ctx, client.Get(key), nil)
	if o.Err != nil {
		return client.GetResult{}, o.Err
	}
	return o.Result.(client.GetResult), nil
}

// A State identifies the content of a key at the time it was read, by a digest of the version and the
// value. States are equal if the key was not written in between.
type State struct {
	Found bool
	sum   exchange.Digest
}

// StateOf returns the state of a key from the result of reading it.
func StateOf(r client.GetResult) State {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%d:%q ", r.Version.Wall, r.Version.Counter, r.Version.Node)
	h.Write(r.Value)
	return State{Found: r.Found, sum: exchange.Digest(h.Sum(nil))}
}

// A Replacement sets one key if the key has not changed since it was read: if its state is still Before.
// The store has no compare-and-set, so [Replacement.Set] reads the key again right before it writes, and
// creates a missing key with NX. One gap is left: if another client writes an existing key between the
// second read and the write, its value is overwritten without notice, unless a fencing token protects
// the key.
type Replacement struct {
	App     *app.App
	Session *client.Session
	Key     string
	Before  State
	Force   bool // --force-fence

	// Changed returns the error that Set returns if another client has changed the key. Set has
	// then written nothing. now is the current content of the key.
	Changed func(now client.GetResult) error

	// Fence returns the write options with the fencing token. Set calls Fence right before the write.
	// If Fence is nil, Set uses the options that its caller passed.
	Fence func() (client.WriteOptions, error)
}

// Set sets the key to a value and prints the result. If the key changed, Set writes nothing and
// returns the error of w.Changed. The caller must leave o.Condition empty.
func (w Replacement) Set(ctx context.Context, value string, o client.SetOptions) error {
	now, err := ReadKey(ctx, w.App, w.Session, w.Key)
	if err != nil {
		return err
	}
	if w.Before != StateOf(now) {
		return w.Changed(now)
	}
	now.Value = nil
	app.FreeMemory(len(value))
	if !now.Found {
		o.Condition = client.NX // another client may create the key before this write
	}
	if w.Fence != nil {
		if o.WriteOptions, err = w.Fence(); err != nil {
			return err
		}
	}
	req := SetRequest(w.Key, value, o)
	if err := req.Check(w.App); err != nil {
		return err
	}
	req.Force = w.Force
	shown := req.Result
	req.Result = func(c *client.Command, result client.Result) (format.Result, bool, error) {
		if result.(client.SetResult).Applied {
			return shown(c, result)
		}
		now, err := ReadKey(ctx, w.App, w.Session, w.Key)
		if err == nil {
			err = w.Changed(now)
		}
		return nil, false, err
	}
	return DoOver(ctx, w.App, w.Session, req)
}

// NotWritten returns the error for a key that changed and was therefore not written. now is the
// current content of the key. meanwhile says when the key changed, as in "while you edited".
func NotWritten(key string, now client.GetResult, meanwhile string) *fault.NotWrittenError {
	what := format.BriefWord(key)
	switch {
	case !now.Found:
		what += " was deleted"
	case now.Version.IsZero():
		what += " changed"
	default:
		at := now.Version.Time()
		what += fmt.Sprintf(" changed at %s (%s)", at.UTC().Format(time.RFC3339), format.Age(time.Since(at)))
	}
	return &fault.NotWrittenError{Why: what + " " + meanwhile + ", nothing was written"}
}
