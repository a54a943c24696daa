package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/child"
	"github.com/sscli/sscli/cmd/sscli/config"
	"github.com/sscli/sscli/format"
)

// What the child of a lock finds in its environment.
const (
	envLockName   = "SSCLI_LOCK_NAME"
	envLockHolder = "SSCLI_LOCK_HOLDER"
	envFence      = "SSCLI_FENCE"
	envFenceFile  = "SSCLI_FENCE_FILE"
)

type lockRunFlags struct {
	ttl, wait, grace, holder config.Text
	try                      bool
	conflict                 int
}

func (a *app) newLockRun() *cobra.Command {
	var f lockRunFlags
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
				return usage("want lock run NAME -- CMD...")
			}
			args = unprotectAll(args)
			return a.lockRun(cmd.Context(), f, args[0], args[1:])
		},
	}
	fs := cmd.Flags()
	fs.Var(&f.ttl, "ttl", "let the lock run out after `DURATION` without a renewal (default 15s)")
	fs.VarP(&f.wait, "wait", "w", "wait at most `DURATION` for the lock (default: as long as it takes)")
	fs.BoolVarP(&f.try, "try", "n", false, "do not wait for the lock")
	fs.IntVarP(&f.conflict, "conflict-exit-code", "E", codeNo, "exit `CODE` if another holds the lock")
	fs.Var(&f.holder, "holder", "value of the lock's key, shared with nobody (default: the client id, a colon and random characters)")
	fs.Var(&f.grace, "grace", "time between TERM and KILL as a `DURATION` (default: a quarter of --ttl, at most 5s)")
	return cmd
}

func (f lockRunFlags) options() (o client.LockOptions, err error) {
	for _, d := range []struct {
		flag  string
		text  config.Text
		to    *time.Duration
		least time.Duration
	}{{"--ttl", f.ttl, &o.TTL, 1}, {"--wait", f.wait, &o.Wait, 0}, {"--grace", f.grace, &o.Grace, 0}} {
		if d.text == "" {
			continue
		}
		if *d.to, err = config.ParseDuration(string(d.text)); err != nil || *d.to < d.least {
			return o, usage("%s %.32q: want a duration such as 500ms or 2m", d.flag, string(d.text))
		}
	}
	o.Holder, o.Try = []byte(f.holder), f.try
	switch {
	case f.try && f.wait != "":
		return o, usage("--try together with --wait: want one of them")
	case f.conflict < 0 || f.conflict > 255:
		return o, usage("-E %d: want an exit code of 0 to 255", f.conflict)
	}
	if f.wait != "" && o.Wait == 0 {
		o.Try = true
	}
	if f.grace != "" && o.Grace == 0 {
		o.Grace = -1 // none; 0 is the default
	}
	if _, err := o.Timing(); err != nil {
		return o, usage("%w", err)
	}
	return o, nil
}

// errLate is a lock that came too late to begin anything under it.
var errLate = fmt.Errorf("there was no time left to start the command: %w", client.ErrLockLost)

