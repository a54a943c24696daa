// Package ping measures round trips to the store, for `sscli ping`, for a batch, and for doctor.
//
// [New] makes the command, which connects. [Over] makes it for a session that exists. [Summary]
// is the statistics of any list of round trips.
//
// A round trip is a GET of [Key]. It includes the broker and the store, but not the connection.
package ping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// Key is the key that ping reads. It need not exist, and the client need not have access to it,
// because a refusal is a reply of the store too.
const Key = "sscli/ping"

// New returns the command `sscli ping`.
func New(a *app.App) *cobra.Command {
	return pingCommand(func(ctx context.Context, count int, interval time.Duration) error {
		return a.WithSession(ctx, func(s *client.Session, o client.Options) error {
			return ping(ctx, a, s, o.Timeout, count, interval)
		})
	})
}

// Over returns the command for an existing session. timeout is for each request.
func Over(a *app.App, s *client.Session, timeout time.Duration) *cobra.Command {
	return pingCommand(func(ctx context.Context, count int, interval time.Duration) error {
		return ping(ctx, a, s, timeout, count, interval)
	})
}

// pingCommand returns the command, which calls run.
func pingCommand(run func(ctx context.Context, count int, pause time.Duration) error) *cobra.Command {
	var count int
	interval := config.Text("200ms")
	cmd := &cobra.Command{
		Use:     "ping",
		Short:   "Measure the round trip to the store",
		GroupID: app.GroupDebug,
		Long: `Measure the round trip to the store and back. Connecting is not counted.

Each round trip reads the key ` + Key + `, which need not exist. The exit code is 124 if
a reply did not come in time.`,
		Example: "  sscli ping\n  sscli ping -n 100 --interval 10ms -o json",
		Args:    app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pause, err := app.ParseDuration("--interval", interval)
			if err != nil {
				return err
			}
			if count < 1 {
				return fault.Usagef("-n %d: want at least 1", count)
			}
			return run(cmd.Context(), count, pause)
		},
	}
	cmd.Flags().IntVarP(&count, "count", "n", 4, "measure `N` times")
	cmd.Flags().Var(&interval, "interval", "wait `DURATION` between two requests")
	return cmd
}

// ping measures and prints count round trips, and prints their summary. timeout is for each request.
// The error is the last error of a request.
func ping(ctx context.Context, a *app.App, s *client.Session, timeout time.Duration, count int, interval time.Duration) error {
	var answered []time.Duration
	var bad error
	sent := 0
	for ctx.Err() == nil && sent < count {
		if sent > 0 && !wait.For(ctx, interval) {
			break
		}
		sent++
		limited, cancel := context.WithTimeout(ctx, timeout)
		began := time.Now()
		reply, err := s.Get(limited, Key)
		cancel()
		_, refused := errors.AsType[*wire.StoreError](err)
		if refused {
			reply.RTT = time.Since(began)
		}
		result := format.Ping{Seq: sent, Key: Key, RTT: reply.RTT}
		switch {
		case err == nil || refused:
			answered = append(answered, reply.RTT)
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

// Summary returns the statistics of sent requests, of which answered holds the round trips. It sorts
// answered.
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
	// The 99th percentile is the smallest value that 99 of 100 do not exceed.
	s.Min, s.Max, s.Avg, s.P99 = answered[0], answered[n-1], total/time.Duration(n), answered[(n*99+99)/100-1]
	return s
}
