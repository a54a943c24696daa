package doctor

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/format"
)

func New(a *cli.App) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Find out why a connection does not work, or how well it does",
		GroupID: cli.GroupDebug,
		Long: `Climb the way to the store step by step: the settings and where they come from, the
host's name, TCP, TLS, the login, the subscription, a read, the round trip. Each step is
PASS, WARN, FAIL or SKIP, with the reason and the next thing to try. The first FAIL ends
it, with the exit code that other commands would end with; a WARN does not.

--write goes further: how far the local clock is from the store's, whether writes and
conditions do what they should, how long a change takes to be announced, whether there
is SCAN, and which forms of the protocol this broker speaks. It uses keys that begin
with ` + scratchPrefix + ` and something random, which are deleted in the end and expire
within a minute in any case.`,
		Example: "  sscli doctor\n  sscli doctor --write -o json | jq 'select(.status != \"pass\")'",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if write {
				if err := a.Confirm(cmd.Context(), "doctor --write"); err != nil {
					return err
				}
			}
			return run(a, cmd.Context(), write)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "also write scratch keys, which are removed again")
	return cmd
}

// A checkup climbs the ladder of `doctor`.
type checkup struct {
	a        *cli.App
	o        client.Options
	s        *client.Session
	summary  format.CheckSummary
	recorder recorder
}

func run(a *cli.App, ctx context.Context, write bool) (err error) {
	c := &checkup{a: a}
	err = c.climb(ctx, write)
	if printErr := a.Emit(c.summary); err == nil {
		err = printErr
	}
	return err
}

func (c *checkup) climb(ctx context.Context, write bool) (err error) {
	o, undo, err := c.a.Broker()
	if err != nil {
		return c.fail(ctx, "configuration", err)
	}
	defer func() { err = errors.Join(err, undo()) }()
	c.o = o
	if err := c.configuration(); err != nil {
		return err
	}
	if err := c.connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.s.Close()) }()
	if err := c.read(ctx); err != nil {
		return err
	}
	if err := c.roundTrip(ctx); err != nil {
		return err
	}
	if !write {
		return c.skip("write", "clock, writes, notifications, SCAN and the dialect need --write")
	}
	return c.scratch(ctx)
}

// print prints a check and counts it. The error is that of the output.
func (c *checkup) print(check format.Check) error {
	switch check.Status {
	case format.Pass:
		c.summary.Passed++
	case format.Warn:
		c.summary.Warned++
	case format.Fail:
		c.summary.Failed++
	case format.Skip:
		c.summary.Skipped++
	}
	return c.a.Emit(check)
}

func (c *checkup) skip(name, why string) error {
	return c.print(format.Check{Name: name, Status: format.Skip, Message: why})
}

// fail prints what ends the climb, and returns it as printed.
func (c *checkup) fail(ctx context.Context, name string, err error, facts ...format.Fact) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // a signal is nothing that the check found
	}
	f, _ := c.a.Explain(err)
	if printErr := c.print(format.Check{Name: name, Status: format.Fail, Message: f.Message, Hint: f.Hint, Facts: facts}); printErr != nil {
		return printErr
	}
	return &explain.ExitError{Code: f.Code, Err: err}
}
