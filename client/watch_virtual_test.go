package client

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// watchCuts: a long run is go test ./client -run TestWatchesOfOneSession -watch.cuts 10000
var watchCuts = flag.Int("watch.cuts", 400, "how often the connection of the watches of one session is cut")

// scissors cut the connections of a session at every stage.
type scissors struct {
	mu     sync.Mutex
	rng    *rand.Rand
	most   int            // maximum number of cuts
	all    int            // number of cuts so far
	cuts   map[string]int // number of cuts by stage
	waits  map[string]string
	stage  string // stage of the connection before it has requests
	synced bool   // the connection once had nothing outstanding
}

// cutting is a connection that breaks after some bytes, or some time.
type cutting struct {
	net.Conn
	s    *scissors
	mu   sync.Mutex
	left int
	cut  sync.Once

	drips bool // until SUBACK, bytes come one by one, so that SUBACK does not come with CONNACK
}

func (s *scissors) dial(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		c := &cutting{Conn: nc, s: s, left: 1 << 30}
		s.stage, s.synced = "CONNECT", false
		clear(s.waits)
		switch s.rng.IntN(5) {
		case 0:
			c.left = s.rng.IntN(300)
		case 1, 2:
			c.left = s.rng.IntN(8000)
		case 3:
			c.left = s.rng.IntN(40000)
		case 4:
			c.drips = true
		}
		time.AfterFunc(time.Duration(s.rng.Int64N(int64(4*time.Second))), c.sever)
		return c, nil
	}
}

// trace follows the stage of the connection.
func (s *scissors) trace(e mqtt.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Type == "CONNACK":
		s.stage = "SUBSCRIBE"
	case e.Type == "SUBACK":
		s.stage = "idle"
	case e.Type != "PUBLISH":
	case e.Sent:
		verb := "request"
		if words, err := wire.ParseRequest(e.Message.Payload); err == nil {
			verb = string(words[0])
		}
		s.waits[string(e.Message.Correlation)] = verb
	default:
		delete(s.waits, string(e.Message.Correlation))
		s.synced = s.synced || len(s.waits) == 0
	}
}

func (c *cutting) sever() {
	c.cut.Do(func() {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if c.s.all >= c.s.most {
			return
		}
		stage := c.s.stage
		if verbs := slices.Sorted(maps.Values(c.s.waits)); len(verbs) > 0 {
			if stage = verbs[len(verbs)-1]; c.s.synced {
				stage = "later " + stage // of an audit, a join or a leave
			}
		}
		c.s.cuts[stage]++
		c.s.all++
		c.Close()
	})
}

