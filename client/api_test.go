package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/freeport"
)

func TestAsOtherType(t *testing.T) {
	t.Parallel()
	_, s := open(t)
	_, err := client.As[client.SetResult](s.Do(t.Context(), client.Get("k")))
	as[*client.ReplyError](t, err)
}

// TestLockWrites: the writes of a Lock have its newest token, and a lost or released lock writes nothing.
func TestLockWrites(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	l := must(s.Lock(t.Context(), "l", client.LockOptions{TTL: time.Hour}))(t)
	set := must(l.Set(t.Context(), "k", []byte("v")))(t)
	if e, _ := store.Get("k"); !set.Applied || !e.Fence.Equal(l.Token()) {
		t.Errorf("set: %+v, the fence is %v, want %v", set, e.Fence, l.Token())
	}
	if _, err := s.Set(t.Context(), "k", nil); !errors.Is(err, client.ErrFenced) {
		t.Errorf("a write without the token: %v", err)
	}
	if r := must(l.VDel(t.Context(), "k", []byte("w")))(t); !r.Found || r.Deleted {
		t.Errorf("vdel: %+v", r)
	}
	if r := must(l.Del(t.Context(), "k"))(t); !r.Deleted {
		t.Errorf("del: %+v", r)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Set(t.Context(), "k", nil); !errors.Is(err, client.ErrNotHolder) {
		t.Errorf("released: %v", err)
	}
	l = must(s.Lock(t.Context(), "l", client.LockOptions{TTL: time.Hour}))(t)
	must(s.Del(t.Context(), "l"))(t)
	<-l.Context().Done()
	if _, err := l.Del(t.Context(), "k"); !errors.Is(err, client.ErrLockLost) {
		t.Errorf("lost: %v", err)
	}
	_ = l.Release(t.Context())
	if _, found := store.Get("k"); found {
		t.Error("a lock that was not held has written")
	}
}

func TestWithLock(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		f    func(ctx context.Context, l *client.Lock) error
		want []error
	}{
		"done":   {func(context.Context, *client.Lock) error { return nil }, nil},
		"failed": {func(context.Context, *client.Lock) error { return failed }, []error{failed}},
		"released": {func(ctx context.Context, l *client.Lock) error {
			return l.Release(ctx)
		}, nil},
		"lost": {func(ctx context.Context, l *client.Lock) error {
			must(s.Del(t.Context(), l.Name()))(t)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), client.ErrLockLost) {
				t.Errorf("the context ended because of %v", context.Cause(ctx))
			}
			return nil
		}, []error{client.ErrLockLost}},
		"lost and failed": {func(ctx context.Context, l *client.Lock) error {
			must(s.Del(t.Context(), l.Name()))(t)
			<-ctx.Done()
			return failed
		}, []error{client.ErrLockLost, failed}},
	} {
		err := s.WithLock(t.Context(), "l-"+name, test.f, client.LockOptions{TTL: time.Hour})
		if (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		for _, want := range test.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		if _, held := store.Get("l-" + name); held {
			t.Errorf("%s: the lock is held", name)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_ = s.WithLock(t.Context(), "panics", func(context.Context, *client.Lock) error { panic("oh") }, client.LockOptions{TTL: time.Hour})
	}()
	if _, held := store.Get("panics"); held {
		t.Error("after a panic, the lock is held")
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.WithLock(ctx, "ended", func(ctx context.Context, _ *client.Lock) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}, client.LockOptions{TTL: time.Hour})
	if _, held := store.Get("ended"); held || !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrLockLost) {
		t.Errorf("ended: %v, held %t", err, held)
	}
}

