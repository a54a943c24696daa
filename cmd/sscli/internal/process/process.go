// Package process runs commands like env(1) and timeout(1): a command has sscli's terminal and
// standard streams and gets the signals that sscli gets, and the caller gets its exit status.
//
//	runner := process.NewRunner()
//	defer runner.Close()
//	code, err := runner.Run(process.Command{Args: []string{"make", "test"}})
//
// A [Guarded] command also has a deadline. A second process, the guard, ends the command at the
// deadline even if sscli is stopped or hangs, and immediately if sscli is killed.
//
//	g, err := process.NewGuarded(process.GuardOptions{Args: []string{"make", "test"}})
//	defer g.Close()
//	g.Limit(term, kill)     // call again whenever the deadline moves
//	end, err := g.Run(env)
//
// A [Background] command has no terminal, and ends when sscli ends.
//
// On Unix the commands of a Runner and Guarded commands run under job control, as in a shell: the
// command leads its own process group. If standard input is a terminal and sscli is in its
// foreground, the command's group becomes the foreground group. Ctrl-Z stops the command and sscli,
// fg continues both, and Ctrl-C reaches only the command. Windows has no job control: the console
// itself sends Ctrl-C to the command of a Runner, and a Guarded command gets Ctrl-Break in place of
// every signal.
//
// If sscli is killed, the command of a [Runner] and any processes that the command left behind keep
// running.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Exit codes for a command that did not run, as in env(1) and timeout(1).
const (
	CodeSetup         = 125 // an error before the command was started
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// A Command is a command for a [Runner].
type Command struct {
	Args  []string // the command's name, then its arguments
	Env   []string // NAME=VALUE; nil = sscli's environment
	Input []byte   // standard input; nil = sscli's standard input

	Stop <-chan struct{} // once closed, the command gets TERM, or on Windows is killed; nil = never
}

// Environ returns sscli's environment without the variables in drop, and with the variables in set,
// which replace existing ones. On Windows, the names in set and drop must be in upper case.
func Environ(set map[string]string, drop ...string) []string {
	omit := make(map[string]bool)
	for _, name := range drop {
		omit[name] = true
	}
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name) // for example, Path is the same variable as PATH
		}
		if _, replaced := set[name]; !replaced && !omit[name] {
			env = append(env, kv)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

// A StartError means that a command could not be started or waited for. Code is [CodeSetup],
// [CodeNotExecutable] or [CodeNotFound].
type StartError struct {
	Name string
	Code int
	Err  error
}

func (e *StartError) Error() string {
	name := strconv.Quote(e.Name)
	if runtime.GOOS == "windows" {
		name = strings.ReplaceAll(name, `\\`, `\`) // undo the quoting of the path separators
	}
	return "run " + name + ": " + e.Err.Error()
}

func (e *StartError) Unwrap() error { return e.Err }

// ExitCode returns Code.
func (e *StartError) ExitCode() int { return e.Code }

// newStartError returns the StartError for an error from os/exec or the system. It removes the
// name from err, because the message of a StartError contains the name already.
func newStartError(name string, err error) *StartError {
	code := CodeSetup
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		code = CodeNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errNotExecutable), errors.Is(err, syscall.EISDIR):
		code = CodeNotExecutable
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	return &StartError{name, code, err}
}

// find looks a program up in PATH. The error is a *[StartError].
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		here := "." + string(filepath.Separator) + filepath.Base(path)
		return "", &StartError{name, CodeNotFound, fmt.Errorf("not in PATH; to run the program in this directory, write %s", here)}
	}
	if err != nil {
		return "", newStartError(name, err)
	}
	return path, nil
}
