package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/leaktest"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
	"github.com/sscli/sscli/internal/wire"
)

// started are the functions that start the goroutines of sessions and their connections.
var started = []string{"client.", "internal/mqtt."}

// TestMain checks after all tests that no session left a goroutine behind.
func TestMain(m *testing.M) { leaktest.Main(m, started...) }

// patient gives a session over a real network a time limit that no slow machine exceeds, unless it has one.
func patient(o client.Options) client.Options {
	if o.Timeout == 0 && o.Dial == nil {
		o.Timeout = time.Minute
	}
	return o
}

// dial opens a session with the store for the duration of the test.
func dial(t testing.TB, store *emulator.Server, o client.Options) *client.Session {
	t.Helper()
	o.Address = store.Addr().String()
	return dialAt(t, o)
}

func dialAt(t testing.TB, o client.Options) *client.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // o.Timeout may be short
	defer cancel()
	s, err := client.Dial(ctx, patient(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A machine that stands still has no time to send DISCONNECT.
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("close the session: %v", err)
		}
	})
	return s
}

// virtual runs a test with a store in memory and a session, in virtual time: no timeout of theirs takes real
// time, and no load makes one end early.
func virtual(t *testing.T, o client.Options, test func(t *testing.T, store *emulator.Server, s *client.Session)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := emulator.Start(t, emulator.Options{InProcess: true})
		o.Dial = store.Dial
		test(t, store, dial(t, store, o))
	})
}

// open starts a store and opens a session with it.
func open(t testing.TB) (*emulator.Server, *client.Session) {
	t.Helper()
	store := emulator.Start(t)
	return store, dial(t, store, client.Options{})
}

// onBoth runs a test with the emulator and with a store attached to Mosquitto, for which store is nil. The
// test must not steer the emulator, except where store is set.
func onBoth(t *testing.T, o emulator.Options, c client.Options, test func(t *testing.T, store *emulator.Server, s *client.Session)) {
	t.Run("emulator", func(t *testing.T) {
		t.Parallel()
		store := emulator.Start(t, o)
		test(t, store, dial(t, store, c))
	})
	t.Run("mosquitto", func(t *testing.T) {
		t.Parallel()
		c := c
		c.Address = mosquitto.Start(t, "set_tcp_nodelay true\nmax_queued_messages 0", mosquitto.Anonymous).Addresses[0]
		engine := emulator.AttachOptions{Address: c.Address, ClientID: client.NewClientID(), MaxKeys: o.MaxKeys, ScanPage: o.ScanPage, Policy: o.Policy, Variants: o.Variants, Skew: o.Skew}
		store, err := emulator.Attach(t.Context(), engine)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Errorf("close the store: %v", err)
			}
		})
		test(t, nil, dialAt(t, c))
	})
}

// put stores a value and returns its version.
func put(t testing.TB, s *client.Session, key, value string) wire.Version {
	t.Helper()
	return must(s.Set(t.Context(), key, []byte(value)))(t).Version
}

// value returns the value and the version of a key.
func value(t testing.TB, s *client.Session, key string) (string, wire.Version) {
	t.Helper()
	r := must(s.Get(t.Context(), key))(t)
	return string(r.Value), r.Version
}

// count returns the number in the reply to DEL or VDEL.
func count(r client.Result) int64 {
	switch r := r.(type) {
	case client.DelResult:
		if r.Deleted {
			return 1
		}
	case client.VDelResult:
		switch {
		case r.Deleted:
			return 1
		case r.Found:
			return -1
		}
	}
	return 0
}

// A recorder keeps the events that Options.Trace receives.
type recorder struct {
	mu     sync.Mutex
	events []mqtt.Event
}

func (r *recorder) record(e mqtt.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// all returns the events of one packet type that were sent, or those that were received.
func (r *recorder) all(packet string, sent bool) []mqtt.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []mqtt.Event
	for _, e := range r.events {
		if e.Type == packet && e.Sent == sent {
			found = append(found, e)
		}
	}
	return found
}

// times lists the packets, each with the time when it was sent (>) or received (<).
func (r *recorder) times() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, e := range r.events {
		direction := "<"
		if e.Sent {
			direction = ">"
		}
		fmt.Fprintf(&b, "%s %s %s %s; ", e.Time.Format("05.000"), direction, e.Type, e.Detail)
	}
	return b.String()
}

// requests returns the requests that were sent.
func (r *recorder) requests() []*mqtt.Message {
	var found []*mqtt.Message
	for _, e := range r.all("PUBLISH", true) {
		found = append(found, e.Message)
	}
	return found
}

// as is errors.AsType for an error that must be present.
func as[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %T %v, want %T", err, err, e)
	}
	return e
}

func not[E error](t testing.TB, err error) {
	t.Helper()
	if e, ok := errors.AsType[E](err); ok {
		t.Fatalf("the error is %T %v", e, e)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// always applies a to every request.
func always(a emulator.Action) func(emulator.Request) emulator.Action {
	return func(emulator.Request) emulator.Action { return a }
}

// once applies a to the first request only.
func once(a emulator.Action) func(emulator.Request) emulator.Action {
	var first sync.Once
	return func(emulator.Request) (now emulator.Action) {
		first.Do(func() { now = a })
		return now
	}
}
