package process

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// backgroundGrace is the time between TERM and KILL for a background command.
	backgroundGrace = 2 * time.Second

	// outputDelay is how long to wait for output after the command has ended: processes that the
	// command left behind may keep the pipes open.
	outputDelay = time.Second
)

// BackgroundOptions configure a [Background] command. Stdout and Stderr are as in an [exec.Cmd].
type BackgroundOptions struct {
	Args   []string // the name of the command, then its arguments
	Env    []string // NAME=VALUE; nil = sscli's environment
	Stdout io.Writer
	Stderr io.Writer
	Temp   string // a directory that the guard removes if sscli dies before the command; empty = none
}

// A Background command runs under a guard while sscli does other work. It has no standard input
// and no terminal, and runs in its own process group, so that Ctrl-C reaches only sscli. The guard
// ends the command when sscli ends for any reason.
type Background struct {
	guardLink
	done chan struct{}
	stop sync.Once

	// How the command ended; valid when done is closed.
	code int
	err  error
}

// StartBackground starts a command. The error is a *[StartError].
func StartBackground(o BackgroundOptions) (*Background, error) {
	name := o.Args[0]
	path, err := find(name)
	if err != nil {
		return nil, err
	}
	b := &Background{done: make(chan struct{})}
	if err := b.startGuard(path, o.Args, nil, o.Stdout, o.Stderr); err != nil {
		return nil, &StartError{name, CodeSetup, err}
	}
	far := at(time.Now().Add(noDeadline))
	s := start{Grace: backgroundGrace, Temp: []byte(o.Temp)}
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	for _, kv := range env {
		s.Env = append(s.Env, []byte(kv))
	}
	b.send(order{Limit: &limit{far, far}})
	b.send(order{Start: &s})
	go func() {
		defer close(b.done)
		b.watch(name)
	}()
	return b, nil
}

// watch waits until the command has ended, and then closes the guard. If the guard dies first, watch kills
// the command.
func (b *Background) watch(name string) {
	pid, ended := 0, false
	for e := range b.events {
		switch {
		case e.Started != 0:
			pid = e.Started
		case e.Refused != 0:
			ended, b.err = true, newStartError(name, e.Refused)
		case e.Late:
			ended, b.code = true, 128+int(syscall.SIGTERM)
		case e.Ended != nil:
			ended, b.code = true, e.Ended.Code
		}
		if ended {
			break // the guard exits only when its orders pipe is closed
		}
	}
	if !ended {
		b.code, b.err = codeKilled, &StartError{name, CodeSetup, ErrGuardDied}
		if pid != 0 {
			killGroup(pid)
		}
	}
	b.send(order{Keep: true})
	b.close()
}

// Done returns a channel that is closed once the command has ended and its output is written.
func (b *Background) Done() <-chan struct{} { return b.done }

// Wait waits for the command to end and returns its exit status, which is 128+N if signal N
// ended it. The error is a *[StartError].
func (b *Background) Wait() (int, error) {
	<-b.done
	return b.code, b.err
}

// Stop sends TERM to the command, then KILL if the command is still running after backgroundGrace,
// and waits until the command has ended.
func (b *Background) Stop() {
	b.stop.Do(func() { b.send(order{Stop: true}) })
	hung := time.AfterFunc(backgroundGrace+killTimeout+time.Second, func() { _ = b.guard.Process.Kill() })
	defer hung.Stop()
	<-b.done
}
