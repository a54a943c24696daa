package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

func newRun(a *app.App) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:         "run NAME -- CMD...",
		Annotations: map[string]string{app.LogsResults: "", app.RunsCommand: ""}, // prints none
		Short:       "Hold a lock while a command runs",
		Long: `Acquire the lock NAME, run CMD, renew the lock while CMD runs, and release it when CMD has
ended. The exit code is the exit code of CMD, or 128+N if signal N ended it; 8 if the lock
was lost; 1 if another held the lock for the whole wait.

When the lock cannot be renewed, CMD and the processes that it started get TERM, and KILL
after --grace. Both come before the lock can expire, so that the next holder is alone. When
the lock is taken away, as by a delete of its key, another may hold it at once: CMD gets
TERM, and KILL after a second or --grace, whichever is less. CMD is not started if it would get TERM at once. A second process, the
guard, stops CMD even if sscli is killed or stopped. All signals are forwarded to CMD.

CMD gets the fencing token of the lock in SSCLI_FENCE. Each renewal gives a newer token.
The file SSCLI_FENCE_FILE holds the current token, which --fence lock reads; the file is
empty once the lock is lost. SSCLI_LOCK_NAME and SSCLI_LOCK_HOLDER name the lock and its
holder. An sscli in CMD connects to the same broker.`,
		Example: "  sscli lock run deploy -- ./deploy.sh\n  sscli lock run nightly --try -- make report || echo busy\n  sscli lock run valve -- sscli set valve open --fence lock",
		Args: func(cmd *cobra.Command, args []string) error {
			command := cmd.Flag("context").Value.String()
			if len(args) != 1 || cmd.ArgsLenAtDash() >= 0 || command == "" {
				return nil
			}
			if all, _, err := config.Load(cmd.Flags(), a.Env); err == nil && slices.Contains(all.Names(), command) {
				return nil
			}
			return &fault.UsageError{
				Err:  errors.New("missing -- CMD; -c is the context, and flock's -c CMD is -- sh -c CMD"),
				Hint: suggest.Run("sscli", "lock", "run", args[0], "--", "sh", "-c", command),
			}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if err := checkRun(args, dash); err != nil {
				return err
			}
			f.name = args[0]
			return f.run(cmd.Context(), a, args[1:])
		},
	}
	f.bindHold(cmd.Flags(), "time between TERM and KILL as a `DURATION`")
	return cmd
}

// checkRun checks the operands of lock run: NAME, and the command after --. dash is the number of
// operands before the --, or -1 if there is no --.
func checkRun(args []string, dash int) error {
	usageError := func(what string, name string, command []string) error {
		return &fault.UsageError{Err: errors.New(what), Hint: suggest.Run(append([]string{"sscli", "lock", "run", name, "--"}, command...)...)}
	}
	example := []string{"./deploy.sh"}
	switch {
	case len(args) == 0:
		return usageError("missing NAME and -- CMD", "deploy", example)
	case dash == 0:
		return usageError("missing NAME before --", "deploy", args)
	case len(args) == 1:
		return usageError("missing -- CMD: the command to run under the lock", args[0], example)
	case dash < 0:
		return usageError("missing -- before the command", args[0], args[1:])
	case dash == len(args):
		return usageError("missing -- CMD: one lock, and after -- the command to run under it", args[0], args[1:])
	case dash > 1:
		return usageError(fmt.Sprintf("%d words before --: expected one NAME", dash), args[0], args[dash:])
	}
	return nil
}

