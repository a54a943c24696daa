package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/freeport"
	"github.com/sscli/sscli/internal/testkit/leaktest"
	"github.com/sscli/sscli/internal/wire"
)

// writes returns commands whose outcome is unknown without a reply.
func writes() []client.Command {
	return []client.Command{
		client.Set("k", []byte("v")),
		client.Del("k"),
		client.VDel("k", []byte("v")),
		client.Call([]string{"SET", "k", "v"}),
		client.Call([]string{"NEW", "k"}),
	}
}

// reads returns commands that change nothing.
func reads() []client.Command {
	return []client.Command{
		client.Get("k"),
		client.Call([]string{"GET", "k"}),
		client.Call([]string{"KEYNOTIFY", "k"}),
		client.Call([]string{"SCAN", "*"}),
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	var seen recorder
	virtual(t, client.Options{Trace: seen.record}, func(t *testing.T, store *emulator.Server, s *client.Session) {
		store.Intercept(always(emulator.Action{Drop: true}))
		for _, c := range reads() {
			if _, err := s.Do(t.Context(), c); err != client.ErrNoReply {
				t.Errorf("%s: %v", c.Verb(), err)
			}
		}
		for _, c := range writes() {
			before := time.Now()
			_, err := s.Do(t.Context(), c)
			e := as[*client.LostReplyError](t, err)
			if !errors.Is(err, context.DeadlineExceeded) || e.Command.Verb() != c.Verb() || e.Command.Key() != "k" {
				t.Errorf("%s: %v", c.Verb(), err)
			}
			sent := seen.requests()
			m := sent[len(sent)-1]
			if stamp, _ := m.Property("__ts"); e.Timestamp.String() != stamp {
				t.Errorf("%s: the timestamp is %v, sent was %s", c.Verb(), e.Timestamp, stamp)
			}
			if e.Expires.Before(before.Add(m.Expiry)) || e.Expires.After(time.Now().Add(m.Expiry)) {
				t.Errorf("%s: it expires in %v", c.Verb(), e.Expires.Sub(before))
			}
		}
		store.Intercept(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		must(s.Do(ctx, client.Get("k")))(t)
	})
}

func TestContextCause(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	interrupted := errors.New("interrupted")
	for _, c := range append(reads(), writes()...) {
		ctx, cancel := context.WithCancelCause(t.Context())
		store.Intercept(func(emulator.Request) emulator.Action {
			cancel(interrupted)
			return emulator.Action{Drop: true}
		})
		if _, err := s.Do(ctx, c); !errors.Is(err, interrupted) {
			t.Errorf("%s: %v", c.Verb(), err)
		}
	}
}

// TestContextOver: if its context has already ended, a request is not sent.
func TestContextOver(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := s.Pipeline(1)
	for _, c := range slices.Repeat(writes(), 10) {
		if _, err := s.Do(ctx, c); err != context.Canceled {
			t.Errorf("%s: %v", c.Verb(), err)
		}
		if _, err := p.Send(ctx, c); err != context.Canceled {
			t.Errorf("%s: %v", c.Verb(), err)
		}
	}
	must(s.Get(t.Context(), "k"))(t)
	if n := store.State().Requests; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// get repeats a GET until the session has noticed that its connection is gone.
func get(t *testing.T, s *client.Session, key string) client.GetResult {
	t.Helper()
	for {
		r, err := s.Get(t.Context(), key)
		if err == nil {
			return r
		}
		as[*mqtt.LostError](t, err)
	}
}

// TestConnectionCut: whether the connection breaks before or after a write was processed, the client sees the
// same error, and never writes twice.
func TestConnectionCut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		a       emulator.Action
		applied bool
		code    byte // of DISCONNECT
	}{
		"before":     {emulator.Action{Cut: true}, false, 0},
		"after":      {emulator.Action{CutAfter: true}, true, 0},
		"DISCONNECT": {emulator.Action{Disconnect: 0x8B}, false, 0x8B},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, s := open(t)
			var sets atomic.Int32
			store.Intercept(func(r emulator.Request) emulator.Action {
				if r.Verb() == wire.VerbSet {
					sets.Add(1)
				}
				return test.a
			})
			_, err := s.Set(t.Context(), "k", []byte("v"))
			as[*client.LostReplyError](t, err)
			as[*mqtt.LostError](t, err)
			if code, _ := mqtt.ReasonCode(err); code != test.code {
				t.Error(err)
			}
			_, err = s.Get(t.Context(), "k")
			if _, ok := err.(*mqtt.LostError); !ok {
				t.Errorf("got %T %v", err, err)
			}
			store.Intercept(nil)
			r := must(s.Get(t.Context(), "k"))(t)
			if r.Found != test.applied {
				t.Errorf("applied %t, want %t", r.Found, test.applied)
			}
			if n := sets.Load(); n != 1 {
				t.Errorf("%d SETs, want 1", n)
			}
		})
	}
}

