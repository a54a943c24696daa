package lock

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

func newLockRelease(a *app.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "Release a lock that was acquired",
		Long: `Release the lock NAME if the holder still has it. If not, the lock is left alone and the
exit code is 8: another may have held it during some of the work.

Exit code 11 if the release got no answer and the lock is free now: it may have expired
before.`,
		Example: `  sscli lock release build --holder "job-$CI_JOB_ID"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return heldStep(a, cmd, args, &f, func(ctx context.Context, s *client.Session, o client.LockOptions) (format.Lock, error) {
				return format.Lock{Op: "release", Name: f.name, Holder: string(o.Holder)}, notReleased(s.ReleaseLock(ctx, f.name, o))
			})
		},
	}
	f.bindHolder(cmd.Flags())
	return cmd
}

// notReleased adds to the error of a lock that the holder did not have what to do next.
func notReleased(err error) error {
	e, ok := errors.AsType[*client.NotHolderError](err)
	switch {
	case !ok:
		return err
	case !e.Status.Held:
		return &fault.NextError{Err: err, Hint: "there is nothing to release; read again what it protects, as another may have held it"}
	}
	return &fault.NextError{Err: err, Hint: "use the --holder that it was acquired with: sscli lock status " + format.BriefWord(e.Status.Name) + " shows who holds it"}
}
