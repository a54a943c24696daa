package lock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

func newBreak(a *app.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "break NAME",
		Short: "Take a lock from its holder",
		Long: `Show who holds the lock NAME, ask, and delete the lock if it still has that holder. Use
it when the holder is gone and its lease is long, or never ends. lock status NAME
--observe shows whether the holder still renews the lock.

A holder that still runs loses the lock: lock run ends its command, and lock run, lock
hold, lock renew and lock release exit with 8. Until its command has ended, it runs
beside the next holder, so protect what it writes with fencing tokens.

NAME is the lock, not a key that it protects. A key that was written with a fencing token is
no lock: break leaves it alone, and the exit code is 6, unless --force-fence is set. break
also says if the value is none that a lock writes, or the key was not written for a while.

The exit code is 1 if the lock is free, or has another holder after the answer. Without a
terminal, --yes is required.`,
		Example: "  sscli lock status deploy --observe 30s    # is it being renewed?\n  sscli lock break deploy",
		Args:    usage.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := client.Get(args[0]).Check(); err != nil {
				return &fault.UsageError{Err: err}
			}
			return a.WithSession(cmd.Context(), func(s *client.Session, _ client.Options) error {
				return breakLock(cmd.Context(), a, s, args[0], force)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force-fence", false, "delete the key even if it was written with a fencing token")
	return cmd
}

// breakLock deletes the key of a lock. If force is true, it also deletes a key with a fencing token.
func breakLock(ctx context.Context, a *app.App, s *client.Session, name string, force bool) error {
	held, err := verb.ReadKey(ctx, a, s, name)
	if err != nil {
		return statusError(name, err)
	}
	a.RememberKey(name)
	if !held.Found {
		a.Inform("lock " + format.Brief(name) + " is free: there is no holder to take it from")
		a.NotePattern(name, suggest.Try("`lock list PATTERN`"))
		return fault.ErrNo
	}
	holder := format.Brief(string(held.Value))
	what := fmt.Sprintf("lock break %s, held by %s", format.Brief(name), holder)
	details := renewedAt(held.Version)
	if why := notHolder(held.Value); why != "" {
		what += "; the value " + why + ", so it may be data, which is deleted"
		if a.Settings.Yes {
			a.Warn(strings.Join(append([]string{what}, details...), "; "))
		}
	} else {
		details = append(details, (&lockFlags{}).renewalNotes(client.LockStatus{Holder: held.Value, Token: held.Version})...)
	}
	if err := a.ConfirmAlways(ctx, what, details...); err != nil {
		return err
	}
	a.Signals.Arm()
	req := verb.Request{
		Force:    force,
		Commands: []client.Command{client.VDel(name, held.Value)},
		Result: func(_ *client.Command, result client.Result) (format.Result, bool, error) {
			if !result.(client.VDelResult).Deleted {
				return nil, false, &fault.NotWrittenError{
					Why:  fmt.Sprintf("lock %s is no longer held by %s: nothing was deleted", format.Brief(name), holder),
					Hint: suggest.Try("`sscli lock status NAME` shows who holds it").Fill(suggest.Name, name),
				}
			}
			a.Inform(fmt.Sprintf("lock %s was taken from %s, which loses it if it still runs: lock run ends its command, with exit code 8", format.Brief(name), holder))
			return format.Lock{Op: "break", Name: name, Holder: string(held.Value)}, true, nil
		},
	}
	err = verb.DoOver(ctx, a, s, req)
	if fault.IsStoreError(wire.ErrorFenceRequired)(err) {
		err = &fault.NextError{
			Err:  &fault.CauseError{What: format.Brief(name) + " is no lock but a key that a lock protects: nothing was deleted", Err: err},
			Hint: suggest.Try("name the lock: `sscli lock list` shows candidates; `sscli lock break NAME --force-fence` deletes the key and its token").Fill(suggest.Name, name),
		}
	}
	return err
}

// renewedAt returns a text with the time when a holder acquired or last renewed a lock, by the store's clock; nil = not
// known.
func renewedAt(token client.Version) []string {
	if token.IsZero() {
		return nil
	}
	at := token.Time()
	return []string{fmt.Sprintf("acquired or renewed %s (%s)", at.UTC().Format(time.RFC3339), format.Age(time.Since(at)))}
}