// TestFollow yields the present after a change, a deletion, and a lost connection.
func TestFollow(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	for now, err := range s.Follow(ctx, "k") {
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		switch got = append(got, fmt.Sprintf("%t %s", now.Found, now.Value)); len(got) {
		case 1:
			must(s.Set(t.Context(), "k", []byte("1")))(t)
		case 2:
			must(s.Del(t.Context(), "k"))(t)
		case 3:
			store.DropAll()
			must(store.Set("k", "2"))(t)
		case 4:
			cancel()
		}
	}
	if want := []string{"false ", "true 1", "false ", "true 2", "context canceled"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFollowEdges, in virtual time: a state that did not change is not yielded again after a lost connection, and the
// newest value is yielded before the end.
func TestFollowEdges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := emulator.New(emulator.Options{InProcess: true})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		s := must(client.New(client.Options{Address: "store:1883", Dial: store.Dial}))(t)
		must(store.Set("k", "1"))(t)
		var got []string
		for now, err := range s.Follow(t.Context(), "k") {
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			switch got = append(got, fmt.Sprintf("%t %s", now.Found, now.Value)); len(got) {
			case 1:
				must(store.Delete("k"))(t)
			case 2:
				store.DropAll()
				time.AfterFunc(time.Hour, func() { must(store.Set("k", "2"))(t) })
				time.Sleep(time.Minute) // the client connects again, and reads the key
			case 3:
				must(store.Set("k", "3"))(t)
				synctest.Wait()
				s.Close()
			}
		}
		if want := []string{"true 1", "false ", "true 2", "true 3", client.ErrClosed.Error()}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestFollowWithoutValues, in virtual time: if a notification has no value, Follow reads the key, also if the connection
// is lost meanwhile.
func TestFollowWithoutValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := emulator.Start(t, emulator.Options{InProcess: true, Variants: emulator.Variants{NotifyNoValue: true}})
		s := must(client.New(client.Options{Dial: store.Dial}))(t)
		defer s.Close()
		must(store.Set("k", "0"))(t)
		var got []string
		for now, err := range s.Follow(t.Context(), "k") {
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			switch got = append(got, string(now.Value)); len(got) {
			case 1:
				store.Intercept(func(emulator.Request) emulator.Action {
					store.Intercept(nil)
					return emulator.Action{Cut: true}
				})
				must(store.Set("k", "1"))(t)
			case 2:
				must(store.Set("k", "2"))(t)
			case 3:
				store.Intercept(always(emulator.Action{Drop: true}))
				must(store.Set("k", "3"))(t)
				time.AfterFunc(time.Minute, func() { s.Close() })
			}
		}
		if want := []string{"0", "1", "2", client.ErrClosed.Error()}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{ScanPage: 2})
	s := dial(t, store, client.Options{})
	for i := range 7 {
		put(t, s, fmt.Sprint("k", i), "v")
	}
	var got []string
	for key, err := range s.Keys(t.Context(), "k*") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, key)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6"}) {
		t.Errorf("got %q", got)
	}
	for _, err := range s.Keys(t.Context(), "") {
		as[*client.InvalidError](t, err)
	}
}