// TestDisconnectCodes: protocol.md 8.2.
func TestDisconnectCodes(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	fatal := []byte{0x81, 0x82, 0x87, 0x8E, 0x8F, 0x90, 0x94, 0x95, 0x99, 0x9A, 0x9B, 0x9D, 0x9E, 0xA1, 0xA2}
	retriable := []byte{0x80, 0x83, 0x89, 0x8B, 0x8D, 0x93, 0x96, 0x97, 0x98, 0x9C, 0x9F, 0xA0}
	for _, code := range slices.Concat(fatal, retriable) {
		store.Intercept(once(emulator.Action{Disconnect: code}))
		var seen recorder
		s := dial(t, store, client.Options{Trace: seen.record})
		_, err := s.Get(t.Context(), "k")
		if got, _ := mqtt.ReasonCode(err); got != code {
			t.Errorf("got %v, want 0x%02X", err, code)
		}
		_, again := s.Set(t.Context(), "k", nil)
		connects := len(seen.all("CONNECT", true))
		if slices.Contains(fatal, code) {
			if got, _ := mqtt.ReasonCode(again); got != code || connects != 1 {
				t.Errorf("0x%02X: after it %v, and %d connections", code, again, connects)
			}
			not[*client.LostReplyError](t, again)
		} else if again != nil || connects != 2 {
			t.Errorf("0x%02X: after it %v, and %d connections", code, again, connects)
		}
	}
}

// TestTakenOver: a session that was taken over does not connect again.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var seen recorder
	first := dial(t, store, client.Options{ClientID: "same", Trace: seen.record})
	second := dial(t, store, client.Options{ClientID: "same"})
	for range 10 {
		_, err := first.Get(t.Context(), "k")
		if code, _ := mqtt.ReasonCode(err); code != mqtt.ReasonTakenOver {
			t.Fatal(err)
		}
		must(second.Get(t.Context(), "k"))(t)
	}
	if n := len(seen.all("CONNECT", true)); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestReconnect(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var seen recorder
	s := dial(t, store, client.Options{Trace: seen.record})
	must(s.Set(t.Context(), "k", []byte("v")))(t)
	for range 5 {
		store.DropAll()
		if r := get(t, s, "k"); string(r.Value) != "v" {
			t.Errorf("got %q", r.Value)
		}
	}
	if n := len(seen.all("CONNECT", true)); n != 6 {
		t.Errorf("%d connections, want 6", n)
	}
}

