// Package lock is the command `sscli lock`. [New] returns the command with its subcommands.
//
// The subcommands parse flags, connect and print. The methods Lock, AcquireLock, RenewLock and
// ReleaseLock of client.Session do the rest. `lock run` starts its command with package process, whose
// guard process ends the command in time even if sscli is killed. `lock run` keeps the fencing token in
// a file (verb.FenceFile).
//
// The exit code is 1 (or --conflict-exit-code) for a busy lock, 8 for a lost lock, and 11 for an
// unknown outcome.
package lock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// New returns the command `sscli lock`.
func New(a *app.App) *cobra.Command {
	cmd := app.WithCommands(&cobra.Command{
		Use:     "lock",
		Short:   "Hold locks, and show who holds them",
		GroupID: app.GroupFirst,
		Long: `A lock is a key. Its value names the holder, and the key expires unless the holder renews
it. The version of the key is a fencing token for writes (--fence). Once a later holder
has written a key with its own token, the store refuses to write that key with an older
token.`,
		Example: "  sscli lock run deploy -- ./deploy.sh\n  sscli lock status deploy\n  sscli lock list 'locks/*'",
	}, newRun(a), newStatus(a), newList(a), newTrace(a), newHold(a), newAcquire(a), newRenew(a), newRelease(a), newBreak(a))
	for _, sub := range cmd.Commands() {
		names := 1
		if sub.Name() == "trace" || sub.Name() == "list" {
			names = 0 // any number
		}
		sub.ValidArgsFunction = complete.Locks(a, names)
	}
	return cmd
}

// lockFlags are the flags and the operand of the subcommands that acquire, renew or release a lock.
type lockFlags struct {
	ttl, grace, wait usage.Duration
	holder           config.Text
	try              bool
	conflict         int // exit code if another client holds the lock
	name             string

	generated bool // the holder is generated
	again     bool // the holder already held the acquired lock

	seen  client.LockStatus // during a wait, what was first seen of the present holder; see reportWaiting
	since time.Time         // when seen was seen; zero = not waiting
}

func (f *lockFlags) bindTTL(fs *pflag.FlagSet) {
	fs.Var(f.ttl.Least(usage.Positive), "ttl", "the lock expires `DURATION` after its last renewal (default 15s)")
}

func (f *lockFlags) bindWait(fs *pflag.FlagSet) {
	fs.VarP(&f.wait, "wait", "w", "wait at most `DURATION` for a lock that another holds (default: no limit)")
	fs.BoolVarP(&f.try, "try", "n", false, "do not wait for a lock that another holds")
	fs.IntVarP(&f.conflict, "conflict-exit-code", "E", fault.CodeNo, "exit with `N` when another holds the lock")
}

// bindHolder binds --holder, for the commands that take the name of the holder from the environment too.
func (f *lockFlags) bindHolder(fs *pflag.FlagSet) {
	fs.Var(&f.holder, "holder", "the holder's `NAME`, which nobody else may use ["+verb.HolderVariable+"]")
}

// bindHold binds the flags of the commands that acquire a lock and renew it. grace is the usage text
// of --grace.
func (f *lockFlags) bindHold(fs *pflag.FlagSet, grace string) {
	f.bindTTL(fs)
	f.bindWait(fs)
	fs.Var(&f.holder, "holder", "the holder's `NAME`, which nobody else may use (default: user@host:pid:random)")
	fs.Var(&f.grace, "grace", grace+" (default: a quarter of the TTL, at most 5s)")
}

