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

// reraise ends the process with the signal.
func (e *Interrupted) Reraise() {
	signal.Reset(e.Signal)
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(e.Signal) == nil {
		select {} // until it arrives
	}
}

// isHarmless tells of a command line that does nothing which a signal could leave undone.
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

// signals are those that ask for the end.
type Signals struct {
	Heeded <-chan struct{} // closed when they are

	mu          sync.Mutex
	interrupted func() // what an interrupt does instead; nil = it asks for the end too
}

// interrupts lets an interrupt call f, from another goroutine, in place of asking
// for the end; nil takes that back.
func (s *Signals) Interrupts(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = f
}

// diverted tells whether a signal was an interrupt that somebody else handles.
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

// withSignals returns a context that ends, with an *interruptError as its cause,
// at the first signal that asks for the end. A second one ends the process. To heed
// signals takes a thread of its own, which is made while the command line is looked at.
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
