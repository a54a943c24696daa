package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/format"
)

func New(a *cli.App) *cobra.Command {
	const want = "want run, acquire, renew, release, hold or status"
	cmd := &cobra.Command{
		Use:     "lock",
		Short:   "Hold locks, and see who holds them",
		GroupID: cli.GroupStore,
		Long: `A lock is a key whose value names its holder and which runs out unless it is renewed.
Its version is a fencing token: writes that carry it (--fence) are refused once a later
holder has written.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return explain.Usagef("unknown lock command %.64q: %s", cli.Unprotect(args[0]), want)
			}
			return explain.Usagef("no lock command: %s", want)
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newLockRun(a), newLockAcquire(a), newLockRenew(a), newLockRelease(a), newLockHold(a), newLockStatus(a))
	return cmd
}

// lockFlags are those of the commands that acquire or renew.
type lockFlags struct {
	ttl, grace, wait, holder config.Text
	try                      bool
	conflict                 int
	name                     string // the operand
}

func (f *lockFlags) bindTTL(fs *pflag.FlagSet) {
	fs.Var(&f.ttl, "ttl", "the lock runs out `DURATION` after it was last renewed (default 15s)")
}

func (f *lockFlags) bindWait(fs *pflag.FlagSet) {
	fs.VarP(&f.wait, "wait", "w", "wait at most `DURATION` for a lock that another holds (default: as long as it takes)")
	fs.BoolVarP(&f.try, "try", "n", false, "do not wait for a lock that another holds")
	fs.IntVarP(&f.conflict, "conflict-exit-code", "E", explain.CodeNo, "exit with `N` when another holds the lock")
}

func (f *lockFlags) bindHolder(fs *pflag.FlagSet) {
	fs.Var(&f.holder, "holder", "the holder's `NAME`, which nobody else may use ["+fence.HolderVariable+"]")
}

// options reads what is a duration or a number.
func (f *lockFlags) options() (o client.LockOptions, err error) {
	for _, d := range []struct {
		flag string
		text config.Text
		to   *time.Duration
	}{{"--ttl", f.ttl, &o.TTL}, {"--grace", f.grace, &o.Grace}, {"--wait", f.wait, &o.Wait}} {
		if d.text == "" {
			continue
		}
		if *d.to, err = config.ParseDuration(string(d.text)); err != nil || *d.to < 0 {
			return o, explain.Usagef("%s %.32q: want a duration such as 500ms or 2m", d.flag, string(d.text))
		}
		if *d.to == 0 {
			switch d.flag {
			case "--ttl":
				return o, explain.Usagef("--ttl 0: want more")
			case "--grace":
				o.Grace = -1 // none; 0 would be the default
			case "--wait":
				o.Try = true
			}
		}
	}
	switch {
	case f.try && f.wait != "":
		return o, explain.Usagef("--try and --wait: want one of them")
	case f.conflict < 0 || f.conflict > 255:
		return o, explain.Usagef("--conflict-exit-code %d: want 0 to 255", f.conflict)
	}
	o.Try = o.Try || f.try
	if f.holder != "" {
		o.Holder = []byte(f.holder)
	}
	if _, err := o.Timing(); err != nil {
		return o, &explain.UsageError{Err: err}
	}
	return o, nil
}

// needHolder is options for a step that wants to know who takes it.
func (f *lockFlags) needHolder(a *cli.App) (client.LockOptions, error) {
	if f.holder == "" {
		name, _ := a.Env(fence.HolderVariable)
		f.holder = config.Text(name)
	}
	if f.holder == "" {
		return client.LockOptions{}, explain.Usagef("no holder: want --holder NAME or %s, and nobody else may use it", fence.HolderVariable)
	}
	return f.options()
}

// operand reads the name of the lock.
func (f *lockFlags) operand(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return explain.Usagef("%d operands: want %s NAME", len(args), strings.TrimPrefix(cmd.CommandPath(), "sscli "))
	}
	f.name = cli.Unprotect(args[0])
	return nil
}

// heldStep takes a step with a lock of a holder who is named, within one time-out.
func heldStep(a *cli.App, cmd *cobra.Command, args []string, f *lockFlags,
	step func(context.Context, *client.Session, client.LockOptions) (format.Lock, error)) error {
	if err := f.operand(cmd, args); err != nil {
		return err
	}
	f.conflict = explain.CodeNo
	o, err := f.needHolder(a)
	if err != nil {
		return err
	}
	if err := a.Confirm(cmd.Context(), "lock "+cmd.Name()+" "+format.Brief(f.name)); err != nil {
		return err
	}
	return a.WithSession(cmd.Context(), func(s *client.Session, so client.Options) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), so.Timeout)
		defer cancel()
		result, err := step(ctx, s, o)
		if err != nil {
			return lockError(a, *f, err)
		}
		return a.Emit(result)
	})
}

// tellOfLock has the waiting for a lock told of.
func tellOfLock(a *cli.App, o *client.LockOptions) {
	o.OnWait = func(s client.LockStatus) {
		by := ""
		if s.Holder != nil {
			by = ", held by " + format.Brief(string(s.Holder))
		}
		if a.Settings.Verbose || a.Output == "human" {
			a.Warn(fmt.Sprintf("waiting for lock %s%s", format.Brief(s.Name), by), "")
		}
	}
	o.OnTrouble = func(err error) { a.Warn(explain.Message(err)+"; trying again", "") }
}

// lockError is what the user is told of an error with a lock. A lock that is busy
// has the exit code that was asked for.
func lockError(a *cli.App, f lockFlags, err error) error {
	lost, unknown := errors.AsType[*client.LostAnswerError](err)
	switch {
	case err == nil || errors.Is(err, client.ErrLockLost) || errors.Is(err, client.ErrNotHolder) || explain.IsA[*explain.OutputError](err):
		return err
	case errors.Is(err, client.ErrLockBusy) && f.conflict != explain.CodeNo:
		fault, _ := a.Explain(err)
		if fault.Code = f.conflict; fault.Code != 0 {
			a.Say(fault)
		}
		return &explain.ExitError{Code: fault.Code, Err: err}
	case errors.Is(err, client.ErrLockBusy):
		return err
	case !unknown && explain.IsA[*signals.Interrupted](err):
		e, _ := errors.AsType[*signals.Interrupted](err)
		err = e // whatever it interrupted
	case unknown:
		err = &explain.UnknownError{Err: lost.Err, Why: "sscli lock status tells who holds it"}
	}
	return fmt.Errorf("lock %s: %w", format.Brief(f.name), err)
}

func (f *lockFlags) result(op string, o client.LockOptions, lease client.Lease) format.Lock {
	t, _ := o.Timing() // was right before
	return format.Lock{Op: op, Name: f.name, Holder: string(o.Holder), Token: cli.Version(lease.Token), TTL: t.TTL}
}
