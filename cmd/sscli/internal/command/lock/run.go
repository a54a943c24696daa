package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/format"
)

func newLockRun(a *app.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "run NAME -- CMD...",
		Short: "Hold a lock while a command runs",
		Long: `Acquire the lock NAME, run CMD, renew the lock while CMD runs, and release the lock when
CMD has ended. The exit code is that of CMD, 128+N if signal N ended it; 8 if the lock was
lost, and 1 if another held it for the whole wait.

CMD starts only while there is time. When the lock cannot be renewed, or is taken away,
CMD and what it started get TERM, and KILL after the grace: before the lock can expire, so
that the next holder is alone. A guard, a process of its own, does this even if sscli is
killed or stopped. All signals are passed on to CMD.

CMD gets the fencing token of the lock in SSCLI_FENCE. Each renewal gives a newer token:
the file SSCLI_FENCE_FILE has the current one, and is empty once the lock is lost; --fence
lock reads it. SSCLI_LOCK_NAME and SSCLI_LOCK_HOLDER name the lock and its holder. An
sscli in CMD connects to the same broker.`,
		Example: "  sscli lock run deploy -- ./deploy.sh\n  sscli lock run nightly --try -- make report || echo busy\n  sscli lock run valve -- sscli set valve open --fence lock",
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			args = app.UnprotectAll(args)
			if err := checkRun(args, dash); err != nil {
				return err
			}
			f.name = args[0]
			return runLocked(a, cmd.Context(), f, args[1:])
		},
	}
	f.bindTTL(cmd.Flags())
	f.bindWait(cmd.Flags())
	cmd.Flags().Var(&f.holder, "holder", "the holder's `NAME`, which nobody else may use (default: user@host:pid:random)")
	cmd.Flags().Var(&f.grace, "grace", "time between TERM and KILL as a `DURATION` (default: a quarter of the TTL, at most 5s)")
	return cmd
}

// checkRun says what is missing or too much in the operands of lock run. dash is how many
// there are before the --; -1: there is none.
func checkRun(args []string, dash int) error {
	wrong := func(what string, name string, command []string) error {
		hint := "sscli lock run " + format.BriefWord(name) + " --"
		for _, word := range command {
			hint += " " + format.BriefWord(word)
		}
		return &fault.UsageError{Err: errors.New(what), Hint: hint}
	}
	example := []string{"./deploy.sh"}
	switch {
	case len(args) == 0:
		return wrong("missing NAME and -- CMD", "deploy", example)
	case dash == 0:
		return wrong("missing NAME before --", "deploy", args)
	case len(args) == 1:
		return wrong("missing -- CMD: the command to run under the lock", args[0], example)
	case dash < 0:
		return wrong("missing -- before the command", args[0], args[1:])
	case dash == len(args):
		return wrong("missing -- CMD: one lock, and after -- the command to run under it", args[0], args[1:])
	case dash > 1:
		return wrong(fmt.Sprintf("%d words before --: want one NAME", dash), args[0], args[dash:])
	}
	return nil
}

func runLocked(a *app.App, ctx context.Context, f lockFlags, command []string) (err error) {
	o, err := f.options()
	if err != nil {
		return err
	}
	if len(o.Holder) == 0 {
		o.Holder = newHolder(a)
	}
	timing, err := o.Timing()
	if err != nil {
		return err
	}
	if err := client.Get(f.name).Check(); err != nil {
		return &fault.UsageError{Err: err}
	}
	if around, ok := a.Env(fence.EnvLockName); ok && around == f.name {
		return &fault.UsageError{
			Err:  fmt.Errorf("lock %s is held by the lock run around this one, which would wait for itself", format.Brief(f.name)),
			Hint: "if it is the lock of another store: env -u " + fence.EnvLockName + " sscli lock run …",
		}
	}
	if err := a.Confirm(ctx, "lock run "+format.Brief(f.name)); err != nil {
		return err
	}
	file, err := fence.NewFile()
	if err != nil {
		return &process.StartError{Name: command[0], Code: process.CodeSetup, Err: err}
	}
	defer func() { err = errors.Join(err, file.Remove()) }()
	r := &lockRun{app: a, file: file, notices: make(chan notice, 16), troubles: make(chan error, 16), tokens: make(chan string, 1)}
	r.guarded, err = process.NewGuarded(process.GuardOptions{
		Args: command, Grace: timing.Grace, Secret: file.Path, Suspended: r.suspended,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.guarded.Close()) }()

	reportWaiting(a, &o)
	waiting := o.OnTrouble
	o.OnLease = r.leased
	o.OnTrouble = func(err error) {
		if !r.held {
			waiting(err)
			return
		}
		offer(r.troubles, err)
	}
	return a.WithSession(ctx, func(s *client.Session, so client.Options) error {
		r.lock, err = s.Lock(ctx, f.name, o)
		if err != nil {
			return lockError(a, f, err)
		}
		return r.run(ctx, s, so)
	})
}

// lockedEnviron returns the environment of a command that runs under a lock.
func lockedEnviron(a *app.App, address string, l *client.Lock) []string {
	s := a.Settings
	if s.Embedded {
		s = config.Settings{Address: address}
	}
	set, drop := s.Environ()
	set[fence.EnvLockName], set[fence.HolderVariable] = l.Name(), string(l.Holder())
	set[fence.EnvFence] = l.Token().String()
	return process.Environ(set, drop...)
}

// A lockRun is a command and its lock. While the command runs, report prints and refresh
// writes the fence file; whatever else has something to print or to write hands it to them,
// so that neither a slow standard error nor a slow disk holds up renewals or deadlines.
type lockRun struct {
	app      *app.App
	guarded  *process.Guarded
	file     *fence.File
	lock     *client.Lock
	held     bool        // owned by the lock's callbacks, which are called one at a time
	notices  chan notice // for report
	troubles chan error  // for report: why the last request did not succeed; nil: one has since
	outage   app.Outage  // owned by report
	tokens   chan string // for refresh: the newest token
}

