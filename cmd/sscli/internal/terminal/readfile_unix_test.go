//go:build unix

package terminal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestReadFileInterrupted: the end of the context ends the read of a FIFO without a writer, or whose writer writes
// nothing. No goroutine is left behind.
func TestReadFileInterrupted(t *testing.T) {
	why := errors.New("enough")
	for _, writer := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := ReadFile(ctx, name)
			done <- err
		}()
		if writer {
			w, err := os.OpenFile(name, os.O_WRONLY, 0) // blocks until there is a reader
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
		}
		cancel(why)
		if err := <-done; !errors.Is(err, why) {
			t.Errorf("writer %t: %v", writer, err)
		}
		for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && runtime.GOOS == "linux"; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("writer %t: a goroutine still reads", writer)
			}
		}
	}
	name := filepath.Join(t.TempDir(), "file")
	if _, err := ReadFile(t.Context(), name); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(t.Context(), name); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestOpenInterrupted: the end of the context ends the wait for a writer of a FIFO.
func TestOpenInterrupted(t *testing.T) {
	why := errors.New("enough")
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if f, err := Open(ctx, name); f != nil || !errors.Is(err, why) {
		t.Errorf("%v, %v", f, err)
	}
	f, err := Open(t.Context(), os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
