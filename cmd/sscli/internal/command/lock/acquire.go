package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/format"
)

func newLockAcquire(a *app.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "acquire NAME",
		Short: "Acquire a lock; the script renews and releases it",
		Long: `Acquire the lock NAME, waiting while another holds it, and print its fencing token. The
lock expires after --ttl unless it is renewed (lock renew). If the work fits in one
command, use lock run: it renews the lock and stops the work when the lock is lost.

Exit code 1 if another holds the lock: with --try at once, else when --wait is over.
Two jobs with the same holder's name hold the lock both, so make it unique.

With --wait, lost answers do not end the waiting. An attempt that got no answer is
undone; exit code 11 if that cannot be confirmed.`,
		Example: `  T=$(sscli lock acquire build --ttl 60s --holder "job-$CI_JOB_ID" --try) || exit
  sscli set artifact 1.2.3 --fence "$T"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.operand(cmd, args); err != nil {
				return err
			}
			o, err := f.needHolder(a)
			if err != nil {
				return err
			}
			if err := a.Confirm(cmd.Context(), "lock acquire "+format.Brief(f.name)); err != nil {
				return err
			}
			reportWaiting(a, &o)
			return a.WithSession(cmd.Context(), func(s *client.Session, _ client.Options) error {
				lease, err := s.AcquireLock(cmd.Context(), f.name, o)
				if err != nil {
					return lockError(a, f, err)
				}
				if err := a.Emit(f.result("acquire", o, lease)); err != nil {
					return errors.Join(err, giveBack(a, cmd.Context(), s, f.name, o))
				}
				return nil
			})
		},
	}
	f.bindTTL(cmd.Flags())
	f.bindWait(cmd.Flags())
	f.bindHolder(cmd.Flags())
	return cmd
}

// giveBack releases a lock whose token could not be printed, because nobody knows that it is
// held. It has a timeout of the session, also after a signal.
func giveBack(a *app.App, ctx context.Context, s *client.Session, name string, o client.LockOptions) error {
	if err := s.ReleaseLock(context.WithoutCancel(ctx), name, o); err != nil {
		return fmt.Errorf("releasing the lock again: %w", err)
	}
	a.Inform("lock " + format.Brief(name) + " was released again, because its token could not be printed")
	return nil
}
