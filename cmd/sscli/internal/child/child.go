// Package child runs a command on behalf of sscli, as env(1) and timeout(1) do:
// with the terminal and standard streams of sscli, every signal passed on, and
// its exit status handed back.
//
//	code, err := child.Run(ctx, child.Command{Args: []string{"make", "test"}, Env: env})
//
// On Unix the child is the leader of a process group of its own, and of the
// terminal's foreground group when standard input is a terminal. Elsewhere there
// are no groups, and only an interrupt can be passed on.
package child

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Exit codes for a command that did not run, as in POSIX shells.
const (
	CodeSetup         = 125 // something before it went wrong
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// A Command is what to run.
type Command struct {
	Args  []string // at least the name
	Env   []string
	Stdin io.Reader // nil = that of sscli
}

// A StartError is a command that could not be started. Code is one of the codes
// above.
type StartError struct {
	Name string
	Code int
	Err  error
}

func (e *StartError) Error() string { return fmt.Sprintf("run %q: %v", e.Name, e.Err) }

func (e *StartError) Unwrap() error { return e.Err }

// Run runs the command to its end and returns its exit status, 128+N if signal N
// ended it. Signals that reach sscli meanwhile are passed on to it, so Run ends
// when the command does. The error is a *[StartError].
func Run(c Command) (int, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = c.Env
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}

	// Before the start, so that no signal falls into the gap.
	signals := make(chan os.Signal, 16)
	for _, s := range passedOn() {
		if !signal.Ignored(s) { // else the command would no longer inherit that
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	giveBack := own(cmd)
	if err := cmd.Start(); err != nil {
		giveBack()
		return 0, &StartError{c.Args[0], startCode(err), plain(err)}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			pass(cmd.Process, s)
		case err := <-ended:
			giveBack()
			if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
				return 0, &StartError{c.Args[0], CodeSetup, err}
			}
			return status(cmd.ProcessState), nil
		}
	}
}

func startCode(err error) int {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return CodeNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errNotExecutable), errors.Is(err, syscall.EISDIR):
		return CodeNotExecutable
	}
	return CodeSetup
}

// plain takes off what os/exec says about the name, which StartError says too.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}
