//go:build unix

package signals

import (
	"context"
	"errors"
	"syscall"
	"testing"
)

func raise(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
}

// TestNotify: once signals are caught, the first one ends the context and is its cause.
func TestNotify(t *testing.T) {
	for _, test := range []struct {
		command string
		caught  func(*Signals)
	}{
		{"", (*Signals).Await},
		{"set", (*Signals).Await},
		{"get", (*Signals).Heed},
	} {
		ctx, s := Notify(t.Context(), test.command)
		test.caught(s)
		raise(t, syscall.SIGTERM)
		<-ctx.Done()
		e, ok := errors.AsType[*Interrupted](context.Cause(ctx))
		if !ok || e.Signal != syscall.SIGTERM {
			t.Errorf("%q: ended by %v", test.command, context.Cause(ctx))
		}
	}
}

// TestHarmless: what leaves nothing half done catches no signal, and neither does a get
// that has just begun.
func TestHarmless(t *testing.T) {
	for _, command := range []string{"version", "hlc", "help", "completion"} {
		if ctx, s := Notify(t.Context(), command); s != nil || ctx != t.Context() {
			t.Errorf("%s catches signals", command)
		}
	}
	_, s := Notify(t.Context(), "get")
	s.Await() // does not wait for the signals of a get
	(*Signals)(nil).Await()
	(*Signals)(nil).Heed()
}

// TestInterrupts: a shell takes SIGINT for itself, and no other signal.
func TestInterrupts(t *testing.T) {
	ctx, s := Notify(t.Context(), "")
	s.Await()
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
