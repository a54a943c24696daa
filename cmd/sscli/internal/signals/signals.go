// Package signals cancels a context when a signal asks sscli to end.
//
//	ctx, s := signals.Notify(context.Background())
//	err := work(ctx) // ends with an *Interrupted as the cause
//
// The first SIGINT, SIGTERM or SIGHUP cancels the context, so that the work can be tidied
// up; the second one ends the process. Signals that were ignored when sscli started, as under
// nohup(1), stay ignored. A shell handles SIGINT itself with [Signals.Interrupts].
//
// Catching signals starts threads, which takes a tenth of the time of a get on a local broker. So
// signals are caught only after a few milliseconds, when such a get has ended. Code that is about
// to do something that must be tidied up, such as a write, calls [Signals.Arm] first. Until
// signals are caught, a signal just ends the process.
package signals

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// An Interrupted is the signal that asked sscli to end, as an error.
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

// ExitCode is the code with which a shell reports the signal.
func (e *Interrupted) ExitCode() int { return 128 + int(e.Signal) }

// Reraise ends the process with the signal, so that the calling shell sees why it ended.
func (e *Interrupted) Reraise() {
	signal.Reset(e.Signal)
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(e.Signal) == nil {
		select {} // until it arrives
	}
}

// grace is the time after the start at which signals are caught if nothing calls Arm.
const grace = 10 * time.Millisecond

// Signals are the signals that ask sscli to end. A nil *Signals catches none.
type Signals struct {
	arm func() // catches the signals, once

	mu          sync.Mutex
	interrupted func() // called for SIGINT; nil = SIGINT ends the context
}

// Notify returns a context that ends, with an *[Interrupted] as its cause, at the first
// signal that is caught. A second one ends the process.
func Notify(parent context.Context) (context.Context, *Signals) {
	ctx, cancel := context.WithCancelCause(parent)
	s := &Signals{}
	s.arm = sync.OnceFunc(func() { s.start(cancel) })
	time.AfterFunc(grace, s.arm)
	return ctx, s
}

// Arm makes sure that signals are caught.
func (s *Signals) Arm() {
	if s != nil {
		s.arm()
	}
}

// start catches signals, and has another goroutine wait for them.
func (s *Signals) start(cancel context.CancelCauseFunc) {
	came := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // nohup(1) and background jobs of a script ignore some
			signal.Notify(came, sig)
		}
	}
	go func() {
		for sig := range came {
			if s.diverted(sig) {
				continue
			}
			signal.Stop(came)
			cancel(&Interrupted{sig.(syscall.Signal)})
			return
		}
	}()
}

// Interrupts makes SIGINT call f, from another goroutine, instead of ending the context. With
// nil, SIGINT ends the context again.
func (s *Signals) Interrupts(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = f
}

// diverted calls the function of Interrupts if the signal is SIGINT, and reports whether it did.
func (s *Signals) diverted(sig os.Signal) bool {
	s.mu.Lock()
	f := s.interrupted
	s.mu.Unlock()
	if f == nil || sig != os.Signal(syscall.SIGINT) {
		return false
	}
	f()
	return true
}
