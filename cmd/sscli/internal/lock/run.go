package lock

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/child"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/format"
)

func newLockRun(a *cli.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "run NAME -- CMD...",
		Short: "Hold a lock while a command runs",
		Long: `Acquire the lock NAME, run CMD, renew the lock while it runs, and release the lock when
it has ended. The exit code is that of CMD, 128+N if signal N ended it; 8 if the lock was
lost, and 1 if another held it for as long as it was waited for.

CMD is started only while there is time. When the lock cannot be renewed, or is taken
away, CMD and what it started get TERM, and KILL after the grace: before the lock can run
out, so that the next holder is alone. A guard, which is a process of its own, sees to it
when sscli is killed or stopped. All signals are passed on to CMD.

CMD finds the fencing token of the lock in SSCLI_FENCE and, as each renewal gives a newer
one, the present one in the file SSCLI_FENCE_FILE, which is empty once the lock is lost;
--fence lock reads it. The name and the holder of the lock are in SSCLI_LOCK_NAME and
SSCLI_LOCK_HOLDER. The broker is named to sscli in CMD, whatever flags named it here.`,
		Example: "  sscli lock run deploy -- ./deploy.sh\n  sscli lock run nightly --try -- make report || echo busy\n  sscli lock run valve -- sscli set valve open --fence lock",
		RunE: func(cmd *cobra.Command, args []string) error {
			n := cmd.ArgsLenAtDash()
			if n != 1 || len(args) < 2 {
				return explain.Usagef("want lock run NAME -- CMD...")
			}
			args = cli.UnprotectAll(args)
			f.name = args[0]
			return runLocked(a, cmd.Context(), f, args[1:])
		},
	}
	f.bindTTL(cmd.Flags())
	f.bindWait(cmd.Flags())
	cmd.Flags().Var(&f.holder, "holder", "the holder's `NAME`, which nobody else may use (default: the client id and random characters)")
	cmd.Flags().Var(&f.grace, "grace", "time between TERM and KILL as a `DURATION` (default: a quarter of the TTL, at most 5s)")
	return cmd
}

func runLocked(a *cli.App, ctx context.Context, f lockFlags, command []string) (err error) {
	o, err := f.options()
	if err != nil {
		return err
	}
	timing, err := o.Timing()
	if err != nil {
		return err
	}
	if err := client.Get(f.name).Check(); err != nil {
		return &explain.UsageError{Err: err}
	}
	if around, ok := a.Env(fence.EnvLockName); ok && around == f.name {
		return &explain.UsageError{
			Err:  fmt.Errorf("lock %s is held by the lock run around this one, which would wait for itself", format.Brief(f.name)),
			Hint: "if it is the lock of another store: env -u " + fence.EnvLockName + " sscli lock run …",
		}
	}
	if err := a.Confirm(ctx, "lock run "+format.Brief(f.name)); err != nil {
		return err
	}
	file, err := fence.NewFile()
	if err != nil {
		return &child.StartError{Name: command[0], Code: child.CodeSetup, Err: err}
	}
	defer func() { err = errors.Join(err, file.Remove()) }()
	r := &lockRun{app: a, file: file, notices: make(chan string, 16)}
	r.guarded, err = child.NewGuarded(child.GuardOptions{
		Args: command, Grace: timing.Grace, Secret: file.Path, Suspended: r.suspended,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.guarded.Close()) }()

	tellOfLock(a, &o)
	waiting := o.OnTrouble
	o.OnLease = r.leased
	o.OnTrouble = func(err error) {
		if !r.held {
			waiting(err)
			return
		}
		r.notice(explain.Message(err) + "; trying again")
	}
	return a.WithSession(ctx, func(s *client.Session, so client.Options) error {
		r.lock, err = s.Lock(ctx, f.name, o)
		if err != nil {
			return lockError(a, f, err)
		}
		return r.run(ctx, so)
	})
}

// lockedEnviron is the environment of the child of a lock.
func lockedEnviron(a *cli.App, address string, l *client.Lock) []string {
	s := a.Settings
	if s.Embedded {
		s = config.Settings{Address: address}
	}
	set, drop := s.Environ()
	set[fence.EnvLockName], set[fence.HolderVariable] = l.Name(), string(l.Holder())
	set[fence.EnvFence] = l.Token().String()
	return child.Environ(set, drop...)
}

