//go:build !unix

package process

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
)

var errNotExecutable = errors.ErrUnsupported

// A Runner runs commands, one after the other.
type Runner struct{}

// NewRunner returns a Runner.
func NewRunner() *Runner { return &Runner{} }

// Close does nothing here.
func (*Runner) Close() {}

// Run runs a command to its end and returns its exit status. The error is a
// *[StartError].
func (*Runner) Run(c Command) (int, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, os.Stdout, os.Stderr, c.Env
	if c.Input != nil {
		cmd.Stdin = bytes.NewReader(c.Input)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, &StartError{c.Args[0], startCode(err), plain(err)}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			pass(cmd.Process, s)
		case err := <-ended:
			if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
				return 0, &StartError{c.Args[0], CodeSetup, err}
			}
			return cmd.ProcessState.ExitCode(), nil
		}
	}
}

// pass asks the command to end. Windows delivers an interrupt from the console to every
// process on it, so the command has it already.
func pass(p *os.Process, s os.Signal) { _ = p.Signal(s) }
