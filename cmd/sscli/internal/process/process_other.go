//go:build !unix

package process

import (
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/signals"
)

var errNotExecutable = errors.ErrUnsupported

// run runs a command to its end, and kills it when due is closed. It forwards signals. An
// interrupt from the console reaches the command in any case.
func run(cmd *exec.Cmd, signals <-chan os.Signal, due <-chan struct{}) (end End, err error) {
	if err := cmd.Start(); err != nil {
		return End{}, newStartError(cmd.Args[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case <-due:
			due = nil
			end.Killed = true
			_ = cmd.Process.Kill() // it may have ended
		case err := <-ended:
			if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
				return End{}, &StartError{cmd.Args[0], CodeSetup, err}
			}
			end.Code = cmd.ProcessState.ExitCode()
			return end, nil
		}
	}
}

// A Runner runs commands, one after the other.
type Runner struct{}

// NewRunner returns a Runner.
func NewRunner() *Runner { return &Runner{} }

// Close does nothing on this system.
func (*Runner) Close() {}

// Run runs a command to its end and returns its exit status. The error is a *[StartError].
func (*Runner) Run(c Command) (int, error) {
	path, err := find(c.Args[0])
	if err != nil {
		return 0, err
	}
	cmd := &exec.Cmd{Path: path, Args: c.Args, Env: c.Env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if c.Input != nil {
		cmd.Stdin = bytes.NewReader(c.Input)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	end, err := run(cmd, signals, nil)
	return end.Code, err
}

// GuardMain returns false: this system has no guards.
func GuardMain() bool { return false }

// A Guarded command has no guard on this system. sscli itself kills the command, but not its
// descendants, and the command outlives an sscli that is killed or hangs. There is no TERM, so
// the command is killed at the time of TERM.
type Guarded struct {
	o       GuardOptions
	path    string
	signals chan os.Signal
	timer   *time.Timer   // calls Stop
	due     chan struct{} // closed by Stop
	once    sync.Once
}

// NewGuarded finds the command, but does not start it. The error is a *[StartError].
func NewGuarded(o GuardOptions) (*Guarded, error) {
	path, err := find(o.Args[0])
	if err != nil {
		return nil, err
	}
	g := &Guarded{o: o, path: path, signals: make(chan os.Signal, 16), due: make(chan struct{})}
	g.timer = time.AfterFunc(math.MaxInt64, g.Stop)
	signal.Notify(g.signals, os.Interrupt)
	return g, nil
}

// Limit sets the time at which the command is killed.
func (g *Guarded) Limit(term, _ time.Time) { g.timer.Reset(time.Until(term)) }

// Stop kills the command.
func (g *Guarded) Stop() { g.once.Do(func() { close(g.due) }) }

// Run runs the command to its end. Call Limit before. The error is a *[StartError], [ErrLate]
// or an *[signals.Interrupted].
func (g *Guarded) Run(env []string) (End, error) {
	defer signal.Stop(g.signals)
	select {
	case s := <-g.signals:
		return End{}, &signals.Interrupted{Signal: s.(syscall.Signal)}
	case <-g.due:
		return End{}, ErrLate
	default:
	}
	cmd := &exec.Cmd{Path: g.path, Args: g.o.Args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	return run(cmd, g.signals, g.due)
}

// Close may be called without Run.
func (g *Guarded) Close() error {
	signal.Stop(g.signals)
	g.timer.Stop()
	return nil
}
