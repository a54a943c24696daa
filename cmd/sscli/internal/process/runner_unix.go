//go:build unix

package process

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const errNotExecutable = syscall.ENOEXEC

// A Runner runs commands, one after the other, in one goroutine. From the first command on, sscli
// ignores SIGTTOU and, until Close, the Runner handles SIGTSTP.
type Runner struct {
	signals  chan os.Signal // signals to forward to the command
	children chan os.Signal // SIGCHLD
	stops    chan os.Signal // SIGTSTP while no command runs
	endIdle  func()         // ends the goroutine that idle started; nil = there is none
	canStop  bool           // SIGTTOU was not ignored when sscli started, so it must not be ignored in commands
}

// NewRunner returns a Runner. Call Close after the last command.
func NewRunner() *Runner {
	return &Runner{
		signals: make(chan os.Signal, 16), children: make(chan os.Signal, 1), stops: make(chan os.Signal, 1),
		canStop: !signal.Ignored(unix.SIGTTOU),
	}
}

// Run runs a command, waits for it to exit, and returns its exit status, which is 128+N if signal N
// ended it. Meanwhile, Run forwards the signals that sscli gets.
// Processes that the command leaves behind keep running. The error is a *[StartError].
func (r *Runner) Run(c Command) (int, error) {
	path, err := find(c.Args[0])
	if err != nil {
		return 0, err
	}
	return r.run(path, c)
}

func (r *Runner) run(path string, c Command) (int, error) {
	name := c.Args[0]
	// Catch signals before the command starts, so that none is lost.
	catch(r.signals, forwarded()...)
	signal.Notify(r.children, unix.SIGCHLD)
	r.Close()
	defer r.idle()
	stdin := os.Stdin
	if c.Input != nil {
		in, end, err := feed(c.Input)
		if err != nil {
			return 0, &StartError{name, CodeSetup, err}
		}
		defer end()
		stdin = in
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	j := job{signals: r.signals, tty: stdinTerminal()}
	attr := newGroup(j.tty.isOurs())
	if attr.Foreground {
		j.tty.given = true
	}
	if r.canStop {
		// A command inherits ignored signals but not caught ones, so SIGTTOU must be caught
		// when the command starts.
		signal.Notify(r.stops, unix.SIGTTOU)
	}
	var err error
	j.pid, err = syscall.ForkExec(path, c.Args, &syscall.ProcAttr{Env: env, Files: []uintptr{stdin.Fd(), 1, 2}, Sys: attr})
	// While the command has the terminal, sscli is in the background. With SIGTTOU ignored, sscli
	// can still write to the terminal and take it back.
	signal.Ignore(unix.SIGTTOU)
	defer j.tty.takeBack()
	if err != nil {
		return 0, newStartError(name, err)
	}
	j.sendSignal = func(s syscall.Signal) { _ = unix.Kill(-j.pid, s) } // fails if the group has ended
	// Only this goroutine signals the command and waits for it, so no signal is sent after the
	// wait, when j.pid may belong to another process.
	waitFor := j.pid
	if os.Getpid() == initPid {
		waitFor = -1 // also for the orphans of the container
	}
	stop := c.Stop
	for {
		select {
		case s := <-j.signals:
			j.forward(s)
			continue
		case <-stop:
			j.forward(unix.SIGTERM)
			stop = nil
			continue
		case <-r.children:
		}
		for more := true; more; {
			var status syscall.WaitStatus
			switch pid, err := wait4(waitFor, &status); {
			case err != nil:
				return 0, &StartError{name, CodeSetup, err}
			case pid == 0: // SIGCHLD for another child, or for one that was reaped before
				more = false
			case pid != j.pid: // an orphan
			case status.Stopped():
				j.suspend(status.StopSignal())
			default:
				return exitStatus(status), nil
			}
		}
	}
}

// feed returns a pipe from which the command reads data. Call end when the command has ended: it
// stops the writing goroutine, even if the command did not read all of data.
func feed(data []byte) (r *os.File, end func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		_, _ = w.Write(data) // fails if the command does not read its input
		_ = w.Close()
	})
	return r, func() {
		_ = w.Close()
		writing.Wait()
		_ = r.Close()
	}, nil
}

// idle makes SIGTSTP stop sscli while no command runs. It starts a goroutine for this, because the Go
// runtime does not restore the default action of SIGTSTP once it has caught the signal.
func (r *Runner) idle() {
	catch(r.stops, unix.SIGTSTP)
	signal.Stop(r.signals)
	signal.Stop(r.children)
	// A SIGTSTP that came just after the command ended may be in both channels, but sscli must
	// stop only once.
	stopped := false
	for _, c := range []chan os.Signal{r.signals, r.stops} {
		for len(c) > 0 {
			stopped = <-c == unix.SIGTSTP || stopped
		}
	}
	if stopped {
		_ = unix.Kill(unix.Getpid(), stopSignal)
	}
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for {
			select {
			case s := <-r.stops:
				if s == unix.SIGTSTP {
					_ = unix.Kill(unix.Getpid(), stopSignal)
				}
			case <-done:
				return
			}
		}
	})
	r.endIdle = func() {
		signal.Stop(r.stops)
		close(done)
		waiting.Wait()
	}
}

// Close stops the handling of SIGTSTP. SIGTTOU stays ignored.
func (r *Runner) Close() {
	if r.endIdle != nil {
		r.endIdle()
		r.endIdle = nil
	}
}
