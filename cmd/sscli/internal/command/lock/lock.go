// Package lock has the commands below `sscli lock`: run, acquire, renew, release, hold and
// status. New returns the command lock with all of them, for the table of commands.
//
// The commands parse flags, connect, and print; what a lock is and how it is held is in
// client.Session.Lock, AcquireLock, RenewLock and ReleaseLock. Run starts the command
// through package process, whose guard ends it in time even if sscli is killed, and keeps
// the fencing token in a file of package fence.
//
// Flags are checked before anything is sent. Errors of locks have their own exit codes:
// busy is 1 or the code of --conflict-exit-code, lost is 8, unknown is 11.
package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/format"
)

// New returns the command lock.
func New(a *app.App) *cobra.Command {
	return app.Parent(a, &cobra.Command{
		Use:     "lock",
		Short:   "Hold locks, and show who holds them",
		GroupID: app.GroupStore,
		Long: `A lock is a key. Its value names the holder, and it expires unless the holder renews it.
Its version is a fencing token: the store refuses writes that carry it (--fence) once a
later holder has written.`,
		Example: "  sscli lock run deploy -- ./deploy.sh\n  sscli lock status deploy\n  sscli lock list 'locks/*'",
	}, newLockRun(a), newLockStatus(a), newLockList(a), newLockTrace(a), newLockHold(a), newLockAcquire(a), newLockRenew(a), newLockRelease(a))
}

// lockFlags are the flags of the commands that acquire or renew.
type lockFlags struct {
	ttl, grace, wait, holder config.Text
	try                      bool
	conflict                 int
	name                     string // the operand
}

func (f *lockFlags) bindTTL(fs *pflag.FlagSet) {
	fs.Var(&f.ttl, "ttl", "the lock expires `DURATION` after its last renewal (default 15s)")
}

func (f *lockFlags) bindWait(fs *pflag.FlagSet) {
	fs.VarP(&f.wait, "wait", "w", "wait at most `DURATION` for a lock that another holds (default: as long as it takes)")
	fs.BoolVarP(&f.try, "try", "n", false, "do not wait for a lock that another holds")
	fs.IntVarP(&f.conflict, "conflict-exit-code", "E", fault.CodeNo, "exit with `N` when another holds the lock")
}

func (f *lockFlags) bindHolder(fs *pflag.FlagSet) {
	fs.Var(&f.holder, "holder", "the holder's `NAME`, which nobody else may use ["+fence.HolderVariable+"]")
}

// options checks the flags and returns what they say.
func (f *lockFlags) options() (o client.LockOptions, err error) {
	for _, d := range []struct {
		flag string
		text config.Text
		to   *time.Duration
	}{{"--ttl", f.ttl, &o.TTL}, {"--grace", f.grace, &o.Grace}, {"--wait", f.wait, &o.Wait}} {
		if d.text == "" {
			continue
		}
		if *d.to, err = config.ParseDuration(string(d.text)); err != nil {
			return o, fault.Usagef("%s: %w", d.flag, err)
		}
		if *d.to < 0 {
			return o, fault.Usagef("%s %s: must not be negative", d.flag, d.text)
		}
		if *d.to == 0 {
			switch d.flag {
			case "--ttl":
				return o, fault.Usagef("--ttl 0: must be greater than 0")
			case "--grace":
				o.Grace = -1 // none; 0 would be the default
			case "--wait":
				o.Try = true
			}
		}
	}
	switch {
	case f.try && f.wait != "":
		return o, fault.Usagef("--try and --wait: want one of them")
	case f.conflict < 0 || f.conflict > 255:
		return o, fault.Usagef("--conflict-exit-code %d: want 0 to 255", f.conflict)
	}
	o.Try = o.Try || f.try
	if f.holder != "" {
		o.Holder = []byte(f.holder)
	}
	if _, err := o.Timing(); err != nil {
		return o, &fault.UsageError{Err: err}
	}
	return o, nil
}

// needHolder is options for a step that needs the holder's name, from --holder or the
// environment.
func (f *lockFlags) needHolder(a *app.App) (client.LockOptions, error) {
	if f.holder == "" {
		name, _ := a.Env(fence.HolderVariable)
		f.holder = config.Text(name)
	}
	if f.holder == "" {
		return client.LockOptions{}, fault.Usagef("no holder: use --holder NAME or %s, with a name that nobody else uses", fence.HolderVariable)
	}
	return f.options()
}

// operand reads the name of the lock.
func (f *lockFlags) operand(cmd *cobra.Command, args []string) error {
	if err := app.ExactArgs("NAME")(cmd, args); err != nil {
		return err
	}
	f.name = app.Unprotect(args[0])
	return nil
}

