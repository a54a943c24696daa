package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/await"
)

// TestLateReply: a reply that comes after its request has timed out is acknowledged and dropped.
func TestLateReply(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var seen recorder
	s := dial(t, store, client.Options{Trace: seen.record})
	store.Intercept(once(emulator.Action{DelayReply: time.Hour}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error)
	go func() {
		_, err := s.Set(ctx, "k", []byte("v"))
		result <- err
	}()
	await.State(t, store, func(s emulator.State) bool { return s.Delayed == 1 })
	cancel()
	err := <-result
	if as[*client.LostReplyError](t, err); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	store.FastForward(time.Hour)
	await.State(t, store, func(s emulator.State) bool { return s.Replies == 1 })
	r := must(s.Get(t.Context(), "k"))(t)
	if !r.Found || string(r.Value) != "v" {
		t.Errorf("got %q, %t", r.Value, r.Found)
	}
	if got, acks := len(seen.all("PUBLISH", false)), len(seen.all("PUBACK", true)); got != 2 || acks < 1 {
		t.Errorf("%d replies, %d acknowledged", got, acks)
	}
}

func TestDuplicateReply(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	store.Intercept(always(emulator.Action{Duplicate: true}))
	for i := range 20 {
		key := fmt.Sprint(i)
		must(s.Set(t.Context(), key, []byte(key)))(t)
		r := must(s.Get(t.Context(), key))(t)
		if string(r.Value) != key {
			t.Errorf("got %q for %q", r.Value, key)
		}
	}
}

func TestRepliesOutOfOrder(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	const n = 20
	for i := range n {
		must(store.Set(fmt.Sprint(i), fmt.Sprint(i)))(t)
	}
	first := store.State().Requests
	store.Intercept(func(emulator.Request) emulator.Action {
		// The later a request arrives, the earlier its reply.
		return emulator.Action{DelayReply: time.Duration(n-store.State().Requests+first) * time.Minute}
	})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r, err := s.Get(t.Context(), fmt.Sprint(i))
			if err != nil || string(r.Value) != fmt.Sprint(i) {
				t.Errorf("%d: got %q, %v", i, r.Value, err)
			}
		})
	}
	await.State(t, store, func(s emulator.State) bool { return s.Delayed == n })
	store.FastForward(n * time.Minute)
	wg.Wait()
}

func TestReplyBeforePuback(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	store.Intercept(always(emulator.Action{PubackLast: true}))
	for range 20 {
		must(s.Set(t.Context(), "k", nil))(t)
	}
}

func TestNoPuback(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	store.Intercept(always(emulator.Action{NoPuback: true}))
	for range 20 {
		must(s.Set(t.Context(), "k", nil))(t)
	}
}

// TestRefused: a PUBACK with an error code means that the request was not accepted, so the outcome is known.
func TestRefused(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	for _, code := range []byte{mqtt.ReasonNotAuthorized, mqtt.ReasonQuotaExceeded, 0x80} {
		store.Intercept(always(emulator.Action{Refuse: code}))
		for _, c := range []client.Command{client.Get("k"), client.Set("k", ""), client.Del("k"), client.Call([]string{"NEW"})} {
			_, err := s.Do(t.Context(), c)
			if e := as[*mqtt.ReasonError](t, err); e.Packet != "PUBACK" || e.Code != code {
				t.Errorf("%s: got %v, want 0x%02X", c.Verb(), err, code)
			}
			not[*client.LostReplyError](t, err)
		}
	}
	store.Intercept(nil)
	must(s.Set(t.Context(), "k", nil))(t)
}

// TestForeignReply: messages of other senders on the response topic are ignored.
func TestForeignReply(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	for _, id := range []string{"", "1234", "0123456789abcdef", string(make([]byte, 300))} {
		first := true
		store.Intercept(func(emulator.Request) emulator.Action {
			if !first {
				return emulator.Action{}
			}
			first = false
			return emulator.Action{Rewrite: func(a *emulator.Answer) { a.CorrelationData = []byte(id) }}
		})
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		before := store.State().Replies
		go func() {
			_, err := s.Get(ctx, "k")
			result <- err
		}()
		await.State(t, store, func(s emulator.State) bool { return s.Replies > before })
		must(s.Get(t.Context(), "l"))(t) // its reply comes after the foreign one
		cancel()
		if err := <-result; err != context.Canceled {
			t.Errorf("%q: got %v", id, err)
		}
	}
}
