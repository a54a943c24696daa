package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/format"
)

func newLockHold(a *cli.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "hold NAME",
		Short: "Hold a lock until interrupted",
		Long: `Acquire the lock NAME, waiting for it if another holds it, print its fencing token and
keep renewing it, until a signal (INT, TERM, HUP) ends it: then release it. Exit code 8
as soon as the lock is lost.

The token that was printed stays good for as long as the lock is held.`,
		Example: `  sscli lock hold maintenance        # until Ctrl-C`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.operand(cmd, args); err != nil {
				return err
			}
			o, err := f.options()
			if err != nil {
				return err
			}
			if err := a.Confirm(cmd.Context(), "lock hold "+format.Brief(f.name)); err != nil {
				return err
			}
			return a.WithSession(cmd.Context(), func(s *client.Session, so client.Options) error {
				return lockError(a, f, hold(a, cmd.Context(), s, so, f, o))
			})
		},
	}
	f.bindTTL(cmd.Flags())
	f.bindWait(cmd.Flags())
	cmd.Flags().Var(&f.holder, "holder", "the holder's `NAME`, which nobody else may use (default: the client id and random characters)")
	cmd.Flags().Var(&f.grace, "grace", "give up `DURATION` before the lock can run out (default: a quarter of the TTL, at most 5s)")
	return cmd
}

// hold holds a lock until ctx ends or it is lost.
func hold(a *cli.App, ctx context.Context, s *client.Session, so client.Options, f lockFlags, o client.LockOptions) (err error) {
	tellOfLock(a, &o)
	troubles := make(chan error, 16)
	waiting := o.OnTrouble
	held := false // what OnLease sets, OnTrouble sees: they are called one at a time
	o.OnLease = func(client.Lease) { held = true }
	o.OnTrouble = func(err error) {
		if !held {
			waiting(err)
			return
		}
		select { // standard error may be slow, the renewing must not be
		case troubles <- err:
		default:
		}
	}
	l, err := s.Lock(ctx, f.name, o)
	if err != nil {
		return err
	}
	defer func() {
		if release := releaseLock(a, l, so.Timeout); release != nil && err == nil {
			err = release
		}
	}()
	o.Holder = l.Holder()
	if err := a.Emit(f.result("hold", o, l.Lease())); err != nil {
		return err
	}
	for {
		select {
		case err := <-troubles:
			a.Warn(explain.Message(err)+"; trying again", "")
		case <-l.Context().Done():
			return context.Cause(l.Context())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// releaseLock gives a lock back, also after a signal. That it was lost is known to
// whoever was told of it by the lock's context; what else is wrong is a warning.
func releaseLock(a *cli.App, l *client.Lock, timeout time.Duration) error {
	lost := errors.Is(context.Cause(l.Context()), client.ErrLockLost)
	ctx, cancel := context.WithTimeout(context.Background(), l.Timing().Interval+2*time.Second+timeout)
	defer cancel()
	err := l.Release(ctx)
	switch {
	case err == nil || lost && errors.Is(err, client.ErrNotHolder):
		return nil
	case errors.Is(err, client.ErrNotHolder):
		a.Warn(explain.Message(err)+", when it should have been released", "")
	default:
		a.Warn(fmt.Sprintf("lock %s was not released (%s), it runs out within %v", format.Brief(l.Name()), explain.Message(err), l.Timing().TTL), "")
	}
	return err
}
