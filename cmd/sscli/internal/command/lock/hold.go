package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

func newLockHold(a *app.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "hold NAME",
		Short: "Hold a lock until interrupted",
		Long: `Acquire the lock NAME, waiting while another holds it, print its fencing token, and keep
renewing the lock until a signal (INT, TERM, HUP) comes; then release it. Exit code 8 as
soon as the lock is lost. On a terminal one line shows when the lock was renewed and when
it would expire.

The printed token stays good while the lock is held.`,
		Example: `  sscli lock hold maintenance        # until Ctrl-C`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.operand(cmd, args); err != nil {
				return err
			}
			o, err := f.options()
			if err != nil {
				return err
			}
			if len(o.Holder) == 0 {
				o.Holder = newHolder(a)
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
	cmd.Flags().Var(&f.holder, "holder", "the holder's `NAME`, which nobody else may use (default: user@host:pid:random)")
	cmd.Flags().Var(&f.grace, "grace", "give up `DURATION` before the lock can expire (default: a quarter of the TTL, at most 5s)")
	return cmd
}

// hold holds a lock until ctx ends or it is lost.
func hold(a *app.App, ctx context.Context, s *client.Session, so client.Options, f lockFlags, o client.LockOptions) (err error) {
	reportWaiting(a, &o)
	troubles := make(chan error, 16)
	waiting := o.OnTrouble
	held := false // by OnLease, for OnTrouble; they are called one at a time
	o.OnLease = func(client.Lease) { held = true }
	o.OnTrouble = func(err error) {
		if !held {
			waiting(err)
			return
		}
		offer(troubles, err) // printing may be slow, renewing must not be
	}
	l, err := s.Lock(ctx, f.name, o)
	if err != nil {
		return err
	}
	defer func() {
		lost := errors.Is(err, client.ErrLockLost)
		if lost { // said before the release, which takes a moment
			err = &fault.ExitError{Code: a.Fault(err), Err: err}
		}
		release := releaseLock(a, s, l, so.Timeout)
		switch {
		case release != nil && err == nil:
			err = release
		case release == nil && !lost && a.Output == "human":
			a.Inform("released lock " + format.Brief(l.Name()))
		}
	}()
	o.Holder = l.Holder()
	if err := a.Emit(f.result("hold", o, l.Lease())); err != nil {
		return err
	}
	defer showLease(a, l)()
	var outage app.Outage
	tick := time.NewTicker(app.OutageInterval)
	defer tick.Stop()
	for {
		select {
		case err := <-troubles:
			outage.Report(a, err, giveUpIn(l))
		case <-tick.C:
			outage.Still(a, giveUpIn(l))
		case <-l.Context().Done():
			return context.Cause(l.Context())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// giveUpIn says what happens while a held lock cannot be renewed.
func giveUpIn(l *client.Lock) string {
	return fmt.Sprintf("trying again, the lock counts as lost in %v", max(l.Lease().TermIn(), 0).Round(100*time.Millisecond))
}

// offer sends an error unless the channel is full: the newest errors are then the same.
func offer(to chan<- error, err error) {
	select {
	case to <- err:
	default:
	}
}

// lostRelease is how long the release of a lock may take that was not renewed in time: it is
// about to expire, and the command should end.
const lostRelease = time.Second

// releaseLock releases a lock, also after a signal, and warns if that did not work. A lock
// that is known to be lost is no error; nothing is tried for it while there is no connection.
func releaseLock(a *app.App, s *client.Session, l *client.Lock, timeout time.Duration) error {
	cause := context.Cause(l.Context())
	lost := errors.Is(cause, client.ErrLockLost)
	late := l.Lease().TermIn() <= 0 // perhaps the loss is not known yet
	limit := min(twoTimeouts(timeout), l.Timing().Interval+2*time.Second+timeout)
	switch {
	case (lost || late) && s.Err() != nil:
		limit = 0
	case late:
		limit = min(limit, lostRelease)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := l.Release(ctx)
	name := format.Brief(l.Name())
	switch {
	case err == nil || lost && errors.Is(err, client.ErrNotHolder):
		return nil
	case errors.Is(err, client.ErrNotHolder):
		a.Warn(fault.Message(err)+"; it should have been held until now", "")
	case limit == 0:
		if e, ok := errors.AsType[*client.LockLostError](cause); !ok || e.Loss == client.LossNoRenewal {
			a.Warn("lock "+name+" is not released, because the broker is away; it expires by itself", "")
		}
	default:
		a.Warn(fmt.Sprintf("the release of lock %s is not confirmed (%s); it expires by itself", name, fault.Message(err)), "")
	}
	return err
}
