package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/full"
	"github.com/sscli/sscli/internal/wire"
)

// fill sets n keys of a store and returns their names, in order.
func fill(t *testing.T, store *emulator.Server, n int) (keys []string) {
	t.Helper()
	for i := range n {
		keys = append(keys, fmt.Sprintf("k%06d", i))
		put(t, store, keys[i], "v")
	}
	return keys
}

// TestWatchMoreKeysThanBuffer: the first look at the keys does not count against the buffer, which nobody can read before
// Watch returns, nor does the look after a break.
func TestWatchMoreKeysThanBuffer(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"a few": 300, "more than are read ahead": 2*maxReplies + 1} {
		for _, match := range []string{"", "k*"} {
			t.Run(fmt.Sprint(name, match), func(t *testing.T) {
				t.Parallel()
				store := emulator.Start(t)
				keys := fill(t, store, n)
				if match != "" {
					keys = nil
				}
				w := startWatch(t, watchSession(t, Options{Address: store.Addr().String()}), WatchOptions{Buffer: 2, Match: match, Ready: true, Rescan: time.Hour}, keys...)
				seen := make(map[string]bool)
				read := func(kind, end EventKind) {
					t.Helper()
					for e := next(t, w); e.Kind != end; e = next(t, w) {
						if e.Kind == EventDown {
							continue
						}
						if e.Kind != kind || !e.HasValue || seen[e.Key] {
							t.Fatalf("%s, seen before: %v", told(e), seen[e.Key])
						}
						seen[e.Key] = true
					}
					if len(seen) != n {
						t.Errorf("%d keys, want %d", len(seen), n)
					}
					clear(seen)
				}
				read(EventInitial, EventReady)
				store.DropAll()
				read(EventResync, EventUp)
				put(t, store, "k000007", "new")
				wantEvents(t, w, `set k000007 "new"`)
			})
		}
	}
}

// TestWatchReadsNoFasterThanItsConsumer: a watch of many keys reads only some ahead of its consumer.
func TestWatchReadsNoFasterThanItsConsumer(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	keys := fill(t, store, 3*maxReplies)
	s := watchSession(t, Options{Address: store.Addr().String()})
	w := startWatch(t, s, WatchOptions{}, keys...)
	await.State(t, store, func(st emulator.State) bool { return st.Registrations == maxReplies })
	// Another watch does not wait for it.
	wantEvents(t, startWatch(t, s, WatchOptions{}, "other"), "initial other")
	if n := store.State().Registrations; n != maxReplies+1 {
		t.Errorf("%d registrations, want %d", n, maxReplies+1)
	}
	for _, key := range keys {
		wantEvents(t, w, "initial "+key+` "v"`)
	}
}

// TestWatchOverflowBeforeItBegan: changes that fill the buffer while a watch begins end it at once.
func TestWatchOverflowBeforeItBegan(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var once sync.Once
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() != wire.VerbGet {
			return emulator.Action{}
		}
		once.Do(func() {
			for i := range 10 {
				write(t, store, "SET", "a", fmt.Sprint(i))
				write(t, store, "SET", "b", fmt.Sprint(i))
			}
		})
		return emulator.Action{Drop: true}
	})
	s := watchSession(t, Options{Address: store.Addr().String()})
	if _, err := s.Watch(t.Context(), []string{"a", "b"}, WatchOptions{Buffer: 3}); !errors.Is(err, ErrOverflow) {
		t.Errorf("error %v, want ErrOverflow", err)
	}
}

// TestWatchKeyMemory: a watched key takes less than a kilobyte, with its registration in the emulator.
func TestWatchKeyMemory(t *testing.T) {
	store := emulator.Start(t)
	n := 100_000
	if full.Race {
		n = 20_000
	}
	fill(t, store, n)
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	w := startWatch(t, watchSession(t, Options{Address: store.Addr().String()}), WatchOptions{Match: "k*", Ready: true, Rescan: time.Hour})
	for next(t, w).Kind != EventReady {
	}
	if each := (heap() - before) / n; each > 800 {
		t.Errorf("%d bytes for each key", each)
	}
}

// TestWatchWhateverComes begins, reads, abandons and closes watches of the same keys while keys are refused, written and
// deleted, answers are lost, and the connection breaks. Nothing hangs, and no goroutine panics.
func TestWatchWhateverComes(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
		return a.ClientID == "" || a.On != fmt.Sprintf("k%06d", refused.Load())
	})})
	const n = 40
	keys := fill(t, store, n)
	store.Intercept(func(r emulator.Request) emulator.Action {
		return emulator.Action{Drop: rand.IntN(50) == 0}
	})
	s := watchSession(t, Options{Address: store.Addr().String()})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				o := WatchOptions{Buffer: 1 + rand.IntN(5), Rescan: time.Millisecond, forgetAfter: time.Millisecond, Ready: rand.IntN(2) == 0}
				named := append([]string{}, keys[:rand.IntN(n)]...)
				if rand.IntN(2) == 0 || len(named) == 0 {
					o.Match = fmt.Sprintf("k*%d", rand.IntN(10))
				}
				if rand.IntN(2) == 0 {
					o.Audit = time.Millisecond
				}
				limited, end := context.WithTimeout(ctx, time.Duration(rand.IntN(50))*time.Millisecond)
				if w, err := s.Watch(limited, named, o); err == nil {
					for range rand.IntN(100) {
						if _, err := w.Next(limited); err != nil {
							break
						}
					}
					_ = w.closeWithin(limited)
				}
				end()
			}
		})
	}
	wg.Go(func() {
		for i, tick := 0, time.Tick(time.Millisecond/2); ctx.Err() == nil; i++ {
			<-tick
			refused.Store(rand.Int64N(n))
			key := keys[rand.IntN(n)]
			if store.Delete(key); rand.IntN(3) > 0 {
				put(t, store, key, "new")
			}
			if i%200 == 0 {
				store.DropAll()
			}
		}
	})
	wg.Wait()
}
