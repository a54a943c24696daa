package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/freeport"
	"github.com/sscli/sscli/internal/testkit/testpeer"
	"github.com/sscli/sscli/internal/wire"
)

// A cutter is a TCP proxy that breaks its connections.
type cutter struct {
	address string
	delay   time.Duration // minimum latency of bytes towards the client

	mu      sync.Mutex
	changed sync.Cond // guards conns and over; signals their changes
	target  string
	conns   map[net.Conn]*int // bytes that may still pass towards the client; nil = any number
	over    bool              // no more connections will come
}

func startCutter(t *testing.T, target string, delay time.Duration) *cutter {
	c := &cutter{target: target, delay: delay, conns: make(map[net.Conn]*int)}
	c.changed.L = &c.mu
	c.address = testpeer.Serve(t, func(_ int, down net.Conn) {
		c.mu.Lock()
		target := c.target
		c.conns[down] = nil
		c.changed.Broadcast()
		c.mu.Unlock()
		testpeer.Relay(down, target, nil, c.copyDown)
		c.mu.Lock()
		delete(c.conns, down)
		c.mu.Unlock()
	})
	return c
}

func (c *cutter) copyDown(down, up net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := up.Read(buf)
		time.Sleep(c.delay)
		c.mu.Lock()
		left, open := c.conns[down]
		last := left != nil && n >= *left
		if last {
			n = *left
		} else if left != nil {
			*left -= n
		}
		c.mu.Unlock()
		if !open {
			return
		}
		if _, writeErr := down.Write(buf[:n]); err != nil || writeErr != nil || last {
			return
		}
	}
}

// cut breaks the current connection or, until ctx ends, the next one: at once, or after up to within more
// bytes, anywhere in a packet.
func (c *cutter) cut(ctx context.Context, within int) {
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
		c.changed.Broadcast()
	})()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.conns) == 0 && !c.over {
		c.changed.Wait()
	}
	for conn, left := range c.conns {
		if within == 0 || left != nil {
			conn.Close()
			delete(c.conns, conn)
			continue
		}
		n := 1 + rand.N(within)
		c.conns[conn] = &n
	}
}

// An operation is a change that the writer of a test made.
type operation struct {
	kind    EventKind
	version wire.Version
	over    time.Time // when the writer had the reply
}

// checkGap checks that a gap, if any, does not begin after a change that it hides.
func (o operation) checkGap(t *testing.T, key string, gap Event) {
	t.Helper()
	latest := o.over
	if o.kind == EventSet { // the version of a deletion may be older
		latest = o.version.Time()
	}
	if gap.From.After(latest) {
		t.Errorf("key %s: the gap begins %v after the change %s %s, which it hides", key, gap.From.Sub(latest), o.kind, o.version)
	}
}

// before reports whether a change happened before a value was read, or produced it. A deletion may have the
// version of the value that it deleted.
func (o operation) before(read Event) bool {
	order := o.version.Compare(read.Version)
	return order < 0 || order == 0 && o.kind == EventSet
}

// checkWatched compares the events of one key with the changes made to it: all of them in order, once, and
// none left out except in a gap.
func checkWatched(t *testing.T, key string, done []operation, events []Event) {
	t.Helper()
	next, gap, first := 0, false, Event{}
	for n, e := range events {
		switch e.Kind {
		case EventGap:
			if !gap {
				first = e // only a later value shows which changes a gap hides
			}
			gap = true
		case EventInitial:
			for next < len(done) && e.HasValue && done[next].before(e) {
				next++
			}
		case EventSet, EventDelete:
			i := next
			for i < len(done) && !done[i].matches(e) {
				i++
			}
			if i == len(done) {
				t.Fatalf("key %s: event %d, %s %s: not done, or seen before", key, n, e.Kind, e.Version)
			}
			if i > next && !gap {
				t.Fatalf("key %s: event %d, %s %s: %d changes before it were lost silently%s", key, n, e.Kind, e.Version, i-next, around(events, n, done, next))
			}
			if i > next {
				done[next].checkGap(t, key, first)
			}
			// Within a gap, a deletion without a version matches any deletion.
			next, gap = i+1, gap && e.Version.IsZero()
		case EventResync:
			i := next
			for e.HasValue && i < len(done) && done[i].before(e) {
				i++
			}
			if i > next && !gap {
				t.Fatalf("key %s: event %d, %s %s: %d changes before it were lost silently%s", key, n, e.Kind, e.Version, i-next, around(events, n, done, next))
			}
			if i > next {
				done[next].checkGap(t, key, first)
			}
			if e.HasValue {
				next, gap = i, false
			}
		}
	}
	if next < len(done) && !gap {
		t.Fatalf("key %s: the last %d of %d changes were lost silently", key, len(done)-next, len(done))
	}
}

// matches reports whether an event can stem from an operation. A deletion may have no version.
func (o operation) matches(e Event) bool {
	return o.kind == e.Kind && (e.Version.IsZero() || o.version.Equal(e.Version))
}