// take reduces n to the number of bytes that may still pass.
func (c *cutting) take(n int) int {
	if c.s.total() >= c.s.most {
		return n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(n, c.left)
	c.left -= n
	return n
}

func (c *cutting) Read(p []byte) (int, error) {
	// Later, dripping would delay notifications: a change made before a watch began, to a key that is missing
	// by then, would become an event of that watch.
	if c.drips && len(p) > 0 && c.s.begins() {
		p = p[:1]
		time.Sleep(50 * time.Millisecond)
	}
	n, err := c.Conn.Read(p)
	if passed := c.take(n); passed < n {
		c.sever()
		return passed, err
	}
	return n, err
}

func (c *cutting) Write(p []byte) (int, error) {
	if n := c.take(len(p)); n < len(p) {
		_, _ = c.Conn.Write(p[:n])
		c.sever()
		return n, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// begins reports whether the connection waits for CONNACK or SUBACK.
func (s *scissors) begins() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stage == "CONNECT" || s.stage == "SUBSCRIBE"
}

func (s *scissors) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// A record holds the changes made to each key. The lock is a channel, because a goroutine that waits for a
// mutex would stop the virtual time.
type record struct {
	lock chan struct{}
	done map[string][]operation
}

// lengths returns the number of changes of each key.
func (r *record) lengths() map[string]int {
	r.lock <- struct{}{}
	defer func() { <-r.lock }()
	n := make(map[string]int)
	for key, done := range r.done {
		n[key] = len(done)
	}
	return n
}

// write changes a key at random, or sets it to value.
func (r *record) write(t *testing.T, s *Session, key, value string) {
	r.lock <- struct{}{}
	defer func() { <-r.lock }()
	if value == "" {
		if d, err := s.Del(t.Context(), key); err != nil {
			t.Errorf("delete: %v", err)
		} else if d.Deleted {
			r.done[key] = append(r.done[key], operation{EventDelete, d.Version, time.Now()})
		}
		return
	}
	if set, err := s.Set(t.Context(), key, []byte(value)); err != nil {
		t.Errorf("set: %v", err)
	} else {
		r.done[key] = append(r.done[key], operation{EventSet, set.Version, time.Now()})
	}
}

// account compares a watch's events of a key with the changes made to it: done[:start] before Watch was
// called and done[:ready] before it returned.
func account(done []operation, events []Event, start, ready int) error {
	next, gap, loose := start, false, true
	position := func(v wire.Version) int {
		return slices.IndexFunc(done, func(o operation) bool { return o.kind == EventSet && o.version.Equal(v) })
	}
	for n, e := range events {
		i := next
		switch e.Kind {
		case EventGap:
			gap = true
			continue
		case EventInitial, EventResync:
			if !e.HasValue {
				continue
			}
			if i = position(e.Version); i < 0 {
				return fmt.Errorf("event %d, %s %s: nobody wrote that", n, e.Kind, e.Version)
			}
			if e.Kind == EventInitial {
				next, loose = i+1, false
				continue
			}
			i++
		case EventSet, EventDelete:
			for i < len(done) && !done[i].matches(e) {
				i++
			}
			if i == len(done) {
				return fmt.Errorf("event %d, %s %s: not done, or seen before", n, e.Kind, e.Version)
			}
		default:
			continue
		}
		if i < next {
			return fmt.Errorf("event %d, %s %s: older than the one before", n, e.Kind, e.Version)
		}
		if i > next && !gap && !(loose && i <= ready) {
			return fmt.Errorf("event %d, %s %s: %d changes before it were lost silently%s", n, e.Kind, e.Version, i-next, around(events, n, done, next))
		}
		if next = i; e.Kind != EventResync {
			next++
		}
		gap, loose = gap && e.Version.IsZero(), false
	}
	return nil
}

// TestWatchesOfOneSession: eight watches of overlapping keys on one session join and leave while its
// connection is cut at every stage. Each change is an event or lies in a gap, every watch gets events to the
// end, and each call ends within its context.
func TestWatchesOfOneSession(t *testing.T) {
	t.Parallel()
	for name, variants := range map[string]emulator.Variants{
		"real": {}, "delete no version": {DeleteNoVersion: true}, "delete new version": {DeleteNewVersion: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cuts := *watchCuts
			if name != "real" {
				cuts /= 10
			}
			watchesOfOneSession(t, variants, cuts)
		})
	}
}

func watchesOfOneSession(t *testing.T, variants emulator.Variants, cuts int) {
	const watches, end = 8, "the end"
	keys := []string{"a", "b", "c", "d", "e", "f"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	shears := &scissors{most: cuts, rng: rand.New(rand.NewPCG(seed, 0)), cuts: make(map[string]int), waits: make(map[string]string)}
	var joins, failed, gaps, events, unaudited int
	synctest.Test(t, func(t *testing.T) {
		store := startVirtual(t, emulator.Options{Variants: variants})
		defer store.Close()
		writer := store.dial(t, newBarrier(), Options{})
		defer writer.Close()
		s, err := New(Options{
			Address: "virtual:1883", ClientID: "me",
			Dial: shears.dial(store.net.dial(newBarrier())), Trace: shears.trace,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var mu sync.Mutex // guards the random numbers and the counts
		rng := rand.New(rand.NewPCG(seed, 1))
		random := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return rng.IntN(n)
		}
		between := func(least, most time.Duration) time.Duration {
			return least + time.Duration(random(int(most-least)))
		}
		store.Intercept(func(r emulator.Request) emulator.Action {
			if r.ClientID != "me" || shears.total() >= cuts {
				return emulator.Action{}
			}
			switch random(300) {
			case 0:
				return emulator.Action{Drop: true}
			case 1:
				return emulator.Action{DropReply: true}
			case 2:
				return emulator.Action{DelayReply: between(0, 15*time.Second)}
			case 3:
				return emulator.Action{CutAfter: true}
			case 4:
				return emulator.Action{Refuse: 0x97}
			}
			return emulator.Action{DelayReply: between(0, 20*time.Millisecond)}
		})

		done := &record{lock: make(chan struct{}, 1), done: make(map[string][]operation)}
		quiet := make(chan struct{}) // closed after enough cuts
		var writing, watching sync.WaitGroup
		writing.Go(func() {
			for i := 0; shears.total() < cuts; i++ {
				time.Sleep(between(0, 300*time.Millisecond))
				value := ""
				if random(4) > 0 {
					value = fmt.Sprint("value ", i)
				}
				done.write(t, writer, keys[random(len(keys))], value)
				if random(10) == 0 { // another request may be the one that reconnects
					ctx, cancel := context.WithTimeout(t.Context(), between(time.Millisecond, time.Second))
					_, _ = s.Get(ctx, "a")
					cancel()
				}
			}
			time.Sleep(time.Minute) // no more cuts; time to establish the watches that are still starting
			close(quiet)
		})
		for range watches {
			watching.Go(func() {
				for last := false; !last; {
					time.Sleep(between(0, time.Second))
					var some []string
					for _, key := range keys {
						if random(3) == 0 {
							some = append(some, key)
						}
					}
					if len(some) == 0 {
						some = append(some, keys[random(len(keys))])
					}
					o := WatchOptions{}
					if random(2) == 0 {
						o.Audit = between(time.Second, 10*time.Second)
					}
					start := done.lengths()
					limit := between(50*time.Millisecond, 10*time.Second)
					var w *Watch
					if err := within(t, limit, "Watch", func(ctx context.Context) (err error) {
						w, err = s.Watch(ctx, some, o)
						return err
					}); err != nil {
						mu.Lock()
						failed++
						mu.Unlock()
						continue
					}
					ready := done.lengths()
					stay, cancel := context.WithTimeout(t.Context(), between(0, 40*time.Second))
					seen := make(map[string][]Event)
					missing := make(map[string]bool)
					for _, key := range some {
						missing[key] = true
					}
					for {
						e, err := w.Next(stay)
						if err != nil && stay.Err() != nil && !last {
							select {
							case <-quiet:
								// This watch stays until it has all events.
								last = true
								cancel()
								stay, cancel = context.WithTimeout(t.Context(), 10*time.Minute)
								for _, key := range some {
									done.write(t, writer, key, end)
								}
								continue
							default:
							}
						}
						if err != nil {
							if stay.Err() == nil {
								t.Errorf("a watch ended with %v", err)
							}
							break
						}
						mu.Lock()
						events++
						switch e.Kind {
						case EventGap:
							gaps++
						case "unaudited":
							unaudited++
						}
						mu.Unlock()
						seen[e.Key] = append(seen[e.Key], e)
						if last && string(e.Value) == end {
							if delete(missing, e.Key); len(missing) == 0 {
								break
							}
						}
					}
					cancel()
					if last && len(missing) > 0 {
						t.Errorf("a watch is deaf for %v", slices.Sorted(maps.Keys(missing)))
					}
					_ = within(t, between(50*time.Millisecond, 5*time.Second), "Close", w.close)
					for {
						e, ok, err := w.pop()
						if !ok {
							if !errors.Is(err, ErrClosed) {
								t.Errorf("a closed watch ended with %v", err)
							}
							break
						}
						seen[e.Key] = append(seen[e.Key], e)
					}
					done.lock <- struct{}{}
					for _, key := range some {
						if err := account(done.done[key], seen[key], start[key], ready[key]); err != nil {
							t.Errorf("key %s: %v", key, err)
						}
					}
					<-done.lock
					mu.Lock()
					joins++
					mu.Unlock()
					if t.Failed() {
						return
					}
				}
			})
		}
		writing.Wait()
		watching.Wait()
		time.Sleep(time.Minute)
		if n := store.State().Registrations; n > 0 {
			t.Errorf("%d registrations are left", n)
		}
	})
	t.Logf("%d cuts: %v", shears.total(), shears.cuts)
	t.Logf("%d watches, %d that did not come about, %d events, %d gaps, %d audits that could not be made", joins, failed, events, gaps, unaudited)
}
