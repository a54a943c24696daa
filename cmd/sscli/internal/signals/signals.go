// Package signals cancels a context when a signal asks sscli to end.
//
//	ctx, s := signals.Notify(context.Background())
//	err := work(ctx) // ctx ends with an *Interrupted as its cause
//
// The first SIGINT, SIGTERM or SIGHUP cancels the context, so that the work can be cleaned
// up. The second one ends the process, except a second SIGHUP. Signals that were ignored when sscli started, as under
// nohup(1), stay ignored. sscli's shell handles SIGINT itself with [Signals.Interrupts].
//
// Catching signals starts threads, which takes a tenth of the time of a get on a local broker.
// Therefore signals are caught only after 10 ms, when such a get has already ended. Code must call
// [Signals.Arm] before work that needs a cleanup, such as a write. Until signals are caught, a
// signal just ends the process.
package signals

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// An Interrupted is the error for a signal that asked sscli to end.
type Interrupted struct {
	Signal syscall.Signal
}

func (e *Interrupted) Error() string {
	switch e.Signal {
	case syscall.SIGTERM:
		return "interrupted by SIGTERM"
	case syscall.SIGHUP:
		return "interrupted by SIGHUP"
	}
	return "interrupted"
}

// ExitCode returns the code with which a shell reports the signal: 128+N for signal N.
func (e *Interrupted) ExitCode() int { return 128 + int(e.Signal) }

// Reraise ends the process with the signal, so that the calling shell sees that a signal ended the
// process. It returns in the first process of a container, for which signals have no default action; the
// caller must then exit with ExitCode.
func (e *Interrupted) Reraise() {
	if os.Getpid() == 1 {
		return
	}
	signal.Reset(e.Signal)
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(e.Signal) == nil {
		select {} // until the signal ends the process
	}
}

// grace is the delay after Notify before signals are caught, unless Arm is called first.
const grace = 10 * time.Millisecond

// Signals catches the signals that ask sscli to end. A nil *Signals catches none.
type Signals struct {
	arm func() // starts to catch the signals, only once

	mu          sync.Mutex
	interrupted func()      // called for SIGINT; nil = SIGINT ends the context
	hangup      func() bool // called for SIGHUP; nil or false = SIGHUP ends the context
}

// Notify returns a context that ends at the first signal that is caught, with an *[Interrupted] as
// its cause. A second signal ends the process, except a second SIGHUP.
func Notify(parent context.Context) (context.Context, *Signals) {
	ctx, cancel := context.WithCancelCause(parent)
	s := &Signals{}
	s.arm = sync.OnceFunc(func() { s.start(cancel) })
	time.AfterFunc(grace, s.arm)
	return ctx, s
}

// Arm catches signals from now on, if they are not caught yet.
func (s *Signals) Arm() {
	if s != nil {
		s.arm()
	}
}

// start catches signals, and starts a goroutine that waits for them.
func (s *Signals) start(cancel context.CancelCauseFunc) {
	came := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // as under nohup(1), or in a background job of a script
			signal.Notify(came, sig)
		}
	}
	go func() {
		for sig := range came {
			s.mu.Lock()
			f, hangup := s.interrupted, s.hangup
			s.mu.Unlock()
			if hangup != nil && sig == os.Signal(syscall.SIGHUP) && hangup() {
				continue
			}
			if f != nil && sig == os.Signal(syscall.SIGINT) {
				f()
				continue
			}
			// A terminal that closes sends SIGHUP more than once, by the kernel and by its shell. The second one must
			// not end the cleanup, such as the release of a lock. SIGTERM, SIGINT and SIGKILL still do.
			if sig == os.Signal(syscall.SIGHUP) {
				signal.Notify(make(chan os.Signal, 1), sig) // caught and discarded
			}
			signal.Stop(came)
			cancel(&Interrupted{sig.(syscall.Signal)})
			return
		}
	}()
}

// Interrupts makes SIGINT call f, in another goroutine, instead of ending the context. If f is nil,
// SIGINT ends the context again.
func (s *Signals) Interrupts(f func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = f
}

// Hangups makes SIGHUP call f, in another goroutine. If f returns false, SIGHUP ends the context as usual.
func (s *Signals) Hangups(f func() bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangup = f
}
