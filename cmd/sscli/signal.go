package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// An interruptError is a signal that asked sscli to end.
type interruptError struct {
	signal syscall.Signal
}

func (e *interruptError) Error() string { return "interrupted (" + e.signal.String() + ")" }

// reraise ends the process with the signal.
func (e *interruptError) reraise() {
	signal.Reset(e.signal)
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(e.signal) == nil {
		select {} // until it arrives
	}
}

// isHarmless tells of a command line that does nothing which a signal could leave undone.
func isHarmless(args []string) bool {
	if len(args) == 0 {
		return true // help, or a usage error
	}
	switch args[0] {
	case "version", "hlc", "help", "completion":
		return true
	}
	return false
}

// withSignals returns a context that ends, with an *interruptError as its cause,
// at the first signal that asks for the end. A second one ends the process. Signals are
// heeded when heeded is closed: that takes a thread of its own, which is made while the
// command line is looked at.
func withSignals(parent context.Context) (ctx context.Context, stop context.CancelFunc, heeded <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	ready := make(chan struct{})
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if !signal.Ignored(s) { // as nohup(1) and the background jobs of a script have it
				signal.Notify(signals, s)
			}
		}
		close(ready)
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&interruptError{s.(syscall.Signal)})
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-ended
		cancel(nil)
	}, ready
}
