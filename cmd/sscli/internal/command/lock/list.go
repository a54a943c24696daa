package lock

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

func newLockList(a *app.App) *cobra.Command {
	var observe config.Text
	cmd := &cobra.Command{
		Use:   "list [PATTERN | NAME...]",
		Short: "Show who holds several locks",
		Long: `Print a line for each lock: who holds it, the age of its token, which is the time since the
acquisition or the last renewal, and the token. With --observe it also says how often the
holder renews the lock, or that no renewal was seen.

A PATTERN has one of the characters * ? [ and stands for all keys that it matches; the
default is all keys. The store does not say which keys are locks, so use a PATTERN that
matches no others. It needs a broker that has SCAN; a NAME does not.

Exit code 1 if a lock that was named is free. The store does not say when a lock expires,
and the age is wrong by the difference between the local clock and the store's.`,
		Example: `  sscli lock list 'locks/*'
  sscli lock list build deploy --observe 30s    # are they being renewed?`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := parseObserve(observe)
			if err != nil {
				return err
			}
			names := app.UnprotectAll(args)
			all := len(names) == 0
			if all {
				names = []string{"*"}
			}
			for _, name := range names {
				if name == "" {
					return fault.Usagef("the name of a lock is empty")
				}
			}
			return a.WithSession(cmd.Context(), func(s *client.Session, _ client.Options) error {
				return listLocks(a, cmd.Context(), s, names, all, d)
			})
		},
	}
	cmd.Flags().Var(&observe, "observe", "watch the locks for `DURATION` and count their renewals")
	return cmd
}

// isPattern reports whether an operand stands for several locks.
func isPattern(operand string) bool { return strings.ContainsAny(operand, "*?[") }

// listLocks prints the locks with these names, and those that match the patterns among them.
// all says that no operand was given.
func listLocks(a *app.App, ctx context.Context, s *client.Session, operands []string, all bool, observe time.Duration) error {
	var names []string
	found := make(map[string]bool) // of names: true if it was named
	for _, operand := range operands {
		if !isPattern(operand) {
			if _, twice := found[operand]; !twice {
				names = append(names, operand)
			}
			found[operand] = true
			continue
		}
		for page, err := range s.Scan(ctx, operand) {
			if err != nil {
				return fault.DescribeScan(client.Scan(operand, nil), err)
			}
			for _, name := range page.Keys {
				if _, twice := found[name]; !twice {
					names = append(names, name)
					found[name] = false
				}
			}
		}
	}
	if all && len(names) > 0 {
		a.Inform("the store does not say which keys are locks: each key is listed as one; a PATTERN such as 'locks/*' lists fewer")
	}
	a.Saw(names...)
	readings, err := look(a, ctx, s, names, observe)
	if err != nil {
		return err
	}
	var first *fault.ExitError
	free := false
	var rows []format.Row
	for _, r := range readings {
		if r.err != nil {
			err := lockError(a, lockFlags{name: r.status.Name, conflict: fault.CodeNo}, r.err)
			if ctx.Err() != nil {
				return err // said once
			}
			if code := a.Fault(err); first == nil {
				first = &fault.ExitError{Code: code, Err: err}
			}
			continue
		}
		if !r.status.Held && !found[r.status.Name] {
			continue // released since the scan
		}
		free = free || !r.status.Held
		r.status.List = true
		rows = append(rows, r.status)
	}
	a.Out.Measure(rows...)
	for _, row := range rows {
		if err := a.Queue(row); err != nil {
			return err
		}
	}
	if err := a.Flush(); err != nil {
		return err
	}
	switch {
	case first != nil:
		return first
	case free:
		return fault.ErrNo
	}
	return nil
}
