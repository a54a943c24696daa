// Package doctor is the command `sscli doctor`, which checks each step of a connection.
//
// [New] makes the command. A checkup (doctor.go) runs the checks in this order, and prints each. It
// ends at the first check that fails, with the exit code of that check's error:
//
//   - configuration.go: the settings, and where they come from;
//   - with --via, cluster.go: kubectl, the cluster, the service, the forward, the CA, the token;
//   - connect.go: name lookup and TCP, or the proxy; TLS, WebSocket, CONNECT,
//     SUBSCRIBE; a read, and the round trip;
//   - with --write, write.go and clock.go: the clock, writes, notifications, SCAN, and the
//     dialect of the protocol.
//
// A check is a method that ends with a call to pass, skip, fail or, to warn, print. The checks of
// --via, a proxy and a WebSocket print nothing if these are not used. docs/development/recipes.md has the steps to add one.
// The recorder (recorder.go) records what the connection sends and receives.
//
// Without --write, doctor writes nothing. With --write, a check gets its keys from the method key and
// sets them with scratchTTL. doctor deletes these keys at the end; if that fails, they expire.
package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/mqtt"
)

// New returns the command `sscli doctor`.
func New(a *app.App) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check each step of the connection",
		GroupID: app.GroupFirst,
		Long: `Check each step of the connection, and print how to fix the first step that fails.

The steps are: the settings and where they come from, the host name, TCP, TLS, the login,
the subscription, a read, the round trip, and the clock: the versions of up to 16 keys
limit how far the local clock can be ahead of the store's, by up to a minute too little if
a writer's clock was ahead. With --via, the steps into the cluster come first: kubectl,
the cluster, the service, the forward, the CA, the token.
Each step is PASS, WARN, FAIL or SKIP, with the reason and the next thing to try. The first FAIL ends
the check, with the exit code that any other command would have for it. A WARN does not
end the check.

--write also measures the difference between the two clocks, which a client with a fast
clock can hide for a minute, and checks writes and their conditions, the delay of a
notification, whether the broker has SCAN, and which forms of the protocol it uses. The
keys of these checks begin with ` + app.DoctorKeys + ` and random characters. They are deleted
at the end; if that fails, they expire within a minute.`,
		Example: "  sscli doctor\n  sscli doctor --write -o json | jq 'select(.status != \"pass\")'",
		Args:    usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if write {
				if err := a.Confirm(cmd.Context(), "doctor --write"); err != nil {
					return err
				}
			}
			return run(cmd.Context(), a, write)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "also check writes, with scratch keys")
	return cmd
}

// A checkup runs the checks of `doctor` and counts them.
type checkup struct {
	a        *app.App
	o        client.Options
	s        *client.Session     // nil before connect
	summary  format.CheckSummary // counts the checks that were printed
	recorder recorder

	// For the checks of --write.
	prefix   string       // prefix of the scratch keys
	keys     []string     // scratch keys that may exist
	refusal  mqtt.Message // the reply to a write whose condition was not met
	deletion mqtt.Message // the notification of a deletion
	unknown  mqtt.Message // the reply to SCAN, if the store answered that it does not know the verb; otherwise zero
}

func run(ctx context.Context, a *app.App, write bool) error {
	a.Signals.Arm()
	c := &checkup{a: a, prefix: app.DoctorKeys + strings.ToLower(rand.Text()[:8]) + "/"}
	err := c.runChecks(ctx, write)
	return cmp.Or(err, a.Emit(c.summary))
}

// runChecks runs the checks until one fails. Each check depends on the earlier ones.
func (c *checkup) runChecks(ctx context.Context, write bool) error {
	configured := false
	err := c.a.WithBroker(func(o client.Options) (err error) {
		c.o, configured = o, true
		defer func() {
			if c.s != nil {
				err = errors.Join(err, c.s.Close())
			}
		}()
		defer func() { err = cmp.Or(err, c.deleteKeys(ctx)) }()
		checks := []func(context.Context) error{c.configuration, c.cluster, c.connect, c.read, c.roundTrip}
		if write {
			checks = append(checks, c.clock, c.write, c.notify, c.scan, c.dialect)
		}
		for _, check := range checks {
			if err := check(ctx); err != nil {
				return err
			}
		}
		if !write {
			if err := c.clockBound(ctx); err != nil {
				return err
			}
			return c.skip("write", "not tested without --write: writes, notifications, SCAN, dialect")
		}
		return nil
	})
	if err != nil && !configured {
		return c.fail(ctx, "configuration", err)
	}
	return err
}

// print prints and counts a check. It returns an error only if the check cannot be printed.
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

func (c *checkup) pass(name string, took time.Duration, message string) error {
	return c.print(format.Check{Name: name, Status: format.Pass, Took: took.Round(time.Microsecond), Message: message})
}

func (c *checkup) skip(name, why string) error {
	return c.print(format.Check{Name: name, Status: format.Skip, Message: why})
}

// fail prints a failed check, and returns an error that ends the checkup with the exit code of err. The
// error is not printed again.
func (c *checkup) fail(ctx context.Context, name string, err error, facts ...format.Fact) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // the check ended because of a signal
	}
	f, _ := c.a.FaultOf(err)
	if printErr := c.print(format.Check{Name: name, Status: format.Fail, Message: f.Text(), Hint: f.Hint.String(), Facts: facts}); printErr != nil {
		return printErr
	}
	return &fault.ExitError{Code: f.Code, Err: err}
}