// TestPipelineResults yields in the order of the replies: one lost reply holds up nobody.
func TestPipelineResults(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	free := make(chan struct{})
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Key() == "slow" {
			<-free
		}
		return emulator.Action{Drop: r.Key() == "lost"}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	commands := []client.Command{client.Get("lost"), {}, client.Get("a"), client.Get("b"), client.Get("a")}
	var got []string
	for f := range s.Pipeline(2).Results(ctx, slices.Values(commands)) {
		_, err := f.Wait(ctx)
		got = append(got, fmt.Sprint(f.Command().Key(), " ", err == nil))
		if len(got) == 4 {
			cancel()
		}
	}
	close(free)
	if want := []string{" false", "a true", "b true", "a true", "lost false"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPipelineResultsCome: a result is yielded when it comes, although the next command is not known yet; and the loop may
// end while it is not.
func TestPipelineResultsCome(t *testing.T) {
	t.Parallel()
	_, s := open(t)
	next := make(chan client.Command)
	commands := func(yield func(client.Command) bool) {
		for c := range next {
			if !yield(c) {
				return
			}
		}
	}
	go func() { next <- client.Set("0", "") }()
	n := 0
	for f := range s.Pipeline(1).Results(t.Context(), commands) {
		must(f.Wait(t.Context()))(t)
		if n++; n == 20 {
			break
		}
		next <- client.Set(fmt.Sprint(n), "")
	}
	close(next)
}

// TestPipelineDrain: Drain leaves nothing in flight; and a queued request is sent without a flush.
func TestPipelineDrain(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	p := s.Pipeline(8)
	for i := range 100 {
		must(p.Queue(t.Context(), client.Set(fmt.Sprint(i), "")))(t)
	}
	if err := p.Drain(t.Context()); err != nil || len(store.Keys()) != 100 {
		t.Errorf("%v, %d keys", err, len(store.Keys()))
	}
	must(p.Queue(t.Context(), client.Set("last", "")))(t)
	await.State(t, store, func(s emulator.State) bool { return s.Keys == 101 })
	f := must(p.Queue(t.Context(), client.Get("last")))(t)
	<-f.Done()

	store.Intercept(always(emulator.Action{Drop: true}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f = must(p.Queue(ctx, client.Get("k")))(t)
	ended, end := context.WithCancel(t.Context())
	end()
	if err := p.Drain(ended); err != context.Canceled {
		t.Errorf("Drain: %v", err)
	}
	if _, err := f.Wait(ended); err != context.Canceled || f.Over() {
		t.Errorf("Wait: %v, over %t", err, f.Over())
	}
}

// A logged is a slog.Handler that gets each record.
type logged func(slog.Record)

func (l logged) Enabled(context.Context, slog.Level) bool      { return true }
func (l logged) Handle(_ context.Context, r slog.Record) error { l(r); return nil }
func (l logged) WithAttrs([]slog.Attr) slog.Handler            { return l }
func (l logged) WithGroup(string) slog.Handler                 { return l }

// TestRetryFor: what was not sent waits for a broker that is not there yet, and the log says why.
func TestRetryFor(t *testing.T) {
	t.Parallel()
	address := freeport.Address(t)
	failures := make(chan struct{}, 1000)
	o := client.Options{Address: address, RetryFor: time.Hour, Timeout: time.Minute, Logger: slog.New(logged(func(r slog.Record) {
		if r.Message == "no connection" {
			failures <- struct{}{}
		}
	}))}
	calls := map[string]func(s *client.Session) error{
		"Get":  func(s *client.Session) error { _, err := s.Get(t.Context(), "k"); return err },
		"Set":  func(s *client.Session) error { _, err := s.Set(t.Context(), "k", nil); return err },
		"Send": func(s *client.Session) error { return send(t.Context(), s) },
		"Watch": func(s *client.Session) error {
			_, err := s.Watch(t.Context(), []string{"k"})
			return err
		},
		"Try": func(s *client.Session) error {
			_, err := s.AcquireLock(t.Context(), "try", client.LockOptions{Try: true})
			return err
		},
		"Lock":    func(s *client.Session) error { _, err := s.Lock(t.Context(), "l"); return err },
		"Skew":    func(s *client.Session) error { _, err := s.MeasureSkew(t.Context(), "skew", time.Minute); return err },
		"Connect": func(s *client.Session) error { return s.Connect(t.Context()) },
	}
	sessions := make(map[string]*client.Session)
	done := make(chan error, len(calls))
	for name, call := range calls {
		s := must(client.New(o))(t)
		sessions[name] = s
		defer s.Close()
		go func() {
			err := call(s)
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			done <- err
		}()
	}
	for range 2 * len(calls) {
		<-failures
	}
	store := emulator.Start(t, emulator.Options{Listen: address})
	for range calls {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, s := range sessions {
		s.Close()
	}

	o.RetryFor = 0
	s := must(client.New(o))(t)
	store.Close()
	_, err := s.Get(t.Context(), "k")
	as[*client.DialError](t, err)
	o.RetryFor = -1
	_, err = client.New(o)
	as[*client.InvalidError](t, err)
}

func send(ctx context.Context, s *client.Session) error {
	for f := range s.Pipeline(1).Results(ctx, slices.Values([]client.Command{client.Get("k")})) {
		if _, err := f.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// TestPipelineResultsEnd: when the loop has ended, no further command is sent.
func TestPipelineResultsEnd(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	store := emulator.Start(t, emulator.Options{Observe: func(e emulator.Event) {
		if e.Verb == "set" {
			sent.Add(1)
		}
	}})
	s := dial(t, store, client.Options{})
	for range 100 {
		p := s.Pipeline(64)
		for range p.Results(t.Context(), func(yield func(client.Command) bool) {
			for yield(client.Set("k", "")) {
			}
		}) {
			break
		}
		if err := p.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := sent.Load()
		for range 10 {
			must(s.Get(t.Context(), "k"))(t)
		}
		if n := sent.Load() - before; n > 0 {
			t.Fatalf("%d commands came after the loop", n)
		}
	}
}
