package lock

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/format"
)

func newLockStatus(a *cli.App) *cobra.Command {
	var f lockFlags
	var observe config.Text
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show who holds a lock",
		Long: `Print who holds the lock NAME, its newest fencing token, and the token's age: the time
since the acquisition or the last renewal. Exit code 0 if it is held, 1 if it is free.

The token has the time of the store's clock, the age is counted by the local clock, so it
is wrong by the difference of the two. With --observe it counts from a renewal that was
seen, which is exact. The store does not say when the lock expires.`,
		Example: "  sscli lock status build --observe 10s    # is it being renewed?",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.operand(cmd, args); err != nil {
				return err
			}
			d := time.Duration(0)
			if observe != "" {
				var err error
				if d, err = config.ParseDuration(string(observe)); err != nil || d <= 0 {
					return explain.Usagef("--observe %.32q: want a duration such as 500ms or 2m", string(observe))
				}
			}
			return a.WithSession(cmd.Context(), func(s *client.Session, _ client.Options) error {
				var result format.LockStatus
				var err error
				if d == 0 {
					result, err = lockNow(cmd.Context(), s, f.name)
				} else {
					result, err = observeLock(cmd.Context(), s, f.name, d)
				}
				if err != nil {
					return lockError(a, f, err)
				}
				if err := a.Emit(result); err != nil {
					return err
				}
				if !result.Held {
					return explain.ErrNo
				}
				return nil
			})
		},
	}
	cmd.Flags().Var(&observe, "observe", "watch the lock for `DURATION` and count its renewals")
	return cmd
}

// lockNow reads a lock's key.
func lockNow(ctx context.Context, s *client.Session, name string) (format.LockStatus, error) {
	status, err := s.LockStatus(ctx, name)
	if err != nil {
		return format.LockStatus{}, err
	}
	return format.LockStatus{
		Name: name, Held: status.Held, Holder: string(status.Holder),
		Token: cli.Version(status.Token), Age: time.Since(status.Token.Time()),
	}, nil
}

// errObserved ends the observation of a lock.
var errObserved = errors.New("the time of --observe is over")

// observeLock watches a lock for a duration and counts its renewals. If the broker does not
// notify of renewals, the version in the end shows that there was one.
func observeLock(ctx context.Context, s *client.Session, name string, d time.Duration) (format.LockStatus, error) {
	w, err := s.Watch(ctx, []string{name}, client.WatchOptions{})
	if err != nil {
		return format.LockStatus{}, err
	}
	defer func() { _ = w.Close(ctx) }() // the session ends with it
	limited, cancel := context.WithTimeoutCause(ctx, d, errObserved)
	defer cancel()
	var last client.Event // the last that has the state of the key
	renewals := 0
	for {
		e, err := w.Next(limited)
		if errors.Is(err, errObserved) {
			break
		}
		if err != nil {
			return format.LockStatus{}, err
		}
		switch e.Kind {
		case client.EventSet:
			if last.HasValue && string(e.Value) == string(last.Value) {
				renewals++
			} else {
				renewals = 0
			}
		case client.EventInitial, client.EventResync, client.EventDelete:
		default:
			continue
		}
		last = e
	}
	result, err := lockNow(ctx, s, name)
	if err != nil {
		return result, err
	}
	result.Observed, result.Renewals = d, renewals
	if !result.Held || !last.HasValue || result.Holder != string(last.Value) {
		result.Renewals = 0
		return result, nil
	}
	if result.Token != nil && !last.Version.IsZero() && result.Token.String() != last.Version.String() {
		result.Renewals++
	} else if last.Kind == client.EventSet {
		result.Age, result.Seen = time.Since(last.Time), true
	}
	return result, nil
}
