package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

func (a *app) newLockRelease() *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "Give back a lock that was acquired",
		Long: `Release the lock NAME, if the holder still has it. If not it is left alone, and the exit
code is 8: what was done under it may have been done while another held it.`,
		Example: `  sscli lock release build --holder "job-$CI_JOB_ID"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.operand(cmd, args); err != nil {
				return err
			}
			f.conflict = codeNo
			o, err := f.needHolder(a)
			if err != nil {
				return err
			}
			if err := a.confirm(cmd.Context(), "lock release "+shownKey(f.name)); err != nil {
				return err
			}
			return a.withSession(cmd.Context(), func(s *client.Session, so client.Options) error {
				ctx, cancel := context.WithTimeout(cmd.Context(), so.Timeout)
				defer cancel()
				if err := s.ReleaseLock(ctx, f.name, o.Holder); err != nil {
					return a.lockError(f, err)
				}
				return a.emit(format.Lock{Op: "release", Name: f.name, Holder: string(o.Holder)})
			})
		},
	}
	f.bindHolder(cmd.Flags())
	return cmd
}
