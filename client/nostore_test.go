package client

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// TestNoCopyAfterTheEnd: a write that ended with NoStoreError was not applied and is never applied, even if
// another copy of it was about to be sent.
func TestNoCopyAfterTheEnd(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		store.Intercept(on(wire.VerbSet, 1, emulator.Action{Refuse: 0x10}))
		ctx, cancel := context.WithTimeout(t.Context(), storeRetry/2)
		defer cancel()
		r, err := s.send(ctx, Set("k", []byte("v")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.wait(ctx); !isA[*NoStoreError](err) {
			t.Fatalf("the error is %v, want a *NoStoreError", err)
		}
		if err := r.sendCopy(t.Context(), s.current()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, found := store.Get("k"); found {
			t.Error("the write was applied")
		}
	})
}

// TestCopiesAtTheSameTime: with the race detector, a copy that is sent because no store had the request, and one that is
// sent because no reply came, do not disturb each other.
func TestCopiesAtTheSameTime(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		store.Intercept(on(wire.VerbSet, 1, emulator.Action{Drop: true}))
		r, err := s.send(t.Context(), Set("k", []byte("v")))
		if err != nil {
			t.Fatal(err)
		}
		var copies sync.WaitGroup
		for range 2 {
			copies.Go(func() {
				if err := r.sendCopy(t.Context(), s.current()); err != nil {
					t.Error(err)
				}
			})
		}
		copies.Wait()
		if _, err := r.wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
