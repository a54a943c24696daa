package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/await"
)

// TestPipelineWindow: there are never more requests in flight than the window allows.
func TestPipelineWindow(t *testing.T) {
	t.Parallel()
	for _, window := range []int{-1, 0, 1, 4} {
		store, s := open(t)
		var most atomic.Int32
		store.Intercept(func(emulator.Request) emulator.Action {
			st := store.State()
			most.Store(max(most.Load(), int32(st.Requests-st.Replies+1)))
			return emulator.Action{DelayReply: time.Hour}
		})
		const n = 20
		var wg sync.WaitGroup
		wg.Go(func() {
			p := s.Pipeline(window)
			var all []*client.InFlight
			for i := range n {
				f, err := p.Send(t.Context(), client.Get(fmt.Sprint(i)))
				if err != nil {
					t.Error(err)
					return
				}
				all = append(all, f)
			}
			for _, f := range all {
				if _, err := f.Wait(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
		want := max(window, 1)
		for range n / want {
			await.State(t, store, func(s emulator.State) bool { return s.Delayed == want })
			store.FastForward(time.Hour)
		}
		wg.Wait()
		if got := int(most.Load()); got != want {
			t.Errorf("window %d: %d requests were under way", window, got)
		}
	}
}

// TestPipelineOrder: a key has one request in flight at a time, in the order of Send; requests for other keys
// may overtake it.
func TestPipelineOrder(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Key() == "slow" {
			return emulator.Action{DelayReply: time.Hour}
		}
		return emulator.Action{}
	})
	p := s.Pipeline(10)
	slow := must(p.Send(t.Context(), client.Set("slow", []byte("1"))))(t)
	fast := must(p.Send(t.Context(), client.Set("fast", []byte("1"))))(t)
	must(fast.Wait(context.Background()))(t)
	// A second request for the slow key waits for the first until its context ends.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Send(ctx, client.Get("slow")); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if st := store.State(); st.Requests != 2 || st.Delayed != 1 {
		t.Errorf("got %+v", st)
	}
	second := make(chan *client.InFlight)
	go func() {
		f, err := p.Send(t.Context(), client.Get("slow"))
		if err != nil {
			t.Error(err)
		}
		second <- f
	}()
	store.FastForward(time.Hour)
	must(slow.Wait(context.Background()))(t)
	f := <-second
	await.State(t, store, func(s emulator.State) bool { return s.Delayed == 1 })
	store.FastForward(time.Hour)
	r := must(f.Wait(context.Background()))(t).(client.GetResult)
	if string(r.Value) != "1" {
		t.Errorf("got %q", r.Value)
	}
	if again := must(f.Wait(context.Background()))(t); again.Info().Version != r.Version { // Wait may be called any number of times
		t.Errorf("got %+v", again)
	}
}

// TestPipelineSenders: even with concurrent senders, there are never two requests in flight for one key.
func TestPipelineSenders(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	var most atomic.Int32
	store.Intercept(func(emulator.Request) emulator.Action {
		st := store.State()
		most.Store(max(most.Load(), int32(st.Requests-st.Replies+1)))
		return emulator.Action{DelayReply: time.Millisecond}
	})
	p := s.Pipeline(100)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				f, err := p.Send(t.Context(), client.Set("k", ""))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := f.Wait(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d requests for one key were under way", n)
	}
}

func TestPipelineTimeout(t *testing.T) {
	t.Parallel()
	virtual(t, client.Options{}, func(t *testing.T, store *emulator.Server, s *client.Session) {
		store.Intercept(always(emulator.Action{Drop: true}))
		p := s.Pipeline(1)
		for i := range 3 {
			f := must(p.Send(t.Context(), client.Set(fmt.Sprint(i%2), "")))(t)
			_, err := f.Wait(context.Background())
			if as[*client.LostReplyError](t, err); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		store.Intercept(nil)
		must(must(p.Send(t.Context(), client.Get("k")))(t).Wait(context.Background()))(t)
	})
}

// TestPipelineContext: ctx ends the wait for room, and the key is free again.
func TestPipelineContext(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	store.Intercept(once(emulator.Action{DelayReply: time.Hour}))
	p := s.Pipeline(1)
	first := must(p.Send(t.Context(), client.Get("a")))(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	results := make(chan error)
	for _, key := range []string{"b", "b", "c"} {
		go func() {
			_, err := p.Send(ctx, client.Get(key))
			results <- err
		}()
	}
	cancel(enough)
	for range 3 {
		if err := <-results; err != enough {
			t.Errorf("got %v", err)
		}
	}
	await.State(t, store, func(s emulator.State) bool { return s.Delayed == 1 })
	store.FastForward(time.Hour)
	must(first.Wait(context.Background()))(t)
	must(must(p.Send(t.Context(), client.Get("b")))(t).Wait(context.Background()))(t)
	if n := store.State().Requests; n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	// ctx also ends a request in flight.
	ctx, cancel = context.WithCancelCause(t.Context())
	store.Intercept(always(emulator.Action{Drop: true}))
	f := must(p.Send(ctx, client.Set("k", "")))(t)
	cancel(enough)
	_, err := f.Wait(context.Background())
	if as[*client.LostReplyError](t, err); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// TestPipelineClose: closing a session while others send leaves no request without a result.
func TestPipelineClose(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	for range 30 {
		s := dial(t, store, client.Options{})
		p := s.Pipeline(8)
		var wg sync.WaitGroup
		begun := make(chan struct{}, 4)
		for i := range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					f, err := p.Send(t.Context(), client.Get(fmt.Sprint(i, n)))
					if n == 0 {
						begun <- struct{}{}
					}
					if err == nil && n%10 == 0 {
						_, err = f.Wait(context.Background())
					}
					if err != nil {
						if !errors.Is(err, mqtt.ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		<-begun
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

// TestPipelineModel: a pipeline returns what a map would, for each key in the order of Send. Requests are
// told apart although they reuse the memory of earlier ones, whose PUBACK or second reply may come later.
func TestPipelineModel(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, store *emulator.Server, s *client.Session) {
		if store != nil {
			store.Intercept(func(r emulator.Request) emulator.Action {
				return emulator.Action{PubackLast: r.CorrelationData[0]%2 == 0, Duplicate: r.CorrelationData[0]%3 == 0}
			})
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		model := make(map[string]string)
		type step struct {
			f     *client.InFlight
			c     client.Command
			check func(client.Result) bool
		}
		var steps []step // not checked yet
		checkFirst := func() {
			st := steps[0]
			steps = steps[1:]
			if r, err := st.f.Wait(context.Background()); err != nil || !st.check(r) {
				t.Errorf("%s %s: got %+v, %v", st.c.Verb(), st.c.Key(), r, err)
			}
		}
		p := s.Pipeline(32)
		for i := range 2000 {
			if len(steps) == 40 {
				checkFirst()
			}
			key, value := fmt.Sprint("key", rnd.IntN(50)), fmt.Sprint(rnd.IntN(3))
			before, found := model[key]
			var c client.Command
			var check func(client.Result) bool
			switch rnd.IntN(6) {
			case 0:
				c = client.Get(key)
				check = func(r client.Result) bool {
					got := r.(client.GetResult)
					return got.Found == found && string(got.Value) == before
				}
			case 1:
				c = client.Set(key, []byte(value))
				check = func(r client.Result) bool { return r.(client.SetResult).Applied }
				model[key] = value
			case 2, 3:
				condition, want := client.NX, !found
				if i%2 == 0 {
					condition, want = client.NEX, !found || before == value
				}
				c = client.Set(key, []byte(value), client.SetOptions{Condition: condition})
				check = func(r client.Result) bool { return r.(client.SetResult).Applied == want }
				if want {
					model[key] = value
				}
			case 4:
				c = client.Del(key)
				check = func(r client.Result) bool { return r.(client.DelResult).Deleted == found }
				delete(model, key)
			case 5:
				c = client.VDel(key, []byte(value))
				want := int64(0)
				if found {
					want = -1
					if before == value {
						want = 1
						delete(model, key)
					}
				}
				check = func(r client.Result) bool { return count(r) == want }
			}
			steps = append(steps, step{must(p.Queue(t.Context(), c))(t), c, check})
		}
		for len(steps) > 0 {
			checkFirst()
		}
		keys := slices.Concat(must(scan(t, s, "*"))(t)...)
		for _, key := range keys {
			if v, _ := value(t, s, key); v != model[key] {
				t.Errorf("%s holds %q, want %q", key, v, model[key])
			}
		}
		if len(keys) != len(model) {
			t.Errorf("%d keys, want %d", len(keys), len(model))
		}
	})
}

// TestPipelineBreak: when the connection of a pipeline breaks, each request is known to be answered or lost.
func TestPipelineBreak(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	var n atomic.Int32
	store.Intercept(func(emulator.Request) emulator.Action {
		return emulator.Action{Cut: n.Add(1) == 50}
	})
	p := s.Pipeline(16)
	var all []*client.InFlight
	var keys []string
	for i := range 100 {
		f, err := p.Send(t.Context(), client.Set(fmt.Sprint(i), ""))
		if err != nil {
			as[*mqtt.LostError](t, err)
			continue
		}
		all, keys = append(all, f), append(keys, fmt.Sprint(i))
	}
	lost := 0
	for i, f := range all {
		r, err := f.Wait(context.Background())
		if err != nil {
			as[*client.LostReplyError](t, err)
			lost++
			continue
		}
		if _, ok := store.Get(keys[i]); !ok || !r.(client.SetResult).Applied {
			t.Errorf("%s was answered and is not there", keys[i])
		}
	}
	if lost == 0 || lost > 16 {
		t.Errorf("%d answers were lost", lost)
	}
}

// TestPipelineResultsStay: a result stays unchanged while its connection reads on.
func TestPipelineResultsStay(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		p := s.Pipeline(64)
		value := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), 50) }
		queue := func(c client.Command) *client.InFlight { return must(p.Queue(t.Context(), c))(t) }
		var got, called []*client.InFlight
		for i := range 2000 {
			key := fmt.Sprint(i)
			queue(client.Set(key, []byte(value(i))))
			got = append(got, queue(client.Get(key)))
			called = append(called, queue(client.Call([]string{"GET", key})))
		}
		for i := range got {
			if r := must(got[i].Wait(context.Background()))(t).(client.GetResult); string(r.Value) != value(i) {
				t.Errorf("%d: got %q", i, r.Value)
			}
			if r := must(called[i].Wait(context.Background()))(t).(client.CallResult); string(r.Value.Text) != value(i) {
				t.Errorf("%d: the call got %q", i, r.Value.Text)
			}
		}
	})
}

// TestPipelineClock: the clock passes every received version before another request gets its timestamp.
func TestPipelineClock(t *testing.T) {
	t.Parallel()
	store, ahead := emulator.Start(t, emulator.Options{Skew: 30 * time.Second}), client.Version{}
	var seen recorder
	s := dial(t, store, client.Options{Trace: seen.record})
	p := s.Pipeline(16)
	began := time.Now()
	for i := range 200 {
		f := must(p.Queue(t.Context(), client.Set(fmt.Sprint(i), "")))(t)
		if i%16 == 15 {
			if version := must(f.Wait(context.Background()))(t).Info().Version; version.Compare(ahead) > 0 {
				ahead = version
			}
			must(s.Set(t.Context(), "stamped", nil))(t)
			sent := seen.requests()
			text, _ := sent[len(sent)-1].Property("__ts")
			if stamp := must(client.ParseVersion(text))(t); stamp.Compare(ahead) <= 0 {
				t.Fatalf("the timestamp %v is not after the version %v", stamp, ahead)
			}
		}
	}
	if ahead.Time().Sub(began) < 20*time.Second {
		t.Errorf("the store's clock was not ahead: %v", ahead)
	}
}

// TestPipelineQueue: requests that Queue holds back are sent by Flush, by Wait, and before Queue waits.
func TestPipelineQueue(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	store.Intercept(always(emulator.Action{DelayReply: time.Hour}))
	waits := 0
	p := s.Pipeline(3)
	p.OnWait(func() { waits++ })
	queue := func(ctx context.Context, key string) (*client.InFlight, error) {
		return p.Queue(ctx, client.Set(key, ""))
	}
	a := must(queue(t.Context(), "a"))(t)
	must(queue(t.Context(), "b"))(t)
	p.Flush()
	await.State(t, store, func(s emulator.State) bool { return s.Delayed == 2 })
	if f := p.Busy("a"); f != a || a.Over() {
		t.Errorf("a is answered by %p, want %p; over: %v", f, a, a.Over())
	}
	must(queue(t.Context(), "c"))(t)
	if waits != 0 {
		t.Errorf("Queue waited %d times with room in the window", waits)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() {
		await.State(t, store, func(s emulator.State) bool { return s.Delayed == 3 })
		cancel(enough)
	}()
	if _, err := queue(ended, "d"); err != enough || waits == 0 {
		t.Errorf("Queue waited %d times: %v", waits, err)
	}
	store.FastForward(time.Hour)
	must(a.Wait(context.Background()))(t)
	if f := p.Busy("a"); f != nil || !a.Over() {
		t.Errorf("a is busy: %v; over: %v", f, a.Over())
	}
	store.Intercept(nil)
	must(must(queue(t.Context(), "e"))(t).Wait(context.Background()))(t)
}

// TestPipelineLosses: a lost write is counted before another request takes its place.
func TestPipelineLosses(t *testing.T) {
	t.Parallel()
	virtual(t, client.Options{}, func(t *testing.T, store *emulator.Server, s *client.Session) {
		store.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{DropReply: r.Key() != "c"} })
		p := s.Pipeline(1)
		lost := must(p.Send(t.Context(), client.Set("a", "")))(t)
		read := must(p.Send(t.Context(), client.Get("b")))(t)
		if n := p.Losses(); n != 1 {
			t.Errorf("%d losses once another request has the place of a lost one, want 1", n)
		}
		_, err := lost.Wait(context.Background())
		as[*client.LostReplyError](t, err)
		if _, err := read.Wait(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		must(must(p.Send(t.Context(), client.Set("c", "")))(t).Wait(context.Background()))(t)
		if n := p.Losses(); n != 1 {
			t.Errorf("%d losses, want 1: neither a lost read nor an answered write is one", n)
		}
	})
}

func BenchmarkDo(b *testing.B) {
	store, s := open(b)
	if _, err := store.Set("k", "1234"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPipeline256(b *testing.B) {
	_, s := open(b)
	p := s.Pipeline(256)
	keys := make([]client.Command, 1024)
	for i := range keys {
		keys[i] = client.Get(fmt.Sprint(i))
	}
	all := make([]*client.InFlight, 0, len(keys))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f, err := p.Send(b.Context(), keys[i%len(keys)])
		if err != nil {
			b.Fatal(err)
		}
		if all = append(all, f); len(all) == len(keys) {
			for _, f := range all {
				if r, err := f.Wait(context.Background()); err != nil || r.(client.GetResult).Found {
					b.Fatal(r, err)
				}
			}
			all = all[:0]
		}
	}
}
