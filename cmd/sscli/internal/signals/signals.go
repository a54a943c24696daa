// Package signals turns the signals that ask sscli to end into the end of a context.
//
//	ctx, asked, stop := signals.Notify(context.Background())
//	err := work(ctx) // ends with an *Interrupted as the cause
//	stop()
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

// IsHarmless reports whether a command line does nothing that a signal could leave half
// done.
func IsHarmless(args []string) bool {
	if len(args) == 0 {
		return false // a shell
	}
	switch args[0] {
	case "version", "hlc", "help", "completion":
		return true
	}
	return false
}

// Signals are the signals that ask sscli to end.
type Signals struct {
	Heeded <-chan struct{} // closed once they are caught

	mu          sync.Mutex
	interrupted func() // what an interrupt does instead; nil = it asks for the end too
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

// Notify returns a context that ends, with an *[Interrupted] as its cause, at the first
// signal that asks for the end. A second one ends the process. Catching signals takes a
// thread of its own, which starts while the command line is parsed; Heeded tells when.
func Notify(parent context.Context) (context.Context, *Signals, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	came := make(chan os.Signal, 1)
	ready := make(chan struct{})
	asked := &Signals{Heeded: ready}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if !signal.Ignored(s) { // as nohup(1) and the background jobs of a script have it
				signal.Notify(came, s)
			}
		}
		close(ready)
		for {
			select {
			case s := <-came:
				if asked.diverted(s) {
					continue
				}
				signal.Stop(came)
				cancel(&Interrupted{s.(syscall.Signal)})
			case <-done:
			}
			return
		}
	}()
	return ctx, asked, func() {
		signal.Stop(came)
		close(done)
		<-ended
		cancel(nil)
	}
}
