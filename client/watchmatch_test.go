package client

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/wire"
)

// put sets a key of a store.
func put(t *testing.T, store *emulator.Server, key, value string) {
	t.Helper()
	if _, err := store.Set(key, value); err != nil {
		t.Fatal(err)
	}
}

// often is a short WatchOptions.Rescan, because tests wait for its results.
const often = 5 * time.Millisecond

// TestMatch: keys that match at the start, and keys that appear later, are watched. A `found` event says
// since when the key may have existed.
func TestMatch(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	put(t, store, "job/1", "a")
	put(t, store, "other", "x")
	s := watchSession(t, Options{Address: store.Addr().String()})
	w := startWatch(t, s, WatchOptions{Match: "job/*", Rescan: often}, "named")
	first := wantEvents(t, w, `initial job/1 "a"`, "initial named")
	if !first[0].From.IsZero() || first[0].Continuity != "" {
		t.Errorf("initial: %+v", first[0])
	}
	before := time.Now()
	put(t, store, "job/2", "b")
	found := wantEvents(t, w, `found job/2 "b" unknown`)[0]
	if found.From.After(found.To) || found.To.Before(before) || found.To.Sub(found.From) > time.Minute || !found.To.Equal(found.Time) || found.Version.IsZero() {
		t.Errorf("found: %+v", found)
	}
	// From now on it is watched like any other key, even after its deletion.
	put(t, store, "job/2", "c")
	put(t, store, "other", "y")
	put(t, store, "named", "n")
	wantEvents(t, w, `set job/2 "c"`, `set named "n"`)
	if _, err := s.Del(t.Context(), "job/2"); err != nil {
		t.Fatal(err)
	}
	put(t, store, "job/2", "d")
	wantEvents(t, w, "delete job/2", `set job/2 "d"`)
	if n := store.State().Registrations; n != 3 {
		t.Errorf("%d registrations, want 3", n)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if n := store.State().Registrations; n != 0 {
		t.Errorf("%d registrations after Close", n)
	}
}

// TestMatchNothing: a watch may begin without keys, and an outage does not end it.
func TestMatchNothing(t *testing.T) {
	t.Parallel()
	// A search that an outage cuts off is reported as `unaudited`.
	want := func(w *Watch, want ...string) {
		t.Helper()
		for _, text := range want {
			e := next(t, w)
			for e.Kind == EventUnaudited {
				e = next(t, w)
			}
			if told(e) != text {
				t.Fatalf("event %s, want %s", told(e), text)
			}
		}
	}
	store := emulator.Start(t)
	s := watchSession(t, Options{Address: store.Addr().String()})
	w := startWatch(t, s, WatchOptions{Match: "*", Rescan: often})
	store.DropAll()
	want(w, "down", "up")
	put(t, store, "a", "1")
	want(w, `found a "1" unknown`)
	// A key created while the store is away is found later; the known keys are compared.
	store.RefuseConnect(func(string, string) byte { return 0x88 })
	store.DropAll()
	want(w, "down")
	put(t, store, "b", "2")
	store.RefuseConnect(nil)
	want(w, `resync a "1" proven`, "up", `found b "2" unknown`)
	store.DropAll()
	want(w, "down", `resync a "1" proven`, `resync b "2" proven`, "up")
	// Two watches of one session do not affect each other.
	other := startWatch(t, s, WatchOptions{Match: "b*", Rescan: often})
	want(other, `initial b "2"`)
	put(t, store, "bb", "3")
	want(other, `found bb "3" unknown`)
	want(w, `found bb "3" unknown`)
}

// TestMatchTrouble: a failed rescan is an event, and so is a key that cannot be watched; the other keys are
// watched.
func TestMatchTrouble(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	long, longer := "l"+strings.Repeat("o", 33_000)+"ng", "l"+strings.Repeat("o", 33_000)+"nger"
	put(t, store, "a", "1")
	put(t, store, long, "1")
	var refuse atomic.Bool
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() == wire.VerbScan && refuse.CompareAndSwap(true, false) {
			return emulator.Action{Refuse: 0x87}
		}
		return emulator.Action{}
	})
	s := watchSession(t, Options{Address: store.Addr().String()})
	w := startWatch(t, s, WatchOptions{Match: "*", Rescan: often})
	events := wantEvents(t, w, "error "+long, `initial a "1"`)
	if !isA[*InvalidError](events[0].Err) {
		t.Errorf("%v", events[0].Err)
	}
	refuse.Store(true)
	events = wantEvents(t, w, "unaudited")
	if !isA[*ScanError](events[0].Err) || !strings.Contains(events[0].Err.Error(), `scan "*": `) {
		t.Errorf("%v", events[0].Err)
	}
	put(t, store, longer, "1")
	wantEvents(t, w, "error "+longer)
	put(t, store, "b", "2")
	wantEvents(t, w, `found b "2" unknown`)
}

// TestMatchGone: a key that was listed but is gone when it is read counts as created and deleted.
func TestMatchGone(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var list atomic.Bool
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() != wire.VerbScan || !list.CompareAndSwap(true, false) {
			return emulator.Action{}
		}
		return emulator.Action{Rewrite: func(a *emulator.Answer) { a.Payload = []byte("*1\r\n*1\r\n$4\r\ngone\r\n") }}
	})
	s := watchSession(t, Options{Address: store.Addr().String()})
	w := startWatch(t, s, WatchOptions{Match: "*", Rescan: often})
	list.Store(true)
	wantEvents(t, w, "found gone unknown")
	put(t, store, "gone", "1")
	wantEvents(t, w, `set gone "1"`)
}

