package client_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// TestRequestProperties checks the properties that protocol.md 1.4 and 1.5 require.
func TestRequestProperties(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var seen recorder
	o := client.Options{ClientID: "tester", Timeout: 7 * time.Hour, Trace: seen.record}
	s := dial(t, store, o)
	fence := must(wire.ParseVersion("1696374425000:1:StateStore"))(t)
	always := []string{"__ts", "__srcId", "__protVer", "$partition"}
	for _, test := range []struct {
		c    client.Command
		more []string
	}{
		{client.Get("k"), nil},
		{client.Set("k", ""), nil},
		{client.Set("k", "", client.SetOptions{Persist: true}), []string{"aio-persistence"}},
		{client.Set("k", "", client.SetOptions{WriteOptions: client.WriteOptions{Fence: fence}}), []string{"__ft"}},
		{client.Set("k", "", client.SetOptions{WriteOptions: client.WriteOptions{Fence: fence}, Persist: true}), []string{"__ft", "aio-persistence"}},
		{client.VDel("k", []byte("x"), client.WriteOptions{Fence: fence}), []string{"__ft"}},
		{client.Del("k", client.WriteOptions{Fence: fence}), []string{"__ft"}},
		{client.Del("k"), nil},
		{client.VDel("k", ""), nil},
		{client.Call([]string{"KEYNOTIFY", "k"}), nil},
	} {
		must(s.Do(t.Context(), test.c))(t)
		sent := seen.requests()
		m := sent[len(sent)-1]
		var names []string
		for _, p := range m.User {
			names = append(names, p.Name)
			want := ""
			switch p.Name {
			case "__srcId", "$partition":
				want = "tester"
			case "__protVer":
				want = "1.0"
			case "__ft":
				want = "1696374425000:1:StateStore"
			case "aio-persistence":
				want = "true"
			case "__ts":
				ts := must(wire.ParseVersion(p.Value))(t)
				if age := time.Since(ts.Time()); age < -time.Second || age > time.Minute {
					t.Errorf("%s: __ts is %s", test.c.Verb(), p.Value)
				}
				want = p.Value
			}
			if p.Value != want {
				t.Errorf("%s: %s is %q, want %q", test.c.Verb(), p.Name, p.Value, want)
			}
		}
		if got, want := strings.Join(names, " "), strings.Join(append(always[:4:4], test.more...), " "); got != want {
			t.Errorf("%s: got %s, want %s", test.c.Verb(), got, want)
		}
		if m.Topic != "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke" ||
			m.ResponseTopic != "clients/tester/services/statestore/_any_/command/invoke/response" ||
			m.ContentType != "application/octet-stream" || m.Expiry <= 7*time.Hour-time.Minute || m.Expiry > 7*time.Hour || m.QoS != 1 || len(m.Correlation) != 16 {
			t.Errorf("%s: got %+v", test.c.Verb(), m)
		}
	}
	ids := make(map[string]bool)
	var last wire.Version
	for _, m := range seen.requests() {
		ids[string(m.Correlation)] = true
		text, _ := m.Property("__ts")
		ts := must(wire.ParseVersion(text))(t)
		if ts.Compare(last) <= 0 {
			t.Errorf("__ts %v after %v", ts, last)
		}
		last = ts
	}
	if len(ids) != len(seen.requests()) {
		t.Errorf("%d requests had %d correlation data", len(seen.requests()), len(ids))
	}
}

func TestHighPriority(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var seen recorder
	s := dial(t, store, client.Options{HighPriority: true, Trace: seen.record})
	must(s.Get(t.Context(), "k"))(t)
	if value, ok := seen.requests()[0].Property("$high_priority"); !ok || value != "" {
		t.Errorf("got %q, %t", value, ok)
	}
}

// TestMessageExpiry: the message expiry is the rest of the timeout in whole seconds, rounded up (protocol.md
// 1.4).
func TestMessageExpiry(t *testing.T) {
	t.Parallel()
	var seen recorder
	virtual(t, client.Options{Trace: seen.record}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		for left, want := range map[time.Duration]time.Duration{
			0:                       client.DefaultTimeout, // no deadline
			9900 * time.Millisecond: 10 * time.Second,
			90 * time.Second:        90 * time.Second,
			100 * 24 * time.Hour:    100 * 24 * time.Hour,
		} {
			ctx := t.Context()
			if left > 0 {
				limited, cancel := context.WithTimeout(ctx, left)
				defer cancel()
				ctx = limited
			}
			must(s.Get(ctx, "k"))(t)
			sent := seen.requests()
			if got := sent[len(sent)-1].Expiry; got != want {
				t.Errorf("%v left: the expiry is %v, want %v", left, got, want)
			}
		}
	})
}