// A lockRun is a child and its lock.
type lockRun struct {
	app     *cli.App
	guarded *child.Guarded
	file    *fence.File
	lock    *client.Lock
	held    bool        // of the lock's callbacks, which are called one at a time
	notices chan string // standard error may be slow, the renewing must not be
}

// run runs the child and gives the lock back. A signal is for the child, so that
// ctx, which it ends too, counts up to the start only.
func (r *lockRun) run(ctx context.Context, so client.Options) error {
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		r.watch(over)
	}()
	var end child.End
	err := context.Cause(ctx)
	if err == nil {
		env := lockedEnviron(r.app, so.Address, r.lock)
		end, err = r.guarded.Run(append(env, fence.EnvFenceFile+"="+r.file.Path))
	}
	emptied := r.file.Empty()
	lost := context.Cause(r.lock.Context()) // before Release ends it too
	close(over)
	released := releaseLock(r.app, r.lock, so.Timeout)
	<-watched
	if emptied != nil {
		r.app.Note(emptied.Error())
	}
	if end.Left {
		r.app.Warn("processes that the command had left behind were ended", "")
	}
	return r.outcome(end, err, lost, released)
}

// outcome is what a child and its lock came to; err is why it did not run to its
// end.
func (r *lockRun) outcome(end child.End, err, lost, released error) error {
	name := format.Brief(r.lock.Name())
	if interrupted, ok := errors.AsType[*child.InterruptedError](err); ok {
		return &signals.Interrupted{Signal: interrupted.Signal.(syscall.Signal)}
	}
	switch {
	case errors.Is(err, child.ErrLate):
		return fmt.Errorf("%w: no time was left to start the command under lock %s", client.ErrLockLost, name)
	case errors.Is(err, child.ErrGuardDied):
		return fmt.Errorf("lock %s: the command was killed: %w", name, err)
	case err != nil:
		return err
	case lost != nil:
		return &lockLostError{lost, end}
	case end.Killed:
		return &lockLostError{fmt.Errorf("lock %s was not renewed in time: %w", name, client.ErrLockLost), end}
	case errors.Is(released, client.ErrNotHolder):
		return &lockLostError{fmt.Errorf("%w: %w", client.ErrLockLost, released), end}
	case end.Code != 0:
		return &explain.ExitError{Code: end.Code}
	}
	return nil
}

// watch tells of what happens while the child runs, and ends it when the lock is
// lost.
func (r *lockRun) watch(over <-chan struct{}) {
	lost := r.lock.Context().Done()
	for {
		select {
		case <-over:
			for len(r.notices) > 0 {
				r.app.Warn(<-r.notices, "")
			}
			return
		case text := <-r.notices:
			r.app.Warn(text, "")
		case <-lost:
			lost = nil
			why := context.Cause(r.lock.Context())
			if !errors.Is(why, client.ErrLockLost) {
				continue // it was released
			}
			emptied := r.file.Empty()
			r.guarded.Stop()
			r.app.Warn(explain.Message(why)+"; the command is told to end", "")
			if emptied != nil {
				r.app.Note(emptied.Error())
			}
		}
	}
}

func (r *lockRun) notice(text string) {
	select {
	case r.notices <- text:
	default: // there are enough of them already
	}
}

// leased has a new lease: the child may live longer, and has a new token.
func (r *lockRun) leased(l client.Lease) {
	r.guarded.Limit(l.Term, l.Until)
	if err := r.file.Write(l.Token.String()); err != nil {
		r.notice("the command has an old token: " + err.Error())
	}
	if !r.held && r.app.Settings.Verbose {
		r.notice("the lock is held, token " + l.Token.String())
	}
	r.held = true
}

// suspended is called before sscli is stopped with the child.
func (r *lockRun) suspended() {
	left := max(r.lock.Lease().TermIn(), 0).Round(100 * time.Millisecond)
	r.app.Warn(fmt.Sprintf("lock %s is not renewed while sscli is stopped: in %v the command is ended", format.Brief(r.lock.Name()), left), "")
}

// A lockLostError is a lock that was lost while a command ran under it.
type lockLostError struct {
	err error
	end child.End
}

func (e *lockLostError) Error() string {
	if e.end.Killed {
		return e.err.Error() + "; the command was ended"
	}
	return fmt.Sprintf("%v; the command had ended with exit code %d", e.err, e.end.Code)
}

func (e *lockLostError) Unwrap() error { return e.err }
