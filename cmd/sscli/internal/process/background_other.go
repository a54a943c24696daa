//go:build !unix

package process

import (
	"errors"
	"os/exec"
	"time"
)

// A Background command runs while sscli does other work. On this system no guard watches over
// it, so it keeps running if sscli is killed.
type Background struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // why the command could not be run to its end; valid when done is closed
}

// StartBackground starts a command. The error is a *[StartError].
func StartBackground(o BackgroundOptions) (*Background, error) {
	path, err := find(o.Args[0])
	if err != nil {
		return nil, err
	}
	b := &Background{done: make(chan struct{})}
	b.cmd = &exec.Cmd{Path: path, Args: o.Args, Stdout: o.Stdout, Stderr: o.Stderr, WaitDelay: time.Second}
	if err := b.cmd.Start(); err != nil {
		return nil, newStartError(o.Args[0], err)
	}
	go func() {
		defer close(b.done)
		if err := b.cmd.Wait(); err != nil {
			if _, ended := errors.AsType[*exec.ExitError](err); !ended && !errors.Is(err, exec.ErrWaitDelay) {
				b.err = &StartError{o.Args[0], CodeSetup, err}
			}
		}
	}()
	return b, nil
}

// Done returns a channel that is closed once the command has ended and its output is written.
func (b *Background) Done() <-chan struct{} { return b.done }

// Wait waits for the command to end and returns its exit status. The error is a *[StartError].
func (b *Background) Wait() (int, error) {
	<-b.done
	return b.cmd.ProcessState.ExitCode(), b.err
}

// Stop kills the command and waits until it has ended.
func (b *Background) Stop() {
	_ = b.cmd.Process.Kill() // fails if the command has ended already
	<-b.done
}