// A notice is a warning to print. printed, unless it is nil, is closed once that is done.
type notice struct {
	text    string
	printed chan struct{}
}

// run runs the command and releases the lock. ctx counts until the command starts: a signal
// ends it too, and is passed on to the command.
func (r *lockRun) run(ctx context.Context, s *client.Session, so client.Options) error {
	over := make(chan struct{})
	var helpers sync.WaitGroup
	helpers.Go(func() { r.report(over) })
	helpers.Go(func() { r.refresh(over) })
	defer context.AfterFunc(r.lock.Context(), func() {
		if errors.Is(context.Cause(r.lock.Context()), client.ErrLockLost) {
			r.guarded.Stop() // before anything that may be slow
		}
	})()
	var end process.End
	err := context.Cause(ctx)
	if err == nil {
		env := lockedEnviron(r.app, so.Address, r.lock)
		end, err = r.guarded.Run(append(env, fence.EnvFenceFile+"="+r.file.Path))
	}
	close(over)
	helpers.Wait() // from here on only this goroutine prints
	for len(r.notices) > 0 {
		r.print(<-r.notices)
	}
	released := releaseLock(r.app, s, r.lock, so.Timeout)
	lost := context.Cause(r.lock.Context()) // read last: the loss may become known during the release
	if !errors.Is(lost, client.ErrLockLost) {
		lost = nil // the release has ended it
	}
	if end.Left {
		r.app.Warn("processes that the command had left behind were ended", "")
	}
	return r.outcome(end, err, lost, released)
}

// outcome returns the error of the whole; err is why the command did not run to its end.
func (r *lockRun) outcome(end process.End, err, lost, released error) error {
	name := format.Brief(r.lock.Name())
	switch {
	case errors.Is(err, process.ErrLate):
		return fmt.Errorf("%w: no time was left to start the command under lock %s", client.ErrLockLost, name)
	case errors.Is(err, process.ErrGuardDied):
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
		return &fault.ExitError{Code: end.Code}
	}
	return nil
}

// report prints what happens while the command runs.
func (r *lockRun) report(over <-chan struct{}) {
	lost := r.lock.Context().Done()
	tick := time.NewTicker(app.OutageInterval)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case n := <-r.notices:
			r.print(n)
		case err := <-r.troubles:
			r.outage.Report(r.app, err, r.termIn())
		case <-tick.C:
			if lost != nil {
				r.outage.Still(r.app, r.termIn())
			}
		case <-lost:
			lost = nil
			if why := context.Cause(r.lock.Context()); errors.Is(why, client.ErrLockLost) {
				r.app.Warn(fault.Message(why)+"; stopping the command", "")
			}
		}
	}
}

// termIn says what happens while the lock cannot be renewed.
func (r *lockRun) termIn() string {
	return fmt.Sprintf("trying again, TERM in %v", max(r.lock.Lease().TermIn(), 0).Round(100*time.Millisecond))
}

func (r *lockRun) print(n notice) {
	r.app.Warn(n.text, "")
	if n.printed != nil {
		close(n.printed)
	}
}

// refresh writes each new token to the fence file, and empties the file when the lock is
// lost or the command has ended.
func (r *lockRun) refresh(over <-chan struct{}) {
	for lost := r.lock.Context().Done(); ; {
		var err error
		select {
		case token := <-r.tokens:
			if err = r.file.Write(token); err != nil {
				r.notice("the command has an old token: " + err.Error())
			}
			continue
		case <-lost:
		case <-over:
		}
		if err = r.file.Empty(); err != nil {
			r.notice("the token of the lock was not removed: " + err.Error())
		}
		return
	}
}

// notice hands a warning to report, unless there are enough of them already.
func (r *lockRun) notice(text string) {
	select {
	case r.notices <- notice{text: text}:
	default:
	}
}

// leased is called with each new lease: the command may run longer, and has a new token.
func (r *lockRun) leased(l client.Lease) {
	r.guarded.Limit(l.Term, l.Until)
	if !r.held { // the command starts after this, and needs it
		if err := r.file.Write(l.Token.String()); err != nil {
			r.notice("the command has no token: " + err.Error())
		}
	} else {
		select {
		case <-r.tokens: // not written yet, and old now
		default:
		}
		r.tokens <- l.Token.String()
	}
	if r.app.Settings.Verbose > 0 {
		what := "the lock was renewed, token "
		if !r.held {
			what = "the lock is held, token "
		}
		const clock = "2006-01-02T15:04:05.000Z"
		r.notice(what + l.Token.String() + ", TERM at " + l.Term.UTC().Format(clock) + ", KILL at " + l.Until.UTC().Format(clock))
	}
	r.held = true
}

// suspended is called before sscli is stopped together with the command.
func (r *lockRun) suspended() {
	left := max(r.lock.Lease().TermIn(), 0).Round(100 * time.Millisecond)
	n := notice{
		text:    fmt.Sprintf("lock %s is not renewed while sscli is stopped: in %v the command is ended", format.Brief(r.lock.Name()), left),
		printed: make(chan struct{}),
	}
	r.notices <- n
	<-n.printed
}

// A lockLostError is a lock that was lost while a command ran under it.
type lockLostError struct {
	err error
	end process.End
}

func (e *lockLostError) Error() string {
	if e.end.Killed {
		return e.err.Error() + "; the command was ended"
	}
	return fmt.Sprintf("%v; the command had ended with exit code %d", e.err, e.end.Code)
}

func (e *lockLostError) Unwrap() error { return e.err }
