//go:build !unix

package process

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"time"
)

// GuardMain returns false: there are no guards here.
func GuardMain() bool { return false }

// A Guarded command has no guard here: sscli itself kills it at its limit, the
// command alone and not what it started, and nobody does if sscli is killed or
// hangs. There is nothing that asks a command to end, so it is killed when it would
// be asked.
type Guarded struct {
	o       GuardOptions
	path    string
	signals chan os.Signal

	mu    sync.Mutex
	term  time.Time
	limit *time.Timer
	due   chan struct{}
	once  sync.Once
}

// NewGuarded finds the command; nothing runs yet. The error is a *[StartError].
func NewGuarded(o GuardOptions) (*Guarded, error) {
	path, err := find(o.Args[0])
	if err != nil {
		return nil, err
	}
	g := &Guarded{o: o, path: path, signals: make(chan os.Signal, 16), due: make(chan struct{})}
	signal.Notify(g.signals, os.Interrupt)
	return g, nil
}

// Limit says when the command is ended.
func (g *Guarded) Limit(term, _ time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.term = term
	if g.limit == nil {
		g.limit = time.AfterFunc(time.Until(term), g.Stop)
		return
	}
	g.limit.Reset(time.Until(term))
}

// Stop ends the command.
func (g *Guarded) Stop() { g.once.Do(func() { close(g.due) }) }

// Run runs the command to its end, with Limit called before. The error is a
// *[StartError], [ErrLate] or an *[signals.Interrupted].
func (g *Guarded) Run(env []string) (End, error) {
	defer signal.Stop(g.signals)
	select {
	case s := <-g.signals:
		return End{}, interrupted(s)
	case <-g.due:
		return End{}, ErrLate
	default:
	}
	cmd := &exec.Cmd{Path: g.path, Args: g.o.Args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := cmd.Start(); err != nil {
		return End{}, &StartError{g.o.Args[0], startCode(err), plain(err)}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	end := End{}
	due := g.due
	for {
		select {
		case s := <-g.signals:
			pass(cmd.Process, s)
		case <-due:
			due = nil
			end.Killed = true
			_ = cmd.Process.Kill() // it may have ended
		case err := <-ended:
			if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
				return End{}, &StartError{g.o.Args[0], CodeSetup, err}
			}
			end.Code = cmd.ProcessState.ExitCode()
			return end, nil
		}
	}
}

// Close may be called without Run.
func (g *Guarded) Close() error {
	signal.Stop(g.signals)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limit != nil {
		g.limit.Stop()
	}
	return nil
}
