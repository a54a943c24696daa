//go:build unix

package process

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// backgroundGrace is the time between TERM and KILL for a background command.
	backgroundGrace = 2 * time.Second

	// outputDelay is how long to wait for output after the command has ended. Processes that the
	// command left behind may keep the pipes open.
	outputDelay = time.Second
)

// A Background command runs under a guard while sscli does other work. It has no standard input
// and no terminal, and runs in its own process group, so that Ctrl-C reaches only sscli. The guard
// ends it when sscli ends for any reason.
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
	output, err := b.begin(path, o)
	if err != nil {
		return nil, &StartError{name, CodeSetup, err}
	}
	far := at(time.Now().Add(noDeadline))
	s := start{Grace: backgroundGrace, Temp: []byte(o.Temp)}
	for _, kv := range o.environ() {
		s.Env = append(s.Env, []byte(kv))
	}
	b.send(order{Limit: &limit{far, far}})
	b.send(order{Start: &s})
	go func() {
		defer close(b.done)
		b.watch(name)
		output.finishWithin(outputDelay)
	}()
	return b, nil
}

// begin starts the guard with the command's standard streams.
func (b *Background) begin(path string, o BackgroundOptions) (*pipes, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	output := &pipes{}
	stdout, err := output.open(o.Stdout)
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr, err := output.open(o.Stderr)
	if err == nil {
		defer stderr.Close()
		err = b.startGuard(path, o.Args, null, stdout, stderr)
	}
	if err != nil {
		stdout.Close()
		stderr.Close()
		output.finishWithin(outputDelay)
		return nil, err
	}
	return output, nil
}

// watch waits for the guard to end, and kills the command if the guard died first.
func (b *Background) watch(name string) {
	pid, ended := 0, false
	for e := range b.events {
		switch {
		case e.Started != 0:
			pid = e.Started
		case e.Refused != 0:
			ended, b.err = true, newStartError(name, e.Refused)
		case e.Late:
			ended, b.code = true, 128+int(unix.SIGTERM)
		case e.Ended != nil:
			ended, b.code = true, e.Ended.Code
		}
		if ended {
			break // the guard exits only when its orders pipe is closed
		}
	}
	if !ended {
		b.code = codeKilled
		if pid != 0 {
			_ = unix.Kill(-pid, syscall.SIGKILL)
		}
		b.err = &StartError{name, CodeSetup, ErrGuardDied}
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

// Stop sends TERM to the command, KILL after backgroundGrace, and waits until it has ended.
func (b *Background) Stop() {
	b.stop.Do(func() { b.send(order{Stop: true}) })
	hung := time.AfterFunc(backgroundGrace+killTimeout+time.Second, func() { _ = b.guard.Process.Kill() })
	defer hung.Stop()
	<-b.done
}

// finishWithin waits until the output is copied, at most for a duration. Processes that the command
// left behind may keep the pipes open.
func (p *pipes) finishWithin(d time.Duration) {
	var errs []error
	for _, r := range p.readers {
		errs = append(errs, r.SetReadDeadline(time.Now().Add(d)))
	}
	if errors.Join(errs...) != nil {
		return // this system has no deadlines on pipes: copying ends when the last writer does
	}
	p.finish()
}
