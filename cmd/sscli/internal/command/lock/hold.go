package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

func newHold(a *app.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "hold NAME",
		Short: "Hold a lock until interrupted",
		Long: `Acquire the lock NAME, waiting while another holds it. Print its fencing token, and renew
the lock until a signal (INT, TERM, HUP) arrives; then release it. If the lock is lost,
end at once with exit code 8. On a terminal, one line shows when the lock was last renewed
and when it would expire.

The printed token stays valid while the lock is held.`,
		Example: `  sscli lock hold maintenance        # until Ctrl-C`,
		Args:    usage.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.name = args[0]
			o, err := f.newHolder(a)
			if err = cmp.Or(err, a.NeverWait()); err != nil {
				return err
			}
			ctx := cmd.Context()
			if err := a.Confirm(ctx, "lock hold "+format.Brief(f.name)); err != nil {
				return err
			}
			return a.WithSession(ctx, func(s *client.Session, _ client.Options) error {
				return f.lockError(a, f.hold(ctx, a, s, o))
			})
		},
	}
	f.bindHold(cmd.Flags(), "give up `DURATION` before the lock can expire")
	return cmd
}

// acquire acquires a lock, which the session then renews in the background. While acquire waits, it
// prints who holds the lock. Once the lock is held, onTrouble is called with the error of each failed
// renewal, and with nil when a renewal succeeds again.
func (f *lockFlags) acquire(ctx context.Context, a *app.App, s *client.Session, o client.LockOptions, onTrouble func(error)) (*client.Lock, error) {
	f.reportWaiting(a, &o)
	waiting, held, onLease := o.OnTrouble, false, o.OnLease // held needs no mutex: one callback runs at a time
	o.OnLease = func(l client.Lease) {
		held = true
		if onLease != nil {
			onLease(l)
		}
	}
	o.OnTrouble = func(err error) {
		if held {
			onTrouble(err)
		} else {
			waiting(err)
		}
	}
	return s.Lock(ctx, f.name, o)
}

// Hold acquires a lock for another command of sscli, and renews it until release is called. While
// another client holds the lock, Hold waits and prints who holds it. It returns the same errors
// as `lock hold`.
func Hold(ctx context.Context, a *app.App, s *client.Session, name string) (l *client.Lock, release func() error, err error) {
	f := lockFlags{name: name, conflict: fault.CodeNo}
	o, err := f.newHolder(a)
	if err != nil {
		return nil, nil, err
	}
	if l, err = f.acquire(ctx, a, s, o, func(error) {}); err != nil {
		return nil, nil, f.lockError(a, err)
	}
	return l, func() error { return f.lockError(a, releaseLock(a, s, l)) }, nil
}

func (f *lockFlags) hold(ctx context.Context, a *app.App, s *client.Session, o client.LockOptions) (err error) {
	r := newReporter(a, "the lock counts as lost")
	l, err := f.acquire(ctx, a, s, o, r.trouble)
	if err != nil {
		return err
	}
	defer func() {
		lost := errors.Is(err, client.ErrLockLost)
		if lost { // print the error before the release, which takes time
			err = &fault.ExitError{Code: a.Fault(err), Err: err}
		}
		released := releaseLock(a, s, l)
		switch {
		case released != nil && err == nil:
			err = released
		case released == nil && !lost && a.Output == "human":
			a.Inform("released lock " + format.Brief(l.Name()))
		}
	}()
	if err := a.Emit(f.result("hold", o, l.Lease())); err != nil {
		return err
	}
	defer showLease(a, l)()
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(l.Context(), func() { cancel(context.Cause(l.Context())) })()
	r.lock = l
	r.run(ctx.Done())
	return context.Cause(ctx)
}

// A reporter prints messages while a lock is held. It prints them in the goroutine of run, so that a
// slow standard error does not delay renewals or deadlines.
type reporter struct {
	app     *app.App
	failure string       // what happens if the lock is not renewed in time
	prints  chan func()  // functions that print a message, for run
	outage  app.Outage   // only run uses it
	lock    *client.Lock // set before run
}

func newReporter(a *app.App, failure string) *reporter {
	return &reporter{app: a, failure: failure, prints: make(chan func(), 16), outage: app.Outage{Notify: a.Notify}}
}

// print makes run call f, which prints a message. It drops f if too many messages are waiting.
func (r *reporter) print(f func()) {
	select {
	case r.prints <- f:
	default:
	}
}