func TestResponseTopic(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ id, topic, want string }{
		{"a", "", "clients/a/services/statestore/_any_/command/invoke/response"},
		{"a/b", "", "clients/612F62/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke/response"},
		{"ü+#", "", "clients/C3BC2B23/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke/response"},
		{"a", "my/answers", "my/answers"},
	} {
		store := emulator.Start(t)
		var seen recorder
		s := dial(t, store, client.Options{ClientID: test.id, ResponseTopic: test.topic, Trace: seen.record})
		must(s.Set(t.Context(), "k", nil))(t)
		if got := seen.requests()[0].ResponseTopic; got != test.want {
			t.Errorf("%q: got %q, want %q", test.id, got, test.want)
		}
		if s.ClientID() != test.id {
			t.Errorf("the client id is %q, want %q", s.ClientID(), test.id)
		}
	}
}

// TestSharedResponseTopic: two clients that share a response topic each get their own reply.
func TestSharedResponseTopic(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	a := dial(t, store, client.Options{ResponseTopic: "answers"})
	b := dial(t, store, client.Options{ResponseTopic: "answers"})
	must(store.Set("k", "v"))(t)
	for range 10 {
		must(a.Get(t.Context(), "k"))(t)
		if r := must(b.Get(t.Context(), "l"))(t); r.Found {
			t.Errorf("got %+v", r)
		}
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Limits: emulator.Limits{MaxPacketSize: 2000}})
	s := dial(t, store, client.Options{})
	_, err := s.Set(t.Context(), "k", make([]byte, 2000))
	as[*mqtt.TooLargeError](t, err)
	not[*client.LostReplyError](t, err)
	_, err = s.Pipeline(1).Send(t.Context(), client.Set("k", make([]byte, 2000)))
	as[*mqtt.TooLargeError](t, err)
	if n := store.State().Requests; n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	must(s.Set(t.Context(), "k", make([]byte, 1000)))(t)
}

// TestNoStore: a request that no store receives fails when the patience or its time is over.
func TestNoStore(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{100 * time.Millisecond: 100 * time.Millisecond, time.Minute: time.Second} {
		virtual(t, client.Options{Timeout: timeout}, func(t *testing.T, store *emulator.Server, s *client.Session) {
			store.Intercept(always(emulator.Action{Refuse: 0x10}))
			check := func(what string, f func() error) {
				t.Helper()
				begin := time.Now()
				err := f()
				as[*client.NoStoreError](t, err)
				not[*client.LostReplyError](t, err)
				if took := time.Since(begin); took != want {
					t.Errorf("%s with a timeout of %v took %v, want %v", what, timeout, took, want)
				}
			}
			for _, c := range append(reads(), writes()...) {
				check(string(c.Verb()), func() error { _, err := s.Do(t.Context(), c); return err })
			}
			check("watch", func() error { _, err := s.Watch(t.Context(), []string{"k"}); return err })
			check("lock", func() error { _, err := s.AcquireLock(t.Context(), "k"); return err })
			early := client.Options{Address: store.Addr().String(), Dial: store.Dial, Timeout: timeout}
			check("early", func() error { _, err := single(t.Context(), early, client.Get("k")); return err })
		})
	}
}

// TestFarDeadline, in virtual time: a time limit of centuries is not taken for a short one.
func TestFarDeadline(t *testing.T) {
	t.Parallel()
	virtual(t, client.Options{Timeout: math.MaxInt64}, func(t *testing.T, store *emulator.Server, s *client.Session) {
		store.Intercept(always(emulator.Action{Delay: time.Hour}))
		ctx, cancel := context.WithDeadline(t.Context(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		defer cancel()
		for _, ctx := range []context.Context{ctx, t.Context()} {
			if _, err := s.Set(ctx, "k", nil); err != nil {
				t.Error(err)
			}
		}
		store.Intercept(nil)
		if err := s.WithLock(t.Context(), "l", func(context.Context, *client.Lock) error { return nil }); err != nil {
			t.Error(err)
		}
		if store.Keys()[0] != "k" || len(store.Keys()) > 1 {
			t.Errorf("the keys are %q: the lock was not released", store.Keys())
		}
	})
}
