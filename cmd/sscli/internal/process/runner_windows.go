package process

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"sync"

	"golang.org/x/sys/windows"
)

const errNotExecutable = windows.ERROR_BAD_EXE_FORMAT

// A Runner runs commands, one after the other.
type Runner struct{}

// NewRunner returns a Runner.
func NewRunner() *Runner { return &Runner{} }

// Run runs a command, waits for it to exit, and returns its exit status. The error is a *[StartError].
func (*Runner) Run(c Command) (int, error) {
	path, err := find(c.Args[0])
	if err != nil {
		return 0, err
	}
	cmd := &exec.Cmd{Path: path, Args: c.Args, Env: c.Env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if c.Input != nil {
		cmd.Stdin = bytes.NewReader(c.Input)
	}
	// Ignore Ctrl-C. The console sends it to the command too, which decides whether to end.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	if err := cmd.Start(); err != nil {
		return 0, newStartError(cmd.Args[0], err)
	}
	ended := make(chan struct{})
	var stopping sync.WaitGroup
	stopping.Go(func() {
		select {
		case <-c.Stop:
			_ = cmd.Process.Kill() // fails if the command has ended
		case <-ended:
		}
	})
	defer stopping.Wait()
	defer close(ended)
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		return 0, &StartError{cmd.Args[0], CodeSetup, err}
	}
	return cmd.ProcessState.ExitCode(), nil
}

// Close does nothing on this system.
func (*Runner) Close() {}
