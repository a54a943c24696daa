package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
)

func (a *app) newLockRenew() *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "renew NAME",
		Short: "Prolong a lock that was acquired",
		Long: `Let the lock NAME run out only --ttl from now, and print its new fencing token.

Exit code 8 if the holder no longer has it: it is not acquired anew. The store has no
request for that, so sscli watches the key, reads it, and renews only what it found; a
lock that ran out in between is released again.`,
		Example: `  T=$(sscli lock renew build --ttl 60s --holder "job-$CI_JOB_ID") || exit`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.operand(cmd, args); err != nil {
				return err
			}
			f.conflict = codeNo
			o, err := f.needHolder(a)
			if err != nil {
				return err
			}
			if err := a.confirm(cmd.Context(), "lock renew "+shownKey(f.name)); err != nil {
				return err
			}
			return a.withSession(cmd.Context(), func(s *client.Session, so client.Options) error {
				ctx, cancel := context.WithTimeout(cmd.Context(), so.Timeout)
				defer cancel()
				lease, err := s.RenewLock(ctx, f.name, o)
				if err != nil {
					return a.lockError(f, err)
				}
				return a.emit(f.result("renew", o, lease))
			})
		},
	}
	f.bindTTL(cmd.Flags())
	f.bindHolder(cmd.Flags())
	return cmd
}