func TestMatchWithoutScan(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Variants: emulator.Variants{NoScan: true}})
	s := watchSession(t, Options{Address: store.Addr().String()})
	_, err := s.Watch(t.Context(), []string{"a"}, WatchOptions{Match: "*"})
	if refused, ok := errors.AsType[*StoreError](err); !ok || refused.Kind() != wire.ErrorUnknownCommand || !isA[*ScanError](err) {
		t.Errorf("%v", err)
	}
	if n := store.State().Registrations; n != 0 {
		t.Errorf("%d registrations", n)
	}
	if _, err := s.Watch(t.Context(), nil); !isA[*InvalidError](err) {
		t.Errorf("no key: %v", err)
	}
}

// TestMatchForgets: a key of the pattern that has been missing for a while, also in a rescan, is no longer
// watched. Named keys and existing keys stay; a key that comes back is found.
func TestMatchForgets(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	for _, key := range []string{"job/1", "job/2", "job/named"} {
		put(t, store, key, "a")
	}
	s := watchSession(t, Options{Address: store.Addr().String()})
	w := startWatch(t, s, WatchOptions{Match: "job/*", Rescan: often, forgetAfter: time.Millisecond}, "job/named")
	wantEvents(t, w, `initial job/1 "a"`, `initial job/2 "a"`, `initial job/named "a"`)
	for _, key := range []string{"job/1", "job/named"} {
		if _, err := s.Del(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	wantEvents(t, w, "delete job/1", "delete job/named")
	await.State(t, store, func(st emulator.State) bool { return st.Registrations == 2 })
	put(t, store, "job/1", "b")
	wantEvents(t, w, `found job/1 "b" unknown`)
	put(t, store, "job/named", "b")
	wantEvents(t, w, `set job/named "b"`)
}

// TestMatchInTime: a new key is found within 5 s, and a key that is gone is let go of by the first search 10 s later.
func TestMatchInTime(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		w := startWatch(t, s, WatchOptions{Match: "k*"})
		time.Sleep(time.Millisecond)
		began := time.Now()
		put(t, store.Server, "k", "1")
		wantEvents(t, w, `found k "1" unknown`)
		if took := time.Since(began); took < 4900*time.Millisecond || took > 5*time.Second {
			t.Errorf("found after %v", took)
		}
		store.Delete("k")
		gone := time.Now()
		wantEvents(t, w, "delete k")
		await.State(t, store.Server, func(st emulator.State) bool { return st.Registrations == 0 })
		if took := time.Since(gone); took < 10*time.Second || took > 15*time.Second+time.Millisecond {
			t.Errorf("let go of after %v", took)
		}
	})
}

// TestManyGone: a watch does not keep many keys that are gone until they have been missing for forgetAfter.
func TestManyGone(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	s := watchSession(t, Options{Address: store.Addr().String()})
	w := startWatch(t, s, WatchOptions{Match: "job/*", Rescan: often, forgetAfter: time.Hour, Buffer: 4 * manyKeys})
	drain := func(n int, kind EventKind) {
		for n > 0 {
			if e := next(t, w); e.Kind == kind {
				n--
			}
		}
	}
	for i := range manyKeys {
		put(t, store, fmt.Sprint("job/", i), "a")
	}
	drain(manyKeys, EventFound)
	for i := range manyKeys {
		store.Delete(fmt.Sprint("job/", i))
	}
	drain(manyKeys, EventDelete)
	put(t, store, "job/one more", "a")
	drain(1, EventFound)
	if n := store.State().Registrations; n != manyKeys+1 {
		t.Errorf("%d registrations after %d keys were deleted and a search, want %d", n, manyKeys, manyKeys+1)
	}
	store.Delete("job/one more")
	drain(1, EventDelete)
	// The search that lets go of them may have begun before the last one was deleted.
	await.State(t, store, func(st emulator.State) bool { return st.Registrations <= 1 })
}

// TestMatchBreak: after a break, a watch does not report the pattern's keys that were missing before and
// still are.
func TestMatchBreak(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	put(t, store, "job/1", "a")
	put(t, store, "job/2", "a")
	s := watchSession(t, Options{Address: store.Addr().String()})
	w := startWatch(t, s, WatchOptions{Match: "job/*", Rescan: time.Hour}, "named")
	wantEvents(t, w, `initial job/1 "a"`, `initial job/2 "a"`, `initial named`)
	if _, err := s.Del(t.Context(), "job/1"); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, w, "delete job/1")
	store.DropAll()
	wantEvents(t, w, "down", `resync job/2 "a" proven`, "gap named unknown", "resync named unknown", "up")
	put(t, store, "job/1", "b")
	wantEvents(t, w, `set job/1 "b"`)
}

// TestManyRefused: the cost of a key whose registration is refused does not grow with the number of keys.
func TestManyRefused(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.ClientID == "" || !strings.HasPrefix(a.On, "no/") })})
	keys := []string{"yes"}
	const n = 20_000
	for i := range n {
		keys = append(keys, fmt.Sprint("no/", i))
	}
	s := watchSession(t, Options{Address: store.Addr().String()})
	w := startWatch(t, s, WatchOptions{Match: "none", Rescan: time.Hour, Buffer: 2 * n}, keys...)
	refused := 0
	for refused < n {
		if e := next(t, w); e.Kind == EventError {
			refused++
		}
	}
	if len(w.keys) != 1 {
		t.Errorf("%d keys are watched, want 1", len(w.keys))
	}
}
