//go:build unix

package signals

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// TestMain catches signals that are ignored, for example under nohup(1), because Notify leaves them ignored.
func TestMain(m *testing.M) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Exit(m.Run())
}

func raise(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
}

// TestNotify: once signals are caught, the first one ends the context and is its cause.
func TestNotify(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ctx, s := Notify(t.Context())
		s.Arm()
		raise(t, sig)
		<-ctx.Done()
		e, ok := errors.AsType[*Interrupted](context.Cause(ctx))
		if !ok || e.Signal != sig || e.ExitCode() != 128+int(sig) {
			t.Errorf("%v: ended by %v", sig, context.Cause(ctx))
		}
	}
}

// TestSecondHangup: a terminal that closes sends SIGHUP more than once, which does not end the cleanup.
func TestSecondHangup(t *testing.T) {
	seen := make(chan os.Signal, 1)
	signal.Notify(seen, syscall.SIGHUP)
	defer signal.Stop(seen)
	ctx, s := Notify(t.Context())
	s.Arm()
	raise(t, syscall.SIGHUP)
	<-ctx.Done()
	<-seen
	for range 10 {
		raise(t, syscall.SIGHUP)
		<-seen // before a later test, which would take it for its own
	}
}

// TestInterrupts: a shell handles SIGINT itself, but no other signal.
func TestInterrupts(t *testing.T) {
	ctx, s := Notify(t.Context())
	s.Arm()
	taken := make(chan struct{}, 1)
	s.Interrupts(func() { taken <- struct{}{} })
	raise(t, syscall.SIGINT)
	<-taken
	if ctx.Err() != nil {
		t.Error("the interrupt ended the context too")
	}
	s.Interrupts(nil)
	raise(t, syscall.SIGINT)
	<-ctx.Done()
}

// TestNil: a nil *Signals, as in a test of a command, catches nothing.
func TestNil(t *testing.T) {
	var s *Signals
	s.Arm()
	s.Interrupts(func() { t.Error("called") })
}
