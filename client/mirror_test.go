package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/emulator"
)

// awaitMirror waits until the mirror has these keys and values, and is whole or not.
func awaitMirror(t *testing.T, m *Mirror, whole bool, want map[string]string) {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		changed := m.Changed()
		got := make(map[string]string)
		for key, r := range m.All() {
			got[key] = string(r.Value)
		}
		if maps.Equal(got, want) && (m.Err() == nil) == whole {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("got %q, %v, want %q, whole %t", got, m.Err(), want, whole)
		}
	}
}

// mirrored calls test with a store, in virtual time, whose keys are mirrored.
func mirrored(t *testing.T, o emulator.Options, keys map[string]string, test func(store *emulator.Server, m *Mirror)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.InProcess = true
		store := emulator.Start(t, o)
		for key, value := range keys {
			if _, err := store.Set(key, value); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Dial(t.Context(), Options{Dial: store.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		m, err := s.Mirror(t.Context(), "k*")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		test(store, m)
	})
}

func TestMirror(t *testing.T) {
	t.Parallel()
	mirrored(t, emulator.Options{}, map[string]string{"k1": "a", "k2": "b", "other": "c"}, func(store *emulator.Server, m *Mirror) {
		awaitMirror(t, m, true, map[string]string{"k1": "a", "k2": "b"})
		store.Set("k1", "A")
		store.Delete("k2")
		store.Set("k3", "new")
		awaitMirror(t, m, true, map[string]string{"k1": "A", "k3": "new"})
		if r := m.Get("k1"); !r.Found || string(r.Value) != "A" || r.Version.IsZero() || m.Get("k2").Found {
			t.Errorf("k1 is %+v, k2 %+v", r, m.Get("k2"))
		}
		m.Get("k1").Value[0] = 'x'
		awaitMirror(t, m, true, map[string]string{"k1": "A", "k3": "new"})

		// A connection that is refused for a while, and a store that has forgotten a key.
		store.RefuseConnect(func(string, string) byte { return 0x88 })
		store.DropAll()
		awaitMirror(t, m, false, map[string]string{"k1": "A", "k3": "new"})
		store.Delete("k3")
		store.RefuseConnect(nil)
		awaitMirror(t, m, true, map[string]string{"k1": "A"})
		if err := store.Restart(false); err != nil {
			t.Fatal(err)
		}
		awaitMirror(t, m, true, nil)
		store.Set("k4", "d")
		awaitMirror(t, m, true, map[string]string{"k4": "d"})

		// A login that is refused for longer.
		store.RefuseConnect(func(string, string) byte { return 0x86 })
		store.DropAll()
		awaitMirror(t, m, false, map[string]string{"k4": "d"})
		m.Close()
		if err := m.Err(); !errors.Is(err, ErrClosed) || !m.Get("k4").Found {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestMirrorRefused: a key that the store refuses is not in the mirror, which says so, until it may be read again.
func TestMirrorRefused(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool
	policy := emulator.PolicyFunc(func(a emulator.Access) bool { return !refused.Load() || a.On != "k2" })
	mirrored(t, emulator.Options{Policy: policy}, map[string]string{"k1": "a", "k2": "b"}, func(store *emulator.Server, m *Mirror) {
		refused.Store(true)
		store.DropAll() // each key is registered and read again
		awaitMirror(t, m, false, map[string]string{"k1": "a"})
		synctest.Wait()
		if e, ok := errors.AsType[*WatchError](m.Err()); !ok || e.Key != "k2" || !errors.Is(e, ErrNotAuthorized) {
			t.Errorf("got %v", m.Err())
		}
		refused.Store(false)
		awaitMirror(t, m, true, map[string]string{"k1": "a", "k2": "b"})
	})
}

// TestMirrorOverflow: more changes than the mirror takes cost no key.
func TestMirrorOverflow(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	if _, err := store.Set("k", "first"); err != nil {
		t.Fatal(err)
	}
	s := watchSession(t, Options{Address: store.Addr().String()})
	m, err := s.Mirror(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.mu.Lock() // the mirror takes no event
	for i := range DefaultBuffer + 1000 {
		if _, err := store.Set("k", fmt.Sprint(i)); err != nil {
			t.Error(err)
			break
		}
	}
	m.mu.Unlock()
	awaitMirror(t, m, true, map[string]string{"k": fmt.Sprint(DefaultBuffer + 999)})
}

// TestMirrorBegins: Mirror returns an error if its context ends first, or if the broker has no SCAN.
func TestMirrorBegins(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Variants: emulator.Variants{NoScan: true}})
	s := watchSession(t, Options{Address: store.Addr().String()})
	if _, err := s.Mirror(t.Context(), "k*"); !isA[*ScanError](err) {
		t.Errorf("no SCAN: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Mirror(ctx, "k*"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
