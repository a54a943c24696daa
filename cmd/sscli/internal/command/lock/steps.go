package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

// A step acquires, renews or releases a lock. The lock stays held after `lock acquire` ends.
type step func(context.Context, *client.Session, client.LockOptions) (format.Lock, error)

func newAcquire(a *app.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "acquire NAME",
		Short: "Acquire a lock, without a command to run",
		Long: `Acquire the lock NAME, waiting while another holds it, and print its fencing token. The
lock expires after --ttl unless it is renewed (lock renew). If the work fits in one
command, use lock run: it renews the lock and stops the work when the lock is lost.

The exit code is 1 if another holds the lock: with --try at once, else after --wait. Two
jobs that use the same holder name would both hold the lock, so make the name unique.
Without --holder, sscli generates a name, and prints it on stderr with the command that
releases the lock.

With --wait, a lost reply does not end the wait. An attempt that got no reply is undone;
if that cannot be confirmed, the exit code is 11.`,
		Example: `  T=$(sscli lock acquire build --ttl 60s --holder "job-$CI_JOB_ID" --try) || exit
  sscli set artifact 1.2.3 --fence "$T"`,
		Args: usage.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runStep(cmd.Context(), a, cmd, args, &f, true, func(ctx context.Context, s *client.Session, o client.LockOptions) (format.Lock, error) {
				f.reportWaiting(a, &o)
				lease, err := s.AcquireLock(ctx, f.name, o)
				f.again = lease.Again
				return f.result("acquire", o, lease), err
			})
		},
	}
	f.bindTTL(cmd.Flags())
	f.bindWait(cmd.Flags())
	f.bindHolder(cmd.Flags())
	return cmd
}

func newRenew(a *app.App) *cobra.Command {
	f := lockFlags{conflict: fault.CodeNo}
	cmd := &cobra.Command{
		Use:   "renew NAME",
		Short: "Extend an acquired lock",
		Long: `Extend the lock NAME to --ttl from now, and print its new fencing token. --ttl is required:
the store does not say how long the lease was.

If the holder no longer has the lock, renew does not acquire it again, and the exit code
is 8. The store has no request that only extends a lock, so sscli watches and reads the
key first. If the lock expires in between and the request acquires it again, sscli
releases it.`,
		Example: `  T=$(sscli lock renew build --ttl 60s --holder "job-$CI_JOB_ID") || exit`,
		Args:    usage.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !f.ttl.Given() {
				return fault.Usagef("no --ttl: the store does not say how long the lease was: give a duration such as --ttl 10m")
			}
			return runStep(cmd.Context(), a, cmd, args, &f, false, func(ctx context.Context, s *client.Session, o client.LockOptions) (format.Lock, error) {
				lease, err := s.RenewLock(ctx, f.name, o)
				return f.result("renew", o, lease), err
			})
		},
	}
	cmd.Flags().Var(f.ttl.Least(usage.Positive), "ttl", "the lock expires `DURATION` from now (required)")
	f.bindHolder(cmd.Flags())
	return cmd
}

func newRelease(a *app.App) *cobra.Command {
	f := lockFlags{conflict: fault.CodeNo}
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "Release an acquired lock",
		Long: `Release the lock NAME if the holder still has it. If not, the lock is left alone and the
exit code is 8: another may have held it during some of the work.

The exit code is 11 if the release got no reply and the lock is free now, because the lock
may have expired before the release.`,
		Example: `  sscli lock release build --holder "job-$CI_JOB_ID"`,
		Args:    usage.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runStep(cmd.Context(), a, cmd, args, &f, false, func(ctx context.Context, s *client.Session, o client.LockOptions) (format.Lock, error) {
				return format.Lock{Op: "release", Name: f.name, Holder: string(o.Holder)}, notReleased(s.ReleaseLock(ctx, f.name, o.Holder))
			})
		},
	}
	f.bindHolder(cmd.Flags())
	return cmd
}

// runStep checks the flags, connects, runs a step and prints its result. If waits is true, runStep sets
// no time limit, because the step may wait for another holder. Otherwise connecting and the step may
// take two timeouts: one for the request, and one to find out the outcome if no reply comes.
func runStep(ctx context.Context, a *app.App, cmd *cobra.Command, args []string, f *lockFlags, waits bool, do step) error {
	f.name = args[0]
	o, err := f.knownHolder(a, waits)
	if err = cmp.Or(err, a.NeverWait()); err != nil {
		return err
	}
	if err := a.Confirm(ctx, "lock "+cmd.Name()+" "+format.Brief(f.name)); err != nil {
		return err
	}
	began := time.Now()
	return a.WithSession(ctx, func(s *client.Session, so client.Options) error {
		if !waits {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, began.Add(twoTimeouts(so.Timeout)))
			defer cancel()
		}
		result, err := do(ctx, s, o)
		if err != nil {
			return f.lockError(a, err)
		}
		if result.Op == "release" && a.Settings.Quiet {
			return nil
		}
		err = a.Emit(result)
		switch e, ok := errors.AsType[*fault.OutputError](err); {
		case ok && result.Op == "acquire" && !f.again:
			err = errors.Join(err, giveBack(ctx, a, s, f.name, result.Holder))
		case ok && result.Op == "acquire":
			a.Inform("lock " + format.Brief(f.name) + " stays held, because " + format.Brief(result.Holder) + " held it before")
			e.Done = true
		case ok:
			e.Done = true
		case f.generated: // also with --quiet: without the name, nobody could renew or release the lock
			a.Say(format.Note{Level: format.Notice, Message: "the holder is " + result.Holder,
				Hint: a.Hint(suggest.Try("`sscli lock release NAME --holder VALUE` releases the lock").Fill(suggest.Name, f.name).Fill(suggest.Value, result.Holder))})
		}
		return err
	})
}

// twoTimeouts returns the time for a request and for finding out its outcome. A request expires after
// the timeout, rounded up to seconds.
func twoTimeouts(timeout time.Duration) time.Duration {
	return (timeout + time.Second - 1).Truncate(time.Second) + timeout
}

// giveBack releases a lock whose token could not be printed, because nobody would know that the lock is
// held. It works even after a signal, and takes at most the timeout of the session.
func giveBack(ctx context.Context, a *app.App, s *client.Session, name, holder string) error {
	if err := s.ReleaseLock(context.WithoutCancel(ctx), name, []byte(holder)); err != nil {
		return fmt.Errorf("releasing the lock again: %w", err)
	}
	a.Inform("lock " + format.Brief(name) + " was released again, because its token could not be printed")
	return nil
}

// notReleased adds a hint to the error of a release, if the holder does not have the lock.
func notReleased(err error) error {
	e, ok := errors.AsType[*client.NotHolderError](err)
	switch {
	case !ok:
		return err
	case !e.Status.Held:
		return &fault.NextError{Err: err, Hint: suggest.Try("there is nothing to release; another may have held the lock, so read again what it protects")}
	}
	return &fault.NextError{Err: err, Hint: suggest.Try("use the `--holder` that it was acquired with: `sscli lock status NAME` shows who holds it")}
}