func (a *app) lockRun(ctx context.Context, f lockRunFlags, name string, command []string) (err error) {
	o, err := f.options()
	if err != nil {
		return err
	}
	if err := client.Get(name).Check(); err != nil {
		return &usageError{err: err}
	}
	if around, ok := a.env(envLockName); ok && around == name {
		return &usageError{
			err:  fmt.Errorf("lock %s is held by the lock run around this one, which would wait for itself", shownKey(name)),
			hint: "if it is the lock of another store: env -u " + envLockName + " sscli lock run …",
		}
	}
	b, undo, err := a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	file, err := newFenceFile()
	if err != nil {
		return &child.StartError{Name: command[0], Code: child.CodeSetup, Err: err}
	}
	defer func() { err = errors.Join(err, file.remove()) }()
	timing, err := o.Timing()
	if err != nil {
		return err
	}
	r := lockRun{app: a, name: name, file: file}
	r.guarded, err = child.NewGuarded(child.GuardOptions{
		Args: command, Grace: timing.Grace, Secret: file.path, Suspended: r.suspended, Resumed: r.resumed,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.guarded.Close()) }()
	s, err := dialWithin(ctx, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	o.OnLease, o.OnWait, o.OnTrouble = r.leased, r.waiting, r.troubled
	r.lock, err = s.Lock(ctx, name, o)
	if errors.Is(err, client.ErrLockBusy) {
		a.warn(message(err), "")
		if f.conflict == 0 {
			return nil
		}
		return &exitError{code: f.conflict}
	}
	if err != nil {
		return err
	}
	// A signal is the child's from here on; what ends the lock is the child's end.
	return r.run(ctx, a.lockedEnviron(b.Address, r.lock))
}

// dialWithin connects within the time-out.
func dialWithin(ctx context.Context, o client.Options) (*client.Session, error) {
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return client.Dial(limited, o)
}

// lockedEnviron is the environment of the child of a lock.
func (a *app) lockedEnviron(address string, l *client.Lock) []string {
	s := a.settings
	if s.Embedded {
		s = config.Settings{Address: address}
	}
	set, drop := s.Environ()
	set[envLockName], set[envLockHolder] = l.Name(), string(l.Holder())
	set[envFence] = l.Token().String()
	return environ(set, drop...)
}

// A lockRun is a child and its lock.
type lockRun struct {
	app     *app
	name    string
	guarded *child.Guarded
	file    *fenceFile
	lock    *client.Lock
	held    bool // since the first lease
}

// run runs the child and gives the lock back.
func (r *lockRun) run(ctx context.Context, env []string) error {
	var end child.End
	err := context.Cause(ctx)
	if err == nil {
		over, watched := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			select {
			case <-r.lock.Context().Done():
				r.lost()
			case <-over:
			}
		}()
		end, err = r.guarded.Run(append(env, envFenceFile+"="+r.file.path))
		close(over)
		<-watched
	}
	// What was known before anything was given back.
	lost, _ := errors.AsType[*client.LockLostError](context.Cause(r.lock.Context()))
	emptied := r.file.empty()
	released := r.release()
	if interrupted, ok := errors.AsType[*child.InterruptedError](err); ok {
		return &interruptError{interrupted.Signal.(syscall.Signal)}
	}
	switch _, notOurs := errors.AsType[*client.NotHolderError](released); {
	case errors.Is(err, child.ErrLate):
		return errLate
	case errors.Is(err, child.ErrGuardDied):
		return fmt.Errorf("lock %s: the command was killed: %w", shownKey(r.name), err)
	case err != nil:
		return err
	case lost != nil:
		return &lockLostError{lost, end}
	case end.Killed:
		return &lockLostError{fmt.Errorf("lock %s: it was not renewed in time: %w", shownKey(r.name), client.ErrLockLost), end}
	case notOurs:
		return &lockLostError{fmt.Errorf("%w when the command had ended: %w", released, client.ErrLockLost), end}
	case released != nil:
		r.app.warn(fmt.Sprintf("lock %s was not released, and runs out within %v: %s", shownKey(r.name), r.lock.Timing().TTL, message(released)), "")
	}
	if emptied != nil {
		r.app.note(emptied.Error())
	}
	if end.Left > 0 {
		r.app.warn("processes that the command had left behind were ended", "")
	}
	if end.Code != 0 {
		return &exitError{code: end.Code}
	}
	return nil
}

// release gives the lock back; a second signal ends the waiting, and sscli.
func (r *lockRun) release() error {
	budget := r.app.settings.Timeout
	if budget == 0 {
		budget = client.DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	return r.lock.Release(ctx)
}

// leased has a new lease: the child may live longer, and has a new token.
func (r *lockRun) leased(l client.Lease) {
	r.guarded.Limit(l.Term, l.Until)
	if err := r.file.write(l.Token.String()); err != nil {
		r.app.warn("the child has an old token: "+err.Error(), "")
	}
	if !r.held {
		r.held = true
		r.app.note(fmt.Sprintf("lock %s is ours, token %s", shownKey(r.name), l.Token))
	}
}

// lost is called once the lock is gone, or cannot be renewed in time.
func (r *lockRun) lost() {
	lost := context.Cause(r.lock.Context())
	r.guarded.Stop()
	if err := r.file.empty(); err != nil {
		r.app.note(err.Error())
	}
	r.app.warn(lost.Error()+"; the command is ended", "")
}

func (r *lockRun) waiting(s client.LockStatus) {
	by := "another"
	if s.Holder != nil {
		by = format.Quote(string(s.Holder))
	}
	text := fmt.Sprintf("lock %s is held by %s; waiting", shownKey(r.name), by)
	if outer, ok := r.app.env(envLockHolder); ok && outer == string(s.Holder) {
		text += " for the lock run around this one, which is for ever"
	}
	r.app.warn(text, "")
}

func (r *lockRun) troubled(err error) {
	r.app.warn(fmt.Sprintf("lock %s: %s", shownKey(r.name), message(err)), "")
}

func (r *lockRun) suspended() {
	left := r.lock.Lease().TermIn().Round(100 * time.Millisecond)
	r.app.warn(fmt.Sprintf("lock %s is not renewed while sscli is stopped: in %v the command is ended", shownKey(r.name), max(left, 0)), "")
}

func (r *lockRun) resumed() {}

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

// A fenceFile holds the present token of a lock, for its child alone.
type fenceFile struct {
	path string

	mu   sync.Mutex
	over bool // there will be no token any more
}

// newFenceFile makes an empty one in a directory of its own.
func newFenceFile() (*fenceFile, error) {
	dir, err := os.MkdirTemp("", "sscli-lock-")
	if err != nil {
		return nil, err
	}
	f := &fenceFile{path: filepath.Join(dir, "token")}
	if err := f.replace(""); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

// write replaces the token.
func (f *fenceFile) write(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil
	}
	return f.replace(token + "\n")
}

// empty takes the token away for good.
func (f *fenceFile) empty() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil
	}
	f.over = true
	return f.replace("")
}

// replace lets a reader find the old or the new text, whole.
func (f *fenceFile) replace(text string) error {
	next := f.path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.path)
}

func (f *fenceFile) remove() error { return os.RemoveAll(filepath.Dir(f.path)) }
