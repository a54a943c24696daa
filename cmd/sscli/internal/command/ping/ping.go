// Package ping measures round trips to the store, for `sscli ping`, for a batch, and for doctor.
//
// [New] makes a command that connects. [Over] makes a command that uses an existing session. [RoundTrip]
// measures one round trip, and [Summary] computes the statistics of several.
//
// A round trip is a GET of [Key]. Its time includes the broker and the store, but not connecting.
package ping

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wait"
	"github.com/sscli/sscli/internal/wire"
)

// Key is the key that ping reads. It need not exist, and the user need not be allowed to read it,
// because a refusal is a reply too.
const Key = app.ProbeKey

// New returns the command `sscli ping`.
func New(a *app.App) *cobra.Command {
	return pingCommand(func(ctx context.Context, f flags) error {
		err := a.WithBroker(func(o client.Options) error {
			began := time.Now()
			a.Settings.RetryFor = max(f.wait.Duration, a.Settings.RetryFor)
			return a.Connect(ctx, o, func(s *client.Session) error { return f.run(ctx, a, s, began) })
		})
		if f.alive && err != nil {
			if refusal, _ := a.FaultOf(err); slices.Contains([]string{"login", "connect_denied", "auth_method"}, refusal.Kind) {
				a.Inform("the broker answers, and refuses the login")
				return nil
			}
		}
		return err
	})
}

// Over returns the command `ping` for an existing session.
func Over(a *app.App, s *client.Session) *cobra.Command {
	return pingCommand(func(ctx context.Context, f flags) error {
		return f.run(ctx, a, s, time.Now())
	})
}

// Check returns a command `ping` that checks its flags and sends nothing.
func Check() *cobra.Command { return pingCommand(func(context.Context, flags) error { return nil }) }

type flags struct {
	count          int
	interval, wait usage.Duration
	alive          bool
}

func pingCommand(run func(context.Context, flags) error) *cobra.Command {
	var f flags
	_ = f.interval.Set("200ms") // it is valid
	cmd := &cobra.Command{
		Use:     "ping",
		Short:   "Measure the round trip to the store",
		GroupID: app.GroupDebug,
		Long: `Measure the round trip to the store and back. Connecting is not counted.

Each round trip reads the key ` + Key + `, which need not exist. The exit code is 124 if
a reply did not come in time.

With --wait, first wait until the broker and its store answer. A refused login or
certificate ends the wait at once. If the wait ends without an answer, the exit code says
why the last attempt failed.

With --alive, the exit code is also 0 if the broker refuses the login: a health check needs
none.`,
		Example: "  sscli ping\n  sscli ping -n 100 --interval 10ms -o json\n  sscli ping --wait 30s -n 1 -q    # wait for the broker to start",
		Args:    usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.count < 1 {
				return fault.Usagef("-n %d: must be at least 1", f.count)
			}
			return run(cmd.Context(), f)
		},
	}
	cmd.Flags().IntVarP(&f.count, "count", "n", 4, "measure `N` times")
	cmd.Flags().Var(&f.interval, "interval", "wait `DURATION` between two requests")
	cmd.Flags().Var(f.wait.Least(usage.Positive), "wait", "wait up to `DURATION` for the broker and its store to answer")
	cmd.Flags().BoolVar(&f.alive, "alive", false, "succeed also if the broker refuses the login")
	return cmd
}

// run measures and prints round trips, then prints their summary. With --wait, it first checks that the
// store answers, until f.wait has passed since began. If requests failed, run returns the last of their errors.
func (f flags) run(ctx context.Context, a *app.App, s *client.Session, began time.Time) error {
	if f.wait.Given() {
		err := a.NewRetry(f.wait.Duration-time.Since(began).Truncate(time.Second)).Do(ctx, func(ctx context.Context) error {
			_, err := RoundTrip(ctx, s, a.Timeout())
			return err
		})
		if err != nil {
			return fmt.Errorf("ping: %w", err)
		}
	}
	var answered []time.Duration
	var bad error
	sent, count := 0, f.count
	for ctx.Err() == nil && sent < count {
		if sent > 0 && !wait.For(ctx, f.interval.Duration) {
			break
		}
		sent++
		rtt, err := RoundTrip(ctx, s, a.Timeout())
		result := format.Ping{Seq: sent, Key: Key, RTT: rtt}
		switch {
		case err == nil:
			answered = append(answered, rtt)
		case ctx.Err() != nil:
			sent--
			continue
		case fault.IsTimeout(err):
			bad, result.Note = err, "timed out"
		default:
			bad, result.Note, count = err, "no answer", sent
		}
		if err := a.Emit(result); err != nil {
			return err
		}
	}
	if err := a.Emit(Summary(sent, answered)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if bad != nil {
		return fmt.Errorf("ping: %w", bad)
	}
	return nil
}

// RoundTrip reads [Key] and returns the time until the reply, which may be a refusal by the store.
func RoundTrip(ctx context.Context, s *client.Session, timeout time.Duration) (time.Duration, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	reply, err := s.Get(limited, Key)
	if fault.IsA[*wire.StoreError](err) {
		return time.Since(began), nil
	}
	return reply.RTT, err
}

// Summary returns the statistics of round trips. sent is the number of requests, and answered holds the
// times of the round trips that got a reply. Summary sorts answered.
func Summary(sent int, answered []time.Duration) format.PingSummary {
	s := format.PingSummary{Sent: sent, Lost: sent - len(answered)}
	n := len(answered)
	if n == 0 {
		return s
	}
	slices.Sort(answered)
	var total time.Duration
	for _, d := range answered {
		total += d
	}
	// The 99th percentile is the smallest value that at least 99 % of the values do not exceed.
	s.Min, s.Max, s.Avg, s.P99 = answered[0], answered[n-1], total/time.Duration(n), answered[(n*99+99)/100-1]
	return s
}