// heldStep renews or releases a lock. Connecting and the step have two timeouts together:
// one for the first attempt, and one to repeat it or to find out what became of it.
func heldStep(a *app.App, cmd *cobra.Command, args []string, f *lockFlags,
	step func(context.Context, *client.Session, client.LockOptions) (format.Lock, error)) error {
	if err := f.operand(cmd, args); err != nil {
		return err
	}
	f.conflict = fault.CodeNo
	o, err := f.needHolder(a)
	if err != nil {
		return err
	}
	if err := a.Confirm(cmd.Context(), "lock "+cmd.Name()+" "+format.Brief(f.name)); err != nil {
		return err
	}
	began := time.Now()
	return a.WithSession(cmd.Context(), func(s *client.Session, so client.Options) error {
		ctx, cancel := context.WithDeadline(cmd.Context(), began.Add(twoTimeouts(so.Timeout)))
		defer cancel()
		result, err := step(ctx, s, o)
		if err != nil {
			return lockError(a, *f, err)
		}
		return a.Emit(result)
	})
}

// twoTimeouts is how long a step may take: until its request has expired, which is after
// whole seconds, and then one timeout more.
func twoTimeouts(timeout time.Duration) time.Duration {
	return (timeout + time.Second - 1).Truncate(time.Second) + timeout
}

// reportWaiting prints what an acquisition waits for, and what goes wrong meanwhile.
func reportWaiting(a *app.App, o *client.LockOptions) {
	var began time.Time
	o.OnWait = func(s client.LockStatus) {
		if began.IsZero() {
			began = time.Now()
		}
		a.Inform(waitingFor(s, time.Since(began)))
	}
	var outage app.Outage
	o.OnTrouble = func(err error) { outage.Report(a, err, "trying again") }
}

// waitingFor says which lock is waited for, who holds it, and when its holder last acquired or
// renewed it, by the store's clock.
func waitingFor(s client.LockStatus, waited time.Duration) string {
	text := "waiting for lock " + format.Brief(s.Name)
	if waited >= time.Second {
		text = fmt.Sprintf("still waiting for lock %s after %v", format.Brief(s.Name), waited.Round(time.Second))
	}
	if s.Holder != nil {
		text += ", held by " + format.Brief(string(s.Holder))
	}
	if at := s.Token.Time(); s.Holder != nil && !s.Token.IsZero() {
		text += fmt.Sprintf(", acquired or renewed %s (%s)", at.UTC().Format(time.RFC3339), format.Age(time.Since(at)))
	}
	return text
}

// lockError makes of an error with a lock what the user is told. A busy lock has the exit
// code of --conflict-exit-code.
func lockError(a *app.App, f lockFlags, err error) error {
	lost, unanswered := errors.AsType[*client.LostAnswerError](err)
	unknown, ok := errors.AsType[*client.LockUnknownError](err)
	switch {
	case err == nil || errors.Is(err, client.ErrLockLost) || errors.Is(err, client.ErrNotHolder) || fault.IsA[*fault.OutputError](err):
		return err
	case errors.Is(err, client.ErrLockBusy) && f.conflict != fault.CodeNo:
		explained, _ := a.Explain(busy(err))
		if explained.Code = f.conflict; explained.Code != 0 {
			a.Say(explained)
		}
		return &fault.ExitError{Code: explained.Code, Err: err}
	case errors.Is(err, client.ErrLockBusy):
		return busy(err)
	case ok:
		return &fault.UnknownError{Err: unknown, Hint: "sscli lock status " + format.Word(f.name)}
	case unanswered:
		err = &fault.UnknownError{Err: lost.Err, Why: "sscli lock status shows who holds the lock"}
	default:
		if e, ok := errors.AsType[*signals.Interrupted](err); ok {
			err = e // whatever it interrupted
		}
	}
	return fmt.Errorf("lock %s: %w", format.Brief(f.name), err)
}

// busy adds to the error of a busy lock since when the holder has had it, as far as that is
// known: the token is of the acquisition or of the last renewal.
func busy(err error) error {
	e, ok := errors.AsType[*client.LockBusyError](err)
	if !ok || e.Status.Token.IsZero() {
		return err
	}
	return fmt.Errorf("%w; acquired or renewed at %s (%s)", err, e.Status.Token,
		format.Age(time.Since(e.Status.Token.Time())))
}

func (f *lockFlags) result(op string, o client.LockOptions, lease client.Lease) format.Lock {
	t, _ := o.Timing() // checked by options
	return format.Lock{Op: op, Name: f.name, Holder: string(o.Holder), Token: app.Version(lease.Token), TTL: t.TTL}
}
