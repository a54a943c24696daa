package doctor

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// New returns the command `sscli doctor`.
func New(a *app.App) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check each step of the connection",
		GroupID: app.GroupDebug,
		Long: `Check each step of the connection and print what to do about the first that fails.

The steps are: the settings and where they come from, the host name, TCP, TLS, the login,
the subscription, a read, the round trip. Each is PASS, WARN, FAIL or SKIP, with the
reason and the next thing to try. The first FAIL ends the check, with the exit code that
other commands would have. A WARN does not end it.

--write also checks the difference between the local clock and the store's, writes and
their conditions, how long a notification takes, whether the broker has SCAN, and which
forms of the protocol it uses. The keys of these checks begin with ` + scratchPrefix + `
and random characters. They are deleted at the end, and expire within a minute in any
case.`,
		Example: "  sscli doctor\n  sscli doctor --write -o json | jq 'select(.status != \"pass\")'",
		Args:    app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if write {
				if err := a.Confirm(cmd.Context(), "doctor --write"); err != nil {
					return err
				}
			}
			return run(a, cmd.Context(), write)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "also check writes, with scratch keys")
	return cmd
}

// A checkup runs the checks of `doctor` and counts them.
type checkup struct {
	a        *app.App
	o        client.Options      // set by climb
	s        *client.Session     // set by connect
	summary  format.CheckSummary // so far
	recorder recorder
}

// run runs a checkup and prints its summary.
func run(a *app.App, ctx context.Context, write bool) (err error) {
	a.Signals.Arm()
	c := &checkup{a: a}
	err = c.climb(ctx, write)
	if printErr := a.Emit(c.summary); err == nil {
		err = printErr
	}
	return err
}

// climb runs the checks, each of which depends on the ones before, to the first that fails.
func (c *checkup) climb(ctx context.Context, write bool) error {
	configured := false
	err := c.a.WithBroker(func(o client.Options) error {
		c.o, configured = o, true
		return c.climbFrom(ctx, write)
	})
	if err != nil && !configured {
		return c.fail(ctx, "configuration", err)
	}
	return err
}

// climbFrom is climb with the options of the connection.
func (c *checkup) climbFrom(ctx context.Context, write bool) (err error) {
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
		return c.skip("write", "not tested without --write: clock, writes, notifications, SCAN, dialect")
	}
	return c.scratch(ctx)
}

// print prints a check and counts it. The error says that it could not be printed.
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

// skip prints that a check was skipped.
func (c *checkup) skip(name, why string) error {
	return c.print(format.Check{Name: name, Status: format.Skip, Message: why})
}

// fail prints the check that ends the checkup, and returns its exit code as an error that needs no
// more words.
func (c *checkup) fail(ctx context.Context, name string, err error, facts ...format.Fact) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // a signal is not a result of the check
	}
	f, _ := c.a.Explain(err)
	if printErr := c.print(format.Check{Name: name, Status: format.Fail, Message: f.Message, Hint: f.Hint, Facts: facts}); printErr != nil {
		return printErr
	}
	return &fault.ExitError{Code: f.Code, Err: err}
}
