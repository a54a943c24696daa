//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// backgroundGrace is the time between TERM and KILL for a background command.
	backgroundGrace = 2 * time.Second

	// outputDelay is how long to wait for output after the command has ended: a process that
	// it left behind may keep the pipes open.
	outputDelay = time.Second
)

// A Background command runs beside sscli, under a guard. It has no standard input, no terminal and
// a process group of its own, so that Ctrl-C reaches only sscli. It ends when sscli ends, whatever
// ends sscli.
type Background struct {
	guardLink
	writing sync.Mutex // held while an order is sent
	done    chan struct{}
	stop    sync.Once

	// Of the end; valid when done is closed.
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
	for _, kv := range os.Environ() {
		s.Env = append(s.Env, []byte(kv))
	}
	b.write(order{Limit: &limit{far, far}})
	b.write(order{Start: &s})
	go func() {
		defer close(b.done)
		b.watch(name)
		output.finish()
	}()
	return b, nil
}

// begin starts the guard with the standard streams of the command.
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
		output.finish()
		return nil, err
	}
	return output, nil
}

// watch waits for the end of the guard, and kills the command if the guard died before it.
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
			break // the guard stays until its orders end
		}
	}
	if !ended {
		b.code = 128 + int(unix.SIGKILL)
		if pid != 0 {
			_ = unix.Kill(-pid, syscall.SIGKILL)
		}
		b.err = &StartError{name, CodeSetup, ErrGuardDied}
	}
	b.writing.Lock()
	b.write(order{Keep: true})
	_ = b.orders.Close()
	b.writing.Unlock()
	for range b.events {
	}
	_ = b.guard.Wait() // the exit status does not matter
}

// Done returns a channel that is closed when the command has ended and its output was written.
func (b *Background) Done() <-chan struct{} { return b.done }

// Wait waits for the end of the command and returns its exit status, which is 128+N if signal N
// ended it. The error is a *[StartError].
func (b *Background) Wait() (int, error) {
	<-b.done
	return b.code, b.err
}

// Stop ends the command and waits until it has ended.
func (b *Background) Stop() {
	b.stop.Do(func() {
		b.writing.Lock()
		b.write(order{Stop: true})
		b.writing.Unlock()
	})
	hung := time.AfterFunc(backgroundGrace+killTimeout+time.Second, func() { _ = b.guard.Process.Kill() })
	defer hung.Stop()
	<-b.done
}

// pipes carry the output of a command to writers.
type pipes struct {
	readers []*os.File
	copying sync.WaitGroup
}

// open returns a file whose content is written to w.
func (p *pipes) open(w io.Writer) (*os.File, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.readers = append(p.readers, from)
	p.copying.Go(func() { _, _ = io.Copy(w, from) }) // ends with the command, or with finish
	return to, nil
}

// finish waits until the rest of the output was written.
func (p *pipes) finish() {
	var errs []error
	for _, r := range p.readers {
		errs = append(errs, r.SetReadDeadline(time.Now().Add(outputDelay)))
	}
	if errors.Join(errs...) != nil {
		return // without deadlines on pipes, copying ends only with the last writer
	}
	p.copying.Wait()
	for _, r := range p.readers {
		_ = r.Close()
	}
}
