// Package explain is the command `sscli explain`: it says whether the store would refuse a write
// because of its fencing token, and why.
//
// [New] makes the command. It reads the key, then the lock. facts.verdict (verdict.go) decides.
// Nothing is written.
//
// The store does not say which token a key has. So the verdict is `unknown` where it depends on
// that token; elsewhere the explanation says what it assumes.
package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/format"
)

// New returns the command `sscli explain`.
func New(a *app.App) *cobra.Command {
	var lock, token config.Text
	cmd := &cobra.Command{
		Use:     "explain KEY",
		Short:   "Show why a fenced write is or would be refused",
		GroupID: app.GroupDebug,
		Long: `Compare the token of a write (--fence) with what can be known of KEY and of the lock that
protects it (--lock), and say what the store would answer, by which rule, and what to do.
Nothing is written.

The store does not say which token a key has. What is known: no key has a token that is
newer than its version, unless a client invented the token. If every write of KEY carries
the newest token of the lock, as with --fence lock in lock run, then a key that was written
after the lock's present token was issued has that token. A verdict that assumes this says
so.

Exit code 0 if the write would pass, 6 if it would be refused, 11 if that cannot be known.`,
		Example: `  sscli explain valve/position --lock valve --fence "$SSCLI_FENCE"
  sscli explain valve/position    # would a write without a token pass?`,
		ValidArgsFunction: complete.Keys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return fault.Usagef("missing KEY")
			case 1:
			default:
				return &fault.UsageError{
					Err:  fmt.Errorf("%.64q after KEY: want one KEY, and its lock as --lock LOCK", args[1]),
					Hint: "--lock " + format.ShWord(args[1]),
				}
			}
			f := facts{key: args[0], lock: string(lock)}
			if err := client.Get(f.key).Check(); err != nil {
				return &fault.UsageError{Err: err}
			}
			if f.lock == f.key {
				return fault.Usagef("--lock %s: a lock does not protect its own key", format.Brief(f.lock))
			}
			if token != "" {
				var err error
				if f.token, err = fence.Token(string(token)); err != nil {
					return err
				}
			}
			return a.WithSession(cmd.Context(), func(s *client.Session, o client.Options) error {
				return explain(cmd.Context(), a, s, f)
			})
		},
	}
	cmd.Flags().Var(&lock, "lock", "the `LOCK` that protects KEY")
	cmd.Flags().Var(&token, "fence", "the `TOKEN` of the write, or lock for the token of the surrounding lock run (default: none)")
	return cmd
}

// explain reads the facts and prints the verdict.
func explain(ctx context.Context, a *app.App, s *client.Session, f facts) error {
	a.RememberKey(f.key)
	if err := f.read(ctx, s); err != nil {
		return err
	}
	e := f.verdict()
	if err := a.Emit(e); err != nil {
		return err
	}
	switch e.Verdict {
	case refused:
		return &fault.ExitError{Code: fault.CodeFencing}
	case unknown:
		return &fault.ExitError{Code: fault.CodeUnknown}
	}
	return nil
}

// read reads the key and then the lock. In this order, a lock whose token is older than the key's
// version had that token when the key was written.
func (f *facts) read(ctx context.Context, s *client.Session) error {
	key, err := s.Get(ctx, f.key)
	if err != nil {
		return fault.Describe(client.Get(f.key), err)
	}
	f.found, f.version = key.Found, key.Version
	if f.lock != "" {
		status, err := s.LockStatus(ctx, f.lock)
		if err != nil {
			return fmt.Errorf("lock %s: %w", format.Brief(f.lock), err)
		}
		f.held, f.holder, f.lockToken = status.Held, string(status.Holder), status.Token
	}
	f.now = time.Now()
	return nil
}
