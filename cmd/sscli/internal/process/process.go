// Package process runs a command on behalf of sscli, as env(1) and timeout(1) do. The
// command has the terminal and the standard streams of sscli, gets each signal that
// sscli gets, and hands back its exit status.
//
//	runner := process.NewRunner()
//	defer runner.Close()
//	code, err := runner.Run(process.Command{Args: []string{"make", "test"}})
//
// A [Guarded] command must moreover end in time: a second process, the guard, ends it
// at its limit, also if sscli is killed, stopped or hangs.
//
//	g, err := process.NewGuarded(child.GuardOptions{Args: []string{"make", "test"}})
//	defer g.Close()
//	g.Limit(term, kill)     // again whenever the limit moves
//	end, err := g.Run(env)
//
// On Unix both have a shell's job control: the command leads a process
// group of its own, which is the terminal's foreground group if standard input is a
// terminal and sscli is in its foreground. Ctrl-Z stops the command and sscli, fg
// continues both, and Ctrl-C reaches the command alone. Elsewhere there are no groups,
// and only an interrupt is passed on.
//
// A [Runner] does not promise that nothing outlives sscli: a command that it runs goes
// on when sscli is killed, and so does what a command leaves behind when it ends.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"
)

// Exit codes for a command that did not run, as in POSIX shells.
const (
	CodeSetup         = 125 // something before it went wrong
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// A Command is what a [Runner] runs.
type Command struct {
	Args  []string // at least the name
	Env   []string // NAME=VALUE; nil = sscli's own
	Input []byte   // for its standard input; nil = sscli's own
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
