package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

func dial(t *testing.T, store *emulator.Server) *client.Session {
	t.Helper()
	s, err := client.Dial(t.Context(), client.Options{Address: store.Addr().String(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// fill stores n keys. The value of each key is its name.
func fill(t *testing.T, store *emulator.Server, n int) (keys []string) {
	t.Helper()
	for i := range n {
		key := fmt.Sprintf("key%04d", i)
		if _, err := store.Set(key, key); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

// all reads all entries and returns the keys that were found.
func all(t *testing.T, s *Store, keys Keys) (found []string, err error) {
	t.Helper()
	err = s.Each(t.Context(), keys, noFlush, func(e Entry) error {
		switch {
		case e.Err != nil:
			found = append(found, e.Key+": refused")
		case e.Found && string(e.Value) == e.Key:
			found = append(found, e.Key)
		case !e.Found:
			found = append(found, e.Key+": missing")
		default:
			t.Errorf("%s holds %q", e.Key, e.Value)
		}
		return nil
	})
	return found, err
}

func noFlush() error { return nil }

// list returns a source of the given keys.
func list(keys ...string) Keys {
	return func(_ context.Context, _ *Store, add func(Entry) error) error {
		for _, key := range keys {
			if err := add(Entry{Key: key}); err != nil {
				return err
			}
		}
		return nil
	}
}

// join concatenates the keys of several sources.
func join(sources ...Keys) Keys {
	return func(ctx context.Context, s *Store, add func(Entry) error) error {
		for _, keys := range sources {
			if err := keys(ctx, s, add); err != nil {
				return err
			}
		}
		return nil
	}
}

// newStore returns a Store that repeats reads, and reports outages to a; nil = to nobody.
func newStore(s *client.Session, retryFor time.Duration, a *app.App) *Store {
	store := Over(s)
	store.Retry.For, store.Retry.Repeats = retryFor, fault.IsLost
	if a != nil {
		store.Retry.Outage.Notify = a.Notify
	}
	return store
}

// TestOrder: entries come in the order of the keys, whatever the order of the replies.
func TestOrder(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{ScanPage: 7, Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != "forbidden" })})
	want := fill(t, store, 300)
	var n atomic.Int32
	store.Intercept(func(emulator.Request) emulator.Action {
		return emulator.Action{PubackLast: n.Add(1)%3 == 0}
	})
	got, err := all(t, newStore(dial(t, store), time.Second, nil), join(Scan("key*"), list("forbidden", "missing", "key0007", "key0007")))
	if want = append(want, "forbidden: refused", "missing: missing", "key0007", "key0007"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
}

// TestWindow checks how many keys are read, and how many entries with an old one listed, ahead of the entry that the
// caller handles.
func TestWindow(t *testing.T) {
	t.Parallel()
	const keys = 14
	for _, tt := range []struct {
		size, most int
		old        *Entry
	}{
		{1, keys, nil},
		{4 << 20, 3, nil},
		{17 << 20, 1, nil},
		{4 << 20, 3, &Entry{GetResult: client.GetResult{Value: make([]byte, listedValue+1)}}},
	} {
		store := emulator.Start(t, emulator.Options{})
		for i := range keys {
			if _, err := store.Set(fmt.Sprint(i), strings.Repeat("v", tt.size)); err != nil {
				t.Fatal(err)
			}
		}
		var asked, listed atomic.Int64
		store.Intercept(func(emulator.Request) emulator.Action {
			asked.Add(1)
			return emulator.Action{}
		})
		counted := func(ctx context.Context, s *Store, add func(Entry) error) error {
			for i := range keys {
				if err := add(Entry{Key: fmt.Sprint(i), Old: tt.old}); err != nil {
					return err
				}
				listed.Add(1)
			}
			return nil
		}
		handled := 0
		err := newStore(dial(t, store), time.Second, nil).Each(t.Context(), counted, noFlush, func(e Entry) error {
			handled++
			// The first window is sent before the size of any value is known.
			ahead := int(asked.Load()) - handled
			if tt.old != nil {
				ahead = max(ahead, int(listed.Load())-handled)
			}
			if handled > firstInFlight && ahead > tt.most {
				t.Errorf("values of %d bytes: %d keys ahead of number %d, want at most %d", tt.size, ahead, handled, tt.most)
			}
			return nil
		})
		if err != nil || handled != keys {
			t.Errorf("values of %d bytes: %d entries, %v", tt.size, handled, err)
		}
	}
}

// TestBreaks: each key is read once and in order, even if the connection breaks several times.
func TestBreaks(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{ScanPage: 10})
	want := fill(t, store, 400)
	var n, cuts atomic.Int32
	store.Intercept(func(emulator.Request) emulator.Action {
		switch n := n.Add(1); {
		case n%83 == 0:
			cuts.Add(1)
			return emulator.Action{Cut: true}
		case n%127 == 0:
			cuts.Add(1)
			return emulator.Action{CutAfter: true}
		}
		return emulator.Action{}
	})
	a, messages := newApp(t)
	got, err := all(t, newStore(dial(t, store), 20*time.Second, a), Scan("*"))
	troubles, ends := 0, int32(0)
	for line := range strings.Lines(messages.String()) {
		switch {
		case strings.Contains(line, "the broker answers again"):
			ends++
		case !strings.Contains(line, "connection lost"):
			t.Errorf("trouble: %s", line)
		default:
			troubles++
		}
	}
	if err != nil || !slices.Equal(got, want) || troubles == 0 {
		t.Errorf("%v after %d breaks: got %d keys, want %d", err, troubles, len(got), len(want))
	}
	// Requests that were in flight when the connection broke do not count as another outage.
	if ends == 0 || ends > cuts.Load() {
		t.Errorf("%d outages ended, of %d breaks", ends, cuts.Load())
	}
}

// newApp returns an App and its standard error.
func newApp(t *testing.T) (*app.App, *strings.Builder) {
	t.Helper()
	var messages strings.Builder
	faults, err := format.New(&messages, format.Options{Output: "raw"})
	if err != nil {
		t.Fatal(err)
	}
	return &app.App{Faults: faults}, &messages
}

// TestStaysAway: if the connection stays lost, reading ends with an error about the connection.
func TestStaysAway(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{wire.VerbGet, wire.VerbScan} {
		store := emulator.Start(t, emulator.Options{ScanPage: 10})
		fill(t, store, 100)
		var n atomic.Int32
		store.Intercept(func(r emulator.Request) emulator.Action {
			if r.Verb() == verb && n.Add(1) > 5 {
				store.RefuseConnect(func(string, string) byte { return 0x88 })
				return emulator.Action{Cut: true}
			}
			return emulator.Action{}
		})
		a, _ := newApp(t)
		_, err := all(t, newStore(dial(t, store), 50*time.Millisecond, a), Scan("*"))
		if !fault.IsConnection(err) {
			t.Errorf("%s: %v, want an error about the connection", verb, err)
		}
	}
}

// TestLostAnswers: a read is repeated if its reply was lost, and standard error says for how long. If every reply for a
// key is lost, reading ends after that time.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const retryFor = time.Minute
		store := emulator.Start(t, emulator.Options{ScanPage: 10, InProcess: true})
		want := fill(t, store, 100)
		s, err := client.Dial(t.Context(), client.Options{Address: "store", Dial: store.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var n atomic.Int32
		store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{DropReply: n.Add(1)%23 == 0} })
		a, messages := newApp(t)
		got, err := all(t, newStore(s, 20*time.Second, a), Scan("*"))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: got %d keys, want %d", err, len(got), len(want))
		}
		if text := messages.String(); !strings.Contains(text, "timed out; asking again for up to 20s") || !strings.Contains(text, "the broker answers again") {
			t.Errorf("printed %q", text)
		}
		store.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{DropReply: r.Key() == want[7]} })
		began := time.Now()
		got, err = all(t, newStore(s, retryFor, a), Scan("*"))
		if took := time.Since(began); !fault.IsTimeout(err) || len(got) != 7 || took < retryFor || took > 2*retryFor {
			t.Errorf("%v after %v: got %d keys, want a timeout after %v and 7 keys", err, took, len(got), retryFor)
		}
	})
}

// TestEnds: an error of the key source comes after the keys before it. An error of the caller, an error of flush, or
// the end of the context ends the reading.
func TestEnds(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	keys := fill(t, server, 100)
	s := newStore(dial(t, server), time.Second, nil)
	bad := errors.New("bad")
	source := join(list(keys[:2]...), func(context.Context, *Store, func(Entry) error) error { return bad })
	if got, err := all(t, s, source); err != bad || !slices.Equal(got, keys[:2]) {
		t.Errorf("got %q, %v", got, err)
	}
	n := 0
	err := s.Each(t.Context(), list(keys...), noFlush, func(Entry) error {
		n++
		return bad
	})
	if err != bad || n != 1 {
		t.Errorf("%d entries, %v", n, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	server.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: true} })
	unread := func(e Entry) error {
		t.Errorf("%s was read without a reply", e.Key)
		return nil
	}
	if err := s.Each(ctx, list(keys...), func() error { return bad }, unread); err != bad {
		t.Errorf("flush: %v", err)
	}
	err = s.Each(ctx, list(keys...), func() error {
		cancel(bad)
		return nil
	}, unread)
	if err != bad {
		t.Errorf("after the end of the context: %v", err)
	}
}
