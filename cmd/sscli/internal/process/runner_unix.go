//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

const errNotExecutable = syscall.ENOEXEC

// A Runner runs commands, one after the other. Its methods are for one goroutine. Once
// a command has run, the Runner owns SIGTSTP and SIGTTOU until Close.
type Runner struct {
	signals  chan os.Signal // for the command
	children chan os.Signal // SIGCHLD
	stops    chan os.Signal // SIGTSTP while no command runs
	resting  chan struct{}  // closing it ends the reading of stops; nil while a command runs
	rested   chan struct{}  // closed when that has ended
	canStop  bool           // SIGTTOU has its default effect, so a command shall inherit that
}

// NewRunner returns a Runner. Call Close when no more commands will run.
func NewRunner() *Runner {
	return &Runner{
		signals: make(chan os.Signal, 16), children: make(chan os.Signal, 1), stops: make(chan os.Signal, 1),
		canStop: !signal.Ignored(unix.SIGTTOU),
	}
}

// Run runs a command to its end and returns its exit status, 128+N if signal N ended
// it. Signals that reach sscli meanwhile are passed on to the command, so Run ends when
// the command does. What the command leaves running goes on. The error is a
// *[StartError].
func (r *Runner) Run(c Command) (int, error) {
	path, err := find(c.Args[0])
	if err != nil {
		return 0, err
	}
	// Before the start, so that no signal falls into the gap.
	catch(r.signals, passedOn()...)
	signal.Notify(r.children, unix.SIGCHLD)
	r.wake()
	defer r.rest()
	in, err := openInput(c.Input)
	if err != nil {
		return 0, &StartError{c.Args[0], CodeSetup, err}
	}
	defer in.close()
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	j := job{signals: r.signals, tty: ownTerminal()}
	attr := ownGroup(j.tty.ours())
	if j.tty.ours() {
		j.tty.gave = true
	}
	if r.canStop {
		// A command inherits what is ignored, and not what is caught.
		signal.Notify(r.stops, unix.SIGTTOU)
	}
	j.pid, err = syscall.ForkExec(path, c.Args, &syscall.ProcAttr{Env: env, Files: []uintptr{in.fd(), 1, 2}, Sys: attr})
	// While the command has the terminal, sscli is in its background. It may write to it
	// all the same, and take it back.
	signal.Ignore(unix.SIGTTOU)
	defer j.tty.takeBack()
	if err != nil {
		return 0, &StartError{c.Args[0], startCode(err), err}
	}
	in.feed()
	j.send = func(s syscall.Signal) { _ = unix.Kill(-j.pid, s) } // it may be gone already
	return j.wait(c.Args[0], r.children)
}

// wait waits for the end of a command that is a child of sscli. Signals are sent and
// the status is collected by the same goroutine, so the process id stays the command's.
func (j *job) wait(name string, children <-chan os.Signal) (int, error) {
	for {
		select {
		case s := <-j.signals:
			j.pass(s)
		case <-children:
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(j.pid, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
			for err == syscall.EINTR {
				pid, err = syscall.Wait4(j.pid, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
			}
			switch {
			case err != nil:
				return 0, &StartError{name, CodeSetup, err}
			case pid == 0: // the signal was for another child
			case status.Stopped():
				j.suspend(status.StopSignal())
			default:
				return exitStatus(status), nil
			}
		}
	}
}

// rest has SIGTSTP stop sscli while no command runs: once the Go runtime has caught the
// signal, it never has its default effect again.
func (r *Runner) rest() {
	catch(r.stops, unix.SIGTSTP)
	signal.Stop(r.signals)
	signal.Stop(r.children)
	resting, rested := make(chan struct{}), make(chan struct{})
	r.resting, r.rested = resting, rested
	// A SIGTSTP that came when the command had just ended may be in both channels, and
	// stops sscli once.
	stopped := false
	for _, c := range []chan os.Signal{r.signals, r.stops} {
		for len(c) > 0 {
			stopped = <-c == unix.SIGTSTP || stopped
		}
	}
	if stopped {
		_ = unix.Kill(unix.Getpid(), stopByTerminal)
	}
	go func() {
		defer close(rested)
		for {
			select {
			case s := <-r.stops:
				if s == unix.SIGTSTP {
					_ = unix.Kill(unix.Getpid(), stopByTerminal)
				}
			case <-resting:
				return
			}
		}
	}()
}

func (r *Runner) wake() {
	if r.resting == nil {
		return
	}
	signal.Stop(r.stops)
	close(r.resting)
	<-r.rested
	r.resting = nil
}

// Close gives the signals back.
func (r *Runner) Close() { r.wake() }

// ownGroup has a command start in a process group of its own; foreground gives that the
// terminal which standard input is.
func ownGroup(foreground bool) *syscall.SysProcAttr {
	if foreground {
		return &syscall.SysProcAttr{Foreground: true, Ctty: 0}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// An input is the standard input of a command: a pipe, or sscli's own.
type input struct {
	data  []byte
	r, w  *os.File // nil = sscli's own
	wrote chan struct{}
}

func openInput(data []byte) (*input, error) {
	in := &input{data: data}
	if data == nil {
		return in, nil
	}
	var err error
	in.r, in.w, err = os.Pipe()
	return in, err
}

func (in *input) fd() uintptr {
	if in.r == nil {
		return 0
	}
	return in.r.Fd()
}

// feed writes the data while the command runs.
func (in *input) feed() {
	if in.w == nil {
		return
	}
	_ = in.r.Close() // else nobody would notice that the command has closed it
	in.wrote = make(chan struct{})
	go func() {
		defer close(in.wrote)
		_, _ = in.w.Write(in.data) // a command need not read its input
		_ = in.w.Close()
	}()
}

// close ends feed, also if something that the command left behind has the pipe open and
// does not read it.
func (in *input) close() {
	if in.r == nil {
		return
	}
	_ = in.w.Close()
	_ = in.r.Close()
	if in.wrote != nil {
		<-in.wrote
	}
}

func exitStatus(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
