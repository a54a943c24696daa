//go:build !unix

package process

import (
	"errors"
	"os/exec"
	"time"
)

// A Background command runs beside sscli. This system has no guards, so the command outlives an
// sscli that is killed.
type Background struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of the end; valid when done is closed
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

// Done returns a channel that is closed when the command has ended and its output was written.
func (b *Background) Done() <-chan struct{} { return b.done }

// Wait waits for the end of the command and returns its exit status. The error is a *[StartError].
func (b *Background) Wait() (int, error) {
	<-b.done
	return b.cmd.ProcessState.ExitCode(), b.err
}

// Stop ends the command and waits until it has ended.
func (b *Background) Stop() {
	_ = b.cmd.Process.Kill() // it may have ended
	<-b.done
}