func (r *reporter) warn(text string) { r.print(func() { r.app.Warn(text) }) }

// trouble prints the error of a renewal. If err is nil, it prints that renewals succeed again.
func (r *reporter) trouble(err error) {
	r.print(func() { r.outage.Report(err, r.retrying()) })
}

// retrying returns a text that says that sscli tries again to renew the lock, and what happens if it
// cannot.
func (r *reporter) retrying() string {
	return fmt.Sprintf("trying again, %s in %v", r.failure, termIn(r.lock))
}

// run prints messages until over is closed. During an outage, it also prints from time to time how long
// the outage has lasted, until the lock is lost.
func (r *reporter) run(over <-chan struct{}) {
	tick := time.NewTicker(app.OutageInterval)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case f := <-r.prints:
			f()
		case <-tick.C:
			if r.lock.Context().Err() == nil {
				r.outage.Still(r.retrying())
			}
		}
	}
}

// termIn returns the time until work under a lock must stop.
func termIn(l *client.Lock) time.Duration {
	return max(l.Lease().TermIn(), 0).Round(100 * time.Millisecond)
}

// releaseLock releases a lock, even after a signal, and prints a warning if it cannot. It returns nil
// if the lock was released, or if it was lost and the release confirms that. If the lock is or may be
// lost, and there is no connection, releaseLock does not wait for one.
func releaseLock(a *app.App, s *client.Session, l *client.Lock) error {
	timeout := a.Timeout()
	cause := context.Cause(l.Context())
	lost := errors.Is(cause, client.ErrLockLost)
	late := l.Lease().TermIn() <= 0 // the lock may already be lost
	limit := min(twoTimeouts(timeout), l.Timing().Interval+2*time.Second+timeout)
	switch {
	case (lost || late) && s.Err() != nil:
		limit = 0
	case late: // the lock expires soon anyway, if it has not expired already
		limit = min(limit, time.Second)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := l.Release(ctx)
	name := format.Brief(l.Name())
	unknown, ok := errors.AsType[*client.LockUnknownError](err)
	over := ok && unknown.Over
	switch {
	case err == nil || lost && (over || errors.Is(err, client.ErrNotHolder)):
		return nil
	case over && !late:
		a.Warn("no reply came to the first release of lock " + name + ", which is free or has another holder now; the command ended before it could expire")
		return nil
	case errors.Is(err, client.ErrNotHolder):
		a.Warn(fault.Message(err) + "; it should have been held until now")
	case limit == 0:
		if e, ok := errors.AsType[*client.LockLostError](cause); !ok || e.Loss == client.LossNoRenewal {
			a.Warn("lock " + name + " is not released, because the broker is away; it expires by itself")
		}
	case fault.IsStoreError(wire.ErrorFenceRequired)(err):
		a.Advise("lock "+name+" was not released: its key was written with a fencing token, so it is an ordinary key now",
			suggest.Try("`sscli lock break NAME --force-fence`").Fill(suggest.Name, l.Name()))
	default:
		a.Warn(fmt.Sprintf("the release of lock %s is not confirmed (%s); it expires by itself", name, fault.Message(err)))
	}
	return err
}

// showLease shows the lease of a lock in one line of the terminal, until end is called.
func showLease(a *app.App, l *client.Lock) (end func()) {
	if a.Output != "human" {
		return func() {}
	}
	first := l.Lease()
	_, end = a.Live(100*time.Millisecond, func() string {
		lease := l.Lease()
		ttl := l.Timing().TTL
		left := lease.UntilIn() + ttl - lease.Until.Sub(lease.Sent) // Until is earlier than the expiry
		return leaseText(l.Name(), lease.Sent.After(first.Sent), ttl-left, left)
	})
	return end
}

// leaseText returns the text of the line for a lease. ago is the time since the lock was acquired or
// renewed, and left is the time until it expires.
func leaseText(name string, renewed bool, ago, left time.Duration) string {
	what := "acquired"
	if renewed {
		what = "renewed"
	}
	expires := "expired"
	if left > 0 {
		expires = "expires in " + tenths(left)
	}
	return fmt.Sprintf("lock %s: %s %s ago, %s", format.Brief(name), what, tenths(ago), expires)
}

// tenths formats a duration with exactly one decimal (11.0s), so that a live line does not flicker.
func tenths(d time.Duration) string {
	d = d.Truncate(100 * time.Millisecond)
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%dm%.1fs", d/time.Minute, (d % time.Minute).Seconds())
}