func (f *lockFlags) options() (o client.LockOptions, err error) {
	o.TTL, o.Grace, o.Wait = f.ttl.Duration, f.grace.Duration, f.wait.Duration
	switch {
	case f.try && f.wait.Given():
		return o, fault.Usagef("--try and --wait: use only one of them")
	case f.conflict < 0 || f.conflict > 255:
		return o, fault.Usagef("--conflict-exit-code %d: must be 0 to 255", f.conflict)
	}
	if f.grace.Given() && o.Grace == 0 {
		o.Grace = -1 // 0 would mean the default
	}
	o.Try = f.try || f.wait.Given() && o.Wait == 0
	if f.holder != "" {
		o.Holder = []byte(f.holder)
	}
	if _, err := o.Timing(); err != nil {
		return o, &fault.UsageError{Err: err}
	}
	return o, nil
}

// knownHolder returns the options of a command that gets the name of the holder from --holder or the
// environment. If there is none and generate is true, one will be generated, as with newHolder.
func (f *lockFlags) knownHolder(a *app.App, generate bool) (client.LockOptions, error) {
	if f.holder == "" {
		name, _ := a.Env(verb.HolderVariable)
		f.holder = config.Text(name)
	}
	switch f.generated = f.holder == "" && generate; {
	case f.generated:
		return f.newHolder(a)
	case f.holder == "":
		return client.LockOptions{}, &fault.UsageError{
			Err:  fmt.Errorf("no holder: use --holder NAME or %s, with a name that nobody else uses", verb.HolderVariable),
			Hint: suggest.Try("`--holder NAME`, or export " + verb.HolderVariable),
		}
	}
	return f.options()
}

// reportWaiting sets callbacks in o that print, during the wait for a lock, who holds the lock, and the
// errors of requests.
func (f *lockFlags) reportWaiting(a *app.App, o *client.LockOptions) {
	var began time.Time
	o.OnWait = func(s client.LockStatus) {
		if f.since.IsZero() || string(f.seen.Holder) != string(s.Holder) {
			f.seen, f.since = s, time.Now()
		}
		if began.IsZero() {
			began = f.since
		}
		text := "waiting for lock " + format.Brief(s.Name)
		if waited := time.Since(began); waited >= time.Second {
			text = fmt.Sprintf("still waiting for lock %s after %v", format.Brief(s.Name), waited.Round(time.Second))
		}
		if s.Holder != nil {
			text += strings.Join(append([]string{", held by " + format.Brief(string(s.Holder))}, renewedAt(s.Token)...), ", ")
		}
		a.Inform(strings.Join(append([]string{text}, f.renewalNotes(s)...), "; "))
	}
	away := app.Outage{Notify: a.Notify}
	o.OnTrouble = func(err error) { away.Report(err, "trying again") }
}

// Without a renewal for longLease, the holder of a lock may be gone: it renews three times per lease, and
// few leases are longer than three minutes. The age of a token says so only if it is longer by wire.MaxDrift,
// by which the local clock may be ahead of the store's. Waiting for shortLease without a renewal shows the same for
// leases of the default TTL.
const (
	longLease  = time.Minute
	shortLease = client.DefaultLockTTL / 3
)

// renewalNotes returns a note that says whether the holder of a lock renews it, as far as it is known: from
// the time of the token and, after reportWaiting, from what was seen during the wait. Otherwise it
// returns "".
func (f *lockFlags) renewalNotes(s client.LockStatus) []string {
	age, waited := time.Since(s.Token.Time()), time.Since(f.since)
	switch {
	case s.Holder == nil || s.Token.IsZero():
		return nil
	case f.isRenewed(s):
		return []string{"renewed while sscli waited"}
	case !f.since.IsZero() && waited > shortLease:
		return []string{"not renewed in the " + format.Span(waited.Round(time.Second)) + " that sscli waited: the lease is long, the holder is gone, or this key is no lock"}
	case age > longLease+wire.MaxDrift:
		return []string{"not renewed for " + format.Span(age) + " by the local clock: the lease is long, the holder is gone, or this key is no lock"}
	}
	return nil
}

func (f *lockFlags) isRenewed(s client.LockStatus) bool {
	return !f.since.IsZero() && string(f.seen.Holder) == string(s.Holder) && f.seen.Token != s.Token
}