func (f *lockFlags) run(ctx context.Context, a *app.App, command []string) (err error) {
	o, err := f.newHolder(a)
	if err != nil {
		return err
	}
	timing, err := o.Timing()
	if err != nil {
		return err
	}
	if err := client.Get(f.name).Check(); err != nil {
		return &fault.UsageError{Err: err}
	}
	if strings.Contains(f.name, "\x00") || bytes.ContainsRune(o.Holder, 0) {
		return fault.Usagef("the name of the lock or of its holder has a NUL, which the environment of the command (%s, %s) cannot hold", verb.EnvLockName, verb.HolderVariable)
	}
	if verb.IsAround(a.Env, f.name) {
		return &fault.UsageError{
			Err:  fmt.Errorf("lock %s is held by a lock run around this one: a deadlock", format.Brief(f.name)),
			Hint: verb.ElsewhereHint("sscli", "lock", "run"),
		}
	}
	if err := a.Confirm(ctx, "lock run "+format.Brief(f.name)); err != nil {
		return err
	}
	file := verb.NewFenceFile()
	r := &lockRun{reporter: newReporter(a, "the command gets TERM"), name: command[0], file: file, tokens: make(chan string, 1)}
	r.guarded, err = process.NewGuarded(process.GuardOptions{
		Args: command, Grace: timing.Grace, Secret: file.Path, Suspended: r.suspended,
	})
	if err != nil {
		return err
	}
	defer r.guarded.Close()
	if err := file.Create(); err != nil {
		return errors.Join(r.noFile(err), file.Remove())
	}
	defer func() { err = errors.Join(err, file.Remove()) }()
	o.OnLease = r.leased
	return a.WithSession(ctx, func(s *client.Session, so client.Options) error {
		r.lock, err = f.acquire(ctx, a, s, o, r.trouble)
		if err != nil {
			return f.lockError(a, err)
		}
		return r.run(ctx, s, so)
	})
}

// noFile returns the error of a command that is not started because its fence file cannot be written.
func (r *lockRun) noFile(err error) error {
	return &fault.NextError{
		Err:  &process.StartError{Name: r.name, Code: process.CodeSetup, Err: fmt.Errorf("no directory for the file with the fencing token: %w", err)},
		Hint: suggest.Try("set TMPDIR to a directory that you can write; in a pod, mount an emptyDir at /tmp"),
	}
}

func lockedEnviron(a *app.App, address string, l *client.Lock) []string {
	s := a.Settings
	if s.Embedded {
		s = config.Settings{Address: address}
	}
	set, drop := s.Environ()
	set[verb.EnvLockName], set[verb.HolderVariable] = l.Name(), string(l.Holder())
	set[verb.EnvFence] = l.Token().String()
	if outer := verb.OuterLocks(a.Env); outer != "" {
		set[verb.EnvOuterLocks] = outer
	}
	return process.Environ(set, drop...)
}

// A lockRun is a command and the lock that it runs under. While the command runs, one goroutine prints
// messages, and another writes the fence file (refresh). So neither a slow standard error nor a slow
// disk delays renewals or deadlines.
type lockRun struct {
	*reporter
	name    string // of the command
	guarded *process.Guarded
	file    *verb.FenceFile
	held    bool        // leased was called; only leased uses it
	noToken error       // why the first token was not written; set before Lock returns
	tokens  chan string // the newest token, for refresh
}

// run runs the command, unless ctx has ended, and releases the lock. If a signal ends ctx, run does not
// end the command, which receives the signal itself.
func (r *lockRun) run(ctx context.Context, s *client.Session, so client.Options) error {
	over := make(chan struct{})
	var helpers sync.WaitGroup
	helpers.Go(func() { r.reporter.run(over) })
	helpers.Go(func() { r.refresh(over) })
	defer context.AfterFunc(r.lock.Context(), func() {
		if errors.Is(context.Cause(r.lock.Context()), client.ErrLockLost) {
			r.warn(fault.Message(context.Cause(r.lock.Context())) + "; stopping the command")
			r.guarded.Stop(r.within())
		}
	})()
	var end process.End
	err := context.Cause(ctx)
	switch {
	case err != nil:
	case r.noToken != nil:
		err = r.noFile(r.noToken)
	default:
		env := lockedEnviron(r.app, so.Address, r.lock)
		end, err = r.guarded.Run(append(env, verb.EnvFenceFile+"="+r.file.Path))
	}
	renewed := r.lock.Lease().TermIn() > 0
	close(over)
	helpers.Wait() // now this goroutine may print
	for len(r.prints) > 0 {
		(<-r.prints)()
	}
	released := releaseLock(r.app, s, r.lock)
	lost := context.Cause(r.lock.Context()) // read it after the release, which may show that the lock was lost
	if !errors.Is(lost, client.ErrLockLost) {
		lost = nil // the release ended the context
	}
	if end.Left {
		r.app.Warn("processes that the command had left behind were ended")
	}
	return r.outcome(end, renewed, err, lost, released)
}

