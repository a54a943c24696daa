// Package signals turns the signals that ask sscli to end into the end of a context.
//
//	ctx, s := signals.Notify(context.Background())
//	err := work(ctx) // ends with an *Interrupted as the cause
//
// The first SIGINT, SIGTERM or SIGHUP ends the context, so that the work can be tidied
// up; the second one ends the process. Signals that sscli was started to ignore, as by
// nohup(1), stay ignored. A shell takes SIGINT for itself with [Signals.Interrupts].
//
// Catching signals takes threads, a tenth of the time of a get on a local broker. So signals are
// caught a few milliseconds after the start, when such a get has ended, or as soon as there is
// something to tidy up: whoever is about to write, connect or start a process calls
// [Signals.Arm] first. Until then a signal just ends the process.
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

// Reraise ends the process with the signal, so that the shell around it sees that.
func (e *Interrupted) Reraise() {
	signal.Reset(e.Signal)
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(e.Signal) == nil {
		select {} // until it arrives
	}
}

// grace is how long signals may stay uncaught while nothing calls Arm: too short for anybody to
// notice.
const grace = 10 * time.Millisecond

// Signals are the signals that ask sscli to end. A nil *Signals catches none.
type Signals struct {
	arm func() // catches the signals, once

	mu          sync.Mutex
	interrupted func() // what an interrupt does instead; nil = it asks for the end too
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

// Arm returns once signals are caught.
func (s *Signals) Arm() {
	if s != nil {
		s.arm()
	}
}

// start catches signals, and has another goroutine wait for them.
func (s *Signals) start(cancel context.CancelCauseFunc) {
	came := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // as nohup(1) and the background jobs of a script have it
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

// Interrupts has SIGINT call f, from another goroutine, instead of asking for the end;
// nil undoes that.
func (s *Signals) Interrupts(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = f
}

// diverted reports whether a signal was a SIGINT that Interrupts has taken.
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
