package bulkread

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

func dial(t *testing.T, store *emulator.Server) *client.Session {
	t.Helper()
	s, err := client.Dial(t.Context(), client.Options{Address: store.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// fill stores keys whose value is their name.
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

// all reads to the end and returns the keys that were found.
func all(t *testing.T, r *Reader) (found []string, err error) {
	t.Helper()
	defer r.Close()
	for {
		e, err := r.Next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return found, err
		}
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
	}
}

// TestOrder: entries come in the order of the keys, whatever order the answers have.
func TestOrder(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{ScanPage: 7, Authorize: func(_, _, key string, _ bool) bool { return key != "forbidden" }})
	want := fill(t, store, 300)
	var n atomic.Int32
	store.Intercept(func(emulator.Request) emulator.Action {
		return emulator.Action{PubackLast: n.Add(1)%3 == 0}
	})
	got, err := all(t, Read(t.Context(), dial(t, store), Join(Scan("key*"), List("forbidden", "missing", "key0007", "key0007")), Options{Timeout: time.Second}))
	if want = append(want, "forbidden: refused", "missing: missing", "key0007", "key0007"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
}

// TestBreaks: each key is read once, in order, over connections that break.
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
	r := Read(t.Context(), dial(t, store), Scan("*"), Options{App: a, Timeout: 20 * time.Second})
	got, err := all(t, r)
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
	// Requests that were in flight when the connection broke do not make another outage of it.
	if ends == 0 || ends > cuts.Load() {
		t.Errorf("%d outages ended, of %d breaks", ends, cuts.Load())
	}
}

// newApp returns an App, and what it prints on standard error.
func newApp(t *testing.T) (*app.App, *strings.Builder) {
	t.Helper()
	var messages strings.Builder
	faults, err := format.New(&messages, format.Options{Output: "raw"})
	if err != nil {
		t.Fatal(err)
	}
	return &app.App{Faults: faults}, &messages
}

// TestStaysAway: a connection that stays away ends the reading, with an error that is about it.
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
		_, err := all(t, Read(t.Context(), dial(t, store), Scan("*"), Options{App: a, Timeout: 50 * time.Millisecond}))
		if !isConnection(err) {
			t.Errorf("%s: %v, want an error about the connection", verb, err)
		}
	}
}

// TestEnds: an error of the keys comes after the keys before it, a context ends the reading, and
// Close does in the middle of it.
func TestEnds(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	keys := fill(t, store, 100)
	s := dial(t, store)
	bad := errors.New("bad")
	var source iter.Seq2[Entry, error] = func(yield func(Entry, error) bool) {
		if yield(Entry{Key: keys[0]}, nil) && yield(Entry{Key: keys[1]}, nil) {
			yield(Entry{}, bad)
		}
	}
	if got, err := all(t, Read(t.Context(), s, Of(source), Options{})); err != bad || !slices.Equal(got, keys[:2]) {
		t.Errorf("got %q, %v", got, err)
	}
	r := Read(t.Context(), s, List(keys...), Options{})
	if e, err := r.Next(); err != nil || e.Key != keys[0] {
		t.Errorf("got %q, %v", e.Key, err)
	}
	r.Close()
	store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: true} })
	r = Read(t.Context(), s, List(keys...), Options{})
	if r.Ready() {
		t.Error("ready without an answer")
	}
	r.Close()
	if _, err := r.Next(); err == nil || err == io.EOF {
		t.Errorf("after Close: %v", err)
	}
}
