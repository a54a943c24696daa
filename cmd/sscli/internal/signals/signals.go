// Package signals turns the signals that ask sscli to end into the end of a context.
//
//	ctx, asked := signals.Notify(context.Background(), "set")
//	err := work(ctx) // ends with an *Interrupted as the cause
//
// The first SIGINT, SIGTERM or SIGHUP ends the context, so that the work can be tidied
// up; the second one ends the process. Signals that sscli was started to ignore, as by
// nohup(1), stay ignored. A shell takes SIGINT for itself with [Signals.Interrupts].
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

// Reraise ends the process with the signal, so that the shell around it sees that.
func (e *Interrupted) Reraise() {
	signal.Reset(e.Signal)
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(e.Signal) == nil {
		select {} // until it arrives
	}
}

// grace is how long a get runs before it catches signals: longer than a get takes on a
// local broker, and too short for anybody to notice. Catching them takes threads, which
// cost a tenth of the time of such a get, and a get that is killed leaves nothing half
// done.
const grace = 10 * time.Millisecond

// Signals are the signals that ask sscli to end. A nil *Signals catches none.
type Signals struct {
	catch func() // catches the signals; at once if they are caught
	late  bool   // catch is called after grace

	mu          sync.Mutex
	interrupted func() // what an interrupt does instead; nil = it asks for the end too
}

// Notify returns a context that ends, with an *[Interrupted] as its cause, at the first
// signal that asks for the end. A second one ends the process. Signals are caught from
// now on, for a get from a few milliseconds later, and never for a command that does
// nothing that a signal could leave half done; the Signals are nil then. command is the first
// word of the command line; empty for a shell.
func Notify(parent context.Context, command string) (context.Context, *Signals) {
	switch command {
	case "version", "hlc", "help", "completion":
		return parent, nil
	}
	ctx, cancel := context.WithCancelCause(parent)
	s := &Signals{late: command == "get"}
	s.catch = sync.OnceFunc(func() { s.start(cancel) })
	if s.late {
		time.AfterFunc(grace, s.catch)
	} else {
		go s.catch() // while the command line is parsed
	}
	return ctx, s
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

// Await returns once signals are caught, or at once if there is time for that.
func (s *Signals) Await() {
	if s != nil && !s.late {
		s.catch()
	}
}

// Heed returns once signals are caught. What follows has something to tidy up.
func (s *Signals) Heed() {
	if s != nil {
		s.catch()
	}
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