// within returns the time that the command has to end when the lock is lost. If the lock was taken away,
// another client may hold it already.
func (r *lockRun) within() time.Duration {
	const takenAway = time.Second
	e, ok := errors.AsType[*client.LockLostError](context.Cause(r.lock.Context()))
	if ok && e.Loss != client.LossNoRenewal {
		return takenAway
	}
	return r.lock.Timing().Grace
}

// outcome returns the error of lock run. err says why the command did not start or did not run to its
// end, lost says why the lock was lost, and released is the error of the release. renewed is whether the last
// lease was still good when the command had ended.
func (r *lockRun) outcome(end process.End, renewed bool, err, lost, released error) error {
	name := format.Brief(r.lock.Name())
	switch {
	case errors.Is(err, process.ErrLate):
		err = fmt.Errorf("%w: no time was left to start the command under lock %s", client.ErrLockLost, name)
	case errors.Is(err, process.ErrGuardDied) && lost == nil:
		err = fmt.Errorf("lock %s: the command was killed: %w", name, err)
	case errors.Is(err, process.ErrGuardDied), err == nil && lost != nil:
		err = lostWith(lost, end)
	case err != nil:
	case end.Killed && renewed && released == nil:
		err = &lateError{r.lock.Name()}
	case end.Killed:
		err = lostWith(fmt.Errorf("lock %s was not renewed in time: %w", name, client.ErrLockLost), end)
	case errors.Is(released, client.ErrNotHolder):
		err = lostWith(fmt.Errorf("%w: %w", client.ErrLockLost, released), end)
	case end.Code != 0:
		return &fault.ExitError{Code: end.Code}
	default:
		return nil
	}
	return fault.About(r.lock.Name(), err)
}

// A lateError means that the command was ended at a deadline that a renewal had moved. The lock was not lost, but
// the exit code is the same, because the command did not finish.
type lateError struct{ lock string }

func (e *lateError) Error() string {
	return "lock " + format.Brief(e.lock) + ": sscli or its guard was stopped past a deadline of the command, and then the command was ended; the lock was renewed in time"
}

func (e *lateError) Unwrap() error { return client.ErrLockLost }

// refresh writes each new token to the fence file. It empties the file when the lock is lost or the
// command has ended.
func (r *lockRun) refresh(over <-chan struct{}) {
	for {
		select {
		case token := <-r.tokens:
			if err := r.file.Write(token); err != nil {
				r.warn("the fence file was not updated, so the command has an old token: " + err.Error())
			}
			continue
		case <-r.lock.Context().Done():
		case <-over:
		}
		if err := r.file.Empty(); err != nil {
			r.warn("the fence file was not emptied: " + err.Error())
		}
		return
	}
}

// leased handles each new lease. It moves the deadline of the command. It writes the first token to the
// fence file, and passes each later token to refresh.
func (r *lockRun) leased(l client.Lease) {
	r.guarded.Limit(l.Term, l.Until)
	if !r.held { // the command has not started yet
		if err := r.file.Write(l.Token.String()); err != nil {
			r.noToken = err
		}
	} else {
		select {
		case <-r.tokens: // discard an older token that refresh has not written
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
		text := what + l.Token.String() + ", TERM at " + l.Term.UTC().Format(clock) + ", KILL at " + l.Until.UTC().Format(clock)
		r.print(func() { r.app.Inform(text) })
	}
	r.held = true
}

// suspended warns the user before job control stops sscli and the command.
func (r *lockRun) suspended() {
	text := fmt.Sprintf("lock %s is not renewed while sscli is stopped: the command is ended in %v", format.Brief(r.lock.Name()), termIn(r.lock))
	printed := make(chan struct{})
	r.prints <- func() {
		r.app.Warn(text)
		close(printed)
	}
	<-printed
}

// lostWith adds to the error of a lost lock how the command ended.
func lostWith(err error, end process.End) error {
	how := "the command was ended"
	if !end.Killed {
		how = fmt.Sprintf("the command had ended with exit code %d", end.Code)
	}
	return &fault.DetailError{Err: err, Details: []string{how}}
}
