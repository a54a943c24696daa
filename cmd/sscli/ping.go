package main

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
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

// pingKey is read by ping. It need not exist, and need not be allowed: a refusal
// is an answer of the store too.
const pingKey = "sscli/ping"

func newPing(a *app) *cobra.Command {
	return pingCommand(func(ctx context.Context, count int, interval time.Duration) error {
		return a.withSession(ctx, func(s *client.Session, o client.Options) error {
			return ping(ctx, a, s, o.Timeout, count, interval)
		})
	})
}

// newPingOver is newPing over a session that exists; timeout is for each request.
func newPingOver(a *app, s *client.Session, timeout time.Duration) *cobra.Command {
	return pingCommand(func(ctx context.Context, count int, interval time.Duration) error {
		return ping(ctx, a, s, timeout, count, interval)
	})
}

// pingCommand lets run ask the store, count times with a pause between.
func pingCommand(run func(ctx context.Context, count int, pause time.Duration) error) *cobra.Command {
	var count int
	var interval string
	cmd := &cobra.Command{
		Use:     "ping",
		Short:   "Measure the round trip to the store",
		GroupID: groupDebug,
		Long: `Read a key (` + pingKey + `, which need not exist) again and again and print how long each
answer took: the way to the broker, through the store, and back. Connecting is not
counted. Exit code 124 if an answer did not come.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pause, err := config.ParseDuration(interval)
			if err != nil {
				return usage("--interval: %v", err)
			}
			if pause < 0 {
				return usage("--interval %s: want 0 or more", interval)
			}
			if count < 1 {
				return usage("-n %d: want at least 1", count)
			}
			return run(cmd.Context(), count, pause)
		},
	}
	cmd.Flags().IntVarP(&count, "count", "n", 4, "ask `N` times")
	cmd.Flags().StringVar(&interval, "interval", "200ms", "`DURATION` between two")
	return cmd
}

// ping asks the store; timeout is for each request.
func ping(ctx context.Context, a *app, s *client.Session, timeout time.Duration, count int, interval time.Duration) error {
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
		reply, err := s.Get(limited, pingKey)
		cancel()
		_, refused := errors.AsType[*wire.StoreError](err)
		if refused {
			reply.RTT = time.Since(began)
		}
		result := format.Ping{Seq: sent, Key: pingKey, RTT: reply.RTT}
		switch {
		case err == nil || refused:
			answered = append(answered, reply.RTT)
		case ctx.Err() != nil:
			sent--
			continue
		case isTimeout(err):
			bad, result.Note = err, "timed out"
		default:
			bad, result.Note, count = err, "no answer", sent
		}
		if err := a.emit(result); err != nil {
			return err
		}
	}
	if err := a.emit(summary(sent, answered)); err != nil {
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

func summary(sent int, answered []time.Duration) format.PingSummary {
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
	// The 99th percentile is the smallest that 99 of 100 do not exceed.
	s.Min, s.Max, s.Avg, s.P99 = answered[0], answered[n-1], total/time.Duration(n), answered[(n*99+99)/100-1]
	return s
}