// lockError adds the name of the lock, and in some cases a hint, to an error. It does not change errors
// that need neither. For a busy lock, the error has the exit code of --conflict-exit-code.
func (f *lockFlags) lockError(a *app.App, err error) error {
	lost, unanswered := errors.AsType[*client.LostReplyError](err)
	unknown, ok := errors.AsType[*client.LockUnknownError](err)
	switch {
	case err == nil || errors.Is(err, client.ErrLockLost) || errors.Is(err, client.ErrNotHolder) || fault.IsA[*fault.OutputError](err):
		return err
	case errors.Is(err, client.ErrLockBusy) && f.conflict != fault.CodeNo:
		explained, _ := a.FaultOf(f.busyError(err))
		if explained.Code = f.conflict; explained.Code != 0 {
			a.Say(explained)
		}
		return &fault.ExitError{Code: explained.Code, Err: err}
	case errors.Is(err, client.ErrLockBusy):
		return f.busyError(err)
	case fault.IsStoreError(wire.ErrorFenceRequired)(err), fault.IsStoreError(wire.ErrorFenceLower)(err):
		return f.notLock(err)
	case ok:
		return &fault.UnknownError{Err: unknown, Hint: suggest.Try("`sscli lock status NAME`").Fill(suggest.Name, f.name)}
	case unanswered:
		err = &fault.UnknownError{
			Err: lost.Err, Why: "if it was, the lock is held until its lease ends",
			Hint: suggest.Try("`sscli lock status NAME` shows who holds the lock").Fill(suggest.Name, f.name),
		}
	default:
		if e, ok := errors.AsType[*signals.Interrupted](err); ok {
			err = e // do not mention the interrupted request
		}
	}
	return fault.About(f.name, fmt.Errorf("lock %s: %w", format.Brief(f.name), err))
}

// notLock returns the error for a lock request that the store refused because the key was written with
// a fencing token. Lock requests have no token.
func (f *lockFlags) notLock(err error) error {
	return &fault.NextError{
		Err: &fault.CauseError{What: fmt.Sprintf("lock %s is an ordinary key that was written with a fencing token, so it cannot be a lock", format.Brief(f.name)), Err: err},
		Hint: suggest.Try("use another name for the lock; `sscli get NAME` shows what the key holds; "+
			"to delete that: `sscli lock break NAME --force-fence`").Fill(suggest.Name, f.name),
	}
}

// busyError adds a hint to the error of a busy lock, and what is known about the holder's renewals.
func (f *lockFlags) busyError(err error) error {
	e, ok := errors.AsType[*client.LockBusyError](err)
	if !ok {
		return err
	}
	notes := f.renewalNotes(e.Status)
	var hint suggest.Hint
	if e.Waited == 0 {
		given := "--try"
		if !f.try {
			given = "--wait"
		}
		hint = suggest.Try("`omit WORDS...` to wait, or use `--wait 1m` to wait at most a minute; `sscli lock status NAME` shows the holder").
			Fill(suggest.Words, given)
	}
	if notes != nil && !f.isRenewed(e.Status) {
		hint = suggest.Try("`sscli lock status NAME --observe 30s` shows if it is renewed; `sscli lock break NAME` takes it from a holder that is gone")
	}
	if hint != nil {
		err = &fault.NextError{Err: err, Hint: hint}
	}
	if e.Status.Token.IsZero() {
		return err
	}
	when := fmt.Sprintf("acquired or renewed at %s (%s)", e.Status.Token, format.Age(time.Since(e.Status.Token.Time())))
	return &fault.DetailError{Err: err, Details: append([]string{when}, notes...)}
}

func (f *lockFlags) result(op string, o client.LockOptions, lease client.Lease) format.Lock {
	t, _ := o.Timing()
	return format.Lock{Op: op, Name: f.name, Holder: string(lease.Holder), Token: lease.Token, TTL: t.TTL}
}
