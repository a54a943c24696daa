package lock

import (
	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

func newLockStatus(a *app.App) *cobra.Command {
	var f lockFlags
	var observe config.Text
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show who holds a lock",
		Long: `Print who holds the lock NAME, its newest fencing token, and the token's age: the time
since the acquisition or the last renewal. Exit code 0 if it is held, 1 if it is free.

The token has the time of the store's clock, the age is counted by the local clock, so it
is wrong by the difference of the two. With --observe it counts from a renewal that was
seen, which is exact.

The store does not say when the lock expires. A holder is expected to renew it three times
in a lease: sscli's do. So a holder that was not seen to renew in 30s may be gone, or has a
lease of more than 90s.`,
		Example: "  sscli lock status build --observe 10s    # is it being renewed?",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.operand(cmd, args); err != nil {
				return err
			}
			d, err := parseObserve(observe)
			if err != nil {
				return err
			}
			return a.WithSession(cmd.Context(), func(s *client.Session, _ client.Options) error {
				readings, err := look(a, cmd.Context(), s, []string{f.name}, d)
				if err == nil {
					err = readings[0].err
				}
				if err != nil {
					return lockError(a, f, err)
				}
				result := readings[0].status
				if err := a.Emit(result); err != nil {
					return err
				}
				if !result.Held {
					return fault.ErrNo
				}
				return nil
			})
		},
	}
	cmd.Flags().Var(&observe, "observe", "watch the lock for `DURATION` and count its renewals")
	return cmd
}