// TestConcurrentReconnect: concurrent requests that need a new connection share one dial.
func TestConcurrentReconnect(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var seen recorder
	s := dial(t, store, client.Options{Trace: seen.record})
	store.Intercept(once(emulator.Action{Cut: true}))
	_, err := s.Get(t.Context(), "k")
	as[*mqtt.LostError](t, err)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := s.Get(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(seen.all("CONNECT", true)); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// TestReconnectRefused: after the broker refused a login on reconnect, requests don't each repeat it.
func TestReconnectRefused(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	store := emulator.Start(t, emulator.Options{CheckLogin: func(string, []byte) bool { return !revoked.Load() }})
	var seen recorder
	s := dial(t, store, client.Options{Username: "ann", Password: client.Secret("x"), Trace: seen.record})
	revoked.Store(true)
	store.Intercept(once(emulator.Action{Cut: true}))
	_, err := s.Get(t.Context(), "k")
	as[*mqtt.LostError](t, err)
	for range 3 {
		_, err := s.Set(t.Context(), "k", nil)
		as[*mqtt.DialError](t, err)
		if e := as[*mqtt.ReasonError](t, err); e.Code != mqtt.ReasonBadLogin {
			t.Error(err)
		}
	}
	if n := len(seen.all("CONNECT", true)); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// TestReconnectLater: an unreachable broker is tried again with each request.
func TestReconnectLater(t *testing.T) {
	t.Parallel()
	address := freeport.Address(t)
	store := must(emulator.New(emulator.Options{Listen: address}))(t)
	s := dial(t, store, client.Options{})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := s.Set(t.Context(), "k", nil)
		if err == nil {
			t.Fatal("a closed store answered")
		}
		if e, ok := errors.AsType[*mqtt.DialError](err); ok {
			not[*client.LostReplyError](t, e)
			break
		}
	}
	emulator.Start(t, emulator.Options{Listen: address})
	must(s.Set(t.Context(), "k", nil))(t)
}

// TestClose is not parallel, because it looks at the goroutines of all sessions.
func TestClose(t *testing.T) {
	store := emulator.Start(t)
	// With pipelining, a read that waits for the next connection would be sent twice on a slow machine.
	s := must(client.Dial(t.Context(), client.Options{Address: store.Addr().String(), Timeout: time.Hour, NoPipelining: true}))(t)
	store.Intercept(once(emulator.Action{Cut: true})) // breaks the connection
	_, err := s.Get(t.Context(), "k")
	as[*mqtt.LostError](t, err)
	store.Intercept(always(emulator.Action{Drop: true}))
	before := store.State().Requests
	all := append(reads(), writes()...)
	results := make([]chan error, len(all))
	for i, c := range all {
		results[i] = make(chan error, 1)
		go func() {
			_, err := s.Do(t.Context(), c)
			results[i] <- err
		}()
	}
	p := s.Pipeline(10)
	f := must(p.Send(t.Context(), client.Set("l", "")))(t)
	await.State(t, store, func(s emulator.State) bool { return s.Requests == before+len(all)+1 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left := leaktest.Goroutines(started...); left != "" {
		t.Errorf("goroutines are left:\n%s", left)
	}
	for i, c := range all {
		err := <-results[i]
		if _, lost := errors.AsType[*client.LostReplyError](err); lost != (i >= len(reads())) || !errors.Is(err, mqtt.ErrClosed) {
			t.Errorf("%s: %v", c.Verb(), err)
		}
	}
	if _, err := f.Wait(context.Background()); !errors.Is(err, mqtt.ErrClosed) {
		t.Error(err)
	}
	for range 2 {
		if _, err := s.Set(t.Context(), "k", nil); err != mqtt.ErrClosed {
			t.Error(err)
		}
		if _, err := p.Send(t.Context(), client.Get("k")); err != mqtt.ErrClosed {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseWhileConnecting: Close does not wait for a broker that accepts connections and sends nothing, and
// neither do the callers that wait for that connection.
func TestCloseWhileConnecting(t *testing.T) {
	t.Parallel()
	store := must(emulator.New(emulator.Options{Listen: freeport.Address(t)}))(t)
	s := dial(t, store, client.Options{Timeout: time.Hour})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := s.Get(t.Context(), "k"); err != nil {
			if _, ok := errors.AsType[*mqtt.DialError](err); ok {
				break
			}
		}
	}
	ln := must(net.Listen("tcp", store.Addr().String()))(t)
	defer ln.Close()
	results := make(chan error)
	for _, c := range writes() {
		go func() {
			_, err := s.Do(t.Context(), c)
			results <- err
		}()
		go func() {
			_, err := s.Pipeline(1).Send(t.Context(), c)
			results <- err
		}()
	}
	conn := must(ln.Accept())(t)
	defer conn.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 2 * len(writes()) {
		err := <-results
		if !errors.Is(err, mqtt.ErrClosed) {
			t.Error(err)
		}
		not[*client.LostReplyError](t, err)
	}
}

// TestCloseAsTheConnectionComes: the session is closed just as its next connection is established, with
// messages on their way to it.
func TestCloseAsTheConnectionComes(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	other := dial(t, store, client.Options{ResponseTopic: "answers"})
	for range 20 {
		var s *client.Session
		var subacks int
		var others sync.WaitGroup
		s = dial(t, store, client.Options{ResponseTopic: "answers", Trace: func(e mqtt.Event) {
			if e.Type != "SUBACK" {
				return
			}
			if subacks++; subacks < 2 {
				return
			}
			for range 3 {
				others.Go(func() {
					if _, err := other.Get(t.Context(), "k"); err != nil {
						t.Error(err)
					}
				})
			}
			if err := s.Close(); err != nil { // closes the old connection; the new one is not the session's yet
				t.Error(err)
			}
		}})
		store.Intercept(once(emulator.Action{Cut: true}))
		_, err := s.Get(t.Context(), "k")
		as[*mqtt.LostError](t, err)
		if _, err := s.Get(t.Context(), "k"); !errors.Is(err, mqtt.ErrClosed) {
			t.Errorf("got %v", err)
		}
		others.Wait()
	}
}

// TestChaos: many goroutines use a session while its connection breaks and while it is closed.
func TestChaos(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	var n atomic.Int32
	store.Intercept(func(emulator.Request) (a emulator.Action) {
		if n.Add(1)%500 == 0 {
			a.Disconnect = 0x8B
		}
		return a
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := s.Pipeline(4)
			key := fmt.Sprint(i % 3)
			for ctx.Err() == nil {
				_, err := s.Set(t.Context(), key, nil)
				f, err2 := p.Send(t.Context(), client.Get(key))
				if err2 == nil {
					_, err2 = f.Wait(context.Background())
				}
				for _, err := range []error{err, err2} {
					if err != nil && !isLost(err) {
						t.Errorf("%v; the state is %+v", err, store.State())
						cancel()
					}
				}
			}
		})
	}
	if err := store.Await(ctx, func(s emulator.State) bool { return s.Requests > 2000 }); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	wg.Wait()
}

func isLost(err error) bool {
	_, lost := errors.AsType[*mqtt.LostError](err)
	return lost || errors.Is(err, mqtt.ErrClosed)
}
