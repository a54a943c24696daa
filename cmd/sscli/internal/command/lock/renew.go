package lock

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

func newLockRenew(a *app.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "renew NAME",
		Short: "Extend a lock that was acquired",
		Long: `Extend the lock NAME to --ttl from now, and print its new fencing token. --ttl is required:
the store does not say how long the lease was.

Exit code 8 if the holder no longer has it: it is not acquired anew. The store has no
request for that, so sscli watches and reads the key first, and releases a lock again
that expired in between.`,
		Example: `  T=$(sscli lock renew build --ttl 60s --holder "job-$CI_JOB_ID") || exit`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch f.ttl {
			case "":
				return fault.Usagef("no --ttl: the store does not say how long the lease was: want a duration such as --ttl 10m")
			case "keep":
				return fault.Usagef("--ttl keep: the store does not say how long the lease was: want a duration such as 10m")
			}
			return heldStep(a, cmd, args, &f, func(ctx context.Context, s *client.Session, o client.LockOptions) (format.Lock, error) {
				lease, err := s.RenewLock(ctx, f.name, o)
				return f.result("renew", o, lease), err
			})
		},
	}
	cmd.Flags().Var(&f.ttl, "ttl", "the lock expires `DURATION` from now (required)")
	f.bindHolder(cmd.Flags())
	return cmd
}