func around(events []Event, n int, done []operation, next int) string {
	var b strings.Builder
	for i := max(n-8, 0); i <= n; i++ {
		e := events[i]
		fmt.Fprintf(&b, "\n  event %d: %s %s %s %q", i, e.Kind, e.Continuity, e.Version, e.Value)
	}
	for i := max(next-3, 0); i < min(next+6, len(done)); i++ {
		fmt.Fprintf(&b, "\n  done %d: %s %s", i, done[i].kind, done[i].version)
	}
	return b.String()
}

// consume collects a watch's events by key until every key has its end value.
func consume(ctx context.Context, w *Watch, keys int, end string, up chan<- struct{}) (map[string][]Event, error) {
	events := make(map[string][]Event)
	ended := make(map[string]bool)
	for len(ended) < keys {
		e, err := w.Next(ctx)
		if err != nil {
			return events, err
		}
		if e.Kind == EventUp {
			select {
			case up <- struct{}{}:
			default:
			}
		}
		events[e.Key] = append(events[e.Key], e)
		if string(e.Value) == end {
			ended[e.Key] = true
		}
	}
	return events, nil
}

func TestWatchLosesNothingSilently(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		variants emulator.Variants
		cuts     int
		delay    time.Duration
	}{
		"real":               {emulator.Variants{}, 200, 0},
		"slow line":          {emulator.Variants{}, 20, 20 * time.Millisecond},
		"delete new version": {emulator.Variants{DeleteNewVersion: true}, 40, 0},
		"delete no version":  {emulator.Variants{DeleteNoVersion: true}, 40, 0},
		"DEL":                {emulator.Variants{NotifyDEL: true}, 40, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := emulator.Start(t, emulator.Options{Variants: test.variants})
			chaos(t, server.Addr().String(), test.cuts, test.delay, nil)
		})
	}
}

func TestWatchLosesNothingSilentlyWhenTheStoreRestartsEmpty(t *testing.T) {
	t.Parallel()
	addr := freeport.Address(t)
	server, err := emulator.New(emulator.Options{Listen: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	chaos(t, addr, 100, 0, func() {
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		if server, err = emulator.New(emulator.Options{Listen: addr}); err != nil {
			t.Fatal(err)
		}
	})
}

// chaos watches keys over a proxy that breaks the connection again and again while another client writes the
// keys, and accounts for every write. delay is the latency of the watch's connection. restart, if not nil, is
// called a few times between two writes.
func chaos(t *testing.T, broker string, cuts int, delay time.Duration, restart func()) {
	const keys, writesPerCut, restarts, end = 20, 50, 10, "the end"
	writes := cuts * writesPerCut
	proxy := startCutter(t, broker, delay)
	ctx := t.Context()
	writer, err := Dial(ctx, Options{Address: broker, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	watcher, err := Dial(ctx, Options{Address: proxy.address, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	prefix := NewClientID()
	var names []string
	for i := range keys {
		names = append(names, fmt.Sprintf("%s/%d", prefix, i))
	}
	w, err := watcher.Watch(ctx, names)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		events map[string][]Event
		err    error
	}
	collected := make(chan result, 1)
	up := make(chan struct{}, 1)
	up <- struct{}{}
	go func() {
		events, err := consume(ctx, w, keys, end, up)
		collected <- result{events, err}
	}()

	done := make(map[string][]operation)
	put := func(key, value string) {
		r, err := writer.Set(ctx, key, []byte(value))
		if err != nil {
			t.Fatal(err)
		}
		done[key] = append(done[key], operation{EventSet, r.Version, time.Now()})
	}
	for i := range writes {
		if i%writesPerCut == 0 {
			// Most cuts hit an established watch, some hit an attempt to restore it.
			if rand.N(4) > 0 {
				select {
				case <-up:
				case got := <-collected:
					t.Fatalf("the watch ended: %v", got.err)
				case <-time.After(time.Minute):
					t.Fatal("the watch does not come up again")
				}
			}
			proxy.cut(ctx, rand.N(2)*3000)
		}
		if restart != nil && i%(writes/restarts) == writes/restarts/2 {
			writer.mu.Lock()
			conn := writer.conn
			writer.mu.Unlock()
			restart()
			<-conn.Done()
		}
		key := names[rand.N(keys)]
		if rand.N(4) > 0 {
			put(key, fmt.Sprint("value ", i))
			continue
		}
		r, err := writer.Del(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if r.Deleted {
			done[key] = append(done[key], operation{EventDelete, r.Version, time.Now()})
		}
	}
	for _, key := range names {
		put(key, end)
	}
	got := <-collected
	if got.err != nil {
		t.Fatal(got.err)
	}
	delivered, gaps := 0, 0
	for _, key := range names {
		checkWatched(t, key, done[key], got.events[key])
		for _, e := range got.events[key] {
			switch e.Kind {
			case EventSet, EventDelete:
				delivered++
			case EventGap:
				gaps++
			}
		}
	}
	t.Logf("%d of %d changes delivered, %d gaps", delivered, writes, gaps)
}
