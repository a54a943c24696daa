package client

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/pipenet"
	"github.com/sscli/sscli/internal/testkit/full"
	"github.com/sscli/sscli/internal/wait"
	"github.com/sscli/sscli/internal/wire"
)

// pipes is a network in virtual time that a barrier can hold up.
type pipes struct{ *pipenet.Listener }

// dial returns a function for Options.Dial; barrier holds up its connections.
func (p pipes) dial(g *barrier) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := p.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gated{Conn: c, g: g}, nil
	}
}

// A barrier stops all traffic through it, as a stopped process or a stuck network does.
type barrier struct {
	mu   sync.Mutex
	open sync.Cond
	shut bool
}

func newBarrier() *barrier {
	g := new(barrier)
	g.open.L = &g.mu
	return g
}

func (g *barrier) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.open.Broadcast()
}

// pass waits until the barrier is open or the connection is closed.
func (c *gated) pass() {
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	for c.g.shut && !c.closed {
		c.g.open.Wait()
	}
}

type gated struct {
	net.Conn
	g      *barrier
	closed bool // guarded by g.mu
}

func (c *gated) Close() error {
	c.g.mu.Lock()
	c.closed = true
	c.g.open.Broadcast()
	c.g.mu.Unlock()
	return c.Conn.Close()
}

func (c *gated) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.pass()
	return n, err
}

func (c *gated) Write(p []byte) (int, error) {
	c.pass()
	return c.Conn.Write(p)
}

// A virtualStore is a store in a synctest bubble.
type virtualStore struct {
	*emulator.Server
	net pipes
}

func startVirtual(t testing.TB, o emulator.Options) *virtualStore {
	t.Helper()
	v := &virtualStore{net: pipes{pipenet.Listen()}}
	o.Listener = v.net
	server, err := emulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	v.Server = server
	return v
}

func (v *virtualStore) dial(t testing.TB, g *barrier, o Options) *Session {
	t.Helper()
	o.Address, o.Dial = "virtual:1883", v.net.dial(g)
	s, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// 3 bubbles are some 2000 rounds and take 10 s with the race detector; 400 take three minutes without it: go
// test ./client -run LockContest -lock.bubbles 400
var lockBubbles = flag.Int("lock.bubbles", 3, "how many contests of half an hour for a lock, and histories")

const (
	theLock     = "lock"
	theResource = "resource"
)

// locks are the locks of a contest; each protects one resource. Each client competes for all of them over one
// session.
var locks = []string{theLock, "lock 2"}

func resourceOf(lock string) string { return theResource + lock }

// A hold is one client's view of the time that it held a lock.
type hold struct {
	lock     string
	holder   string
	ttl      time.Duration
	acquired time.Time // when Lock returned
	stopped  time.Time // when the work under it stopped
	left     time.Time // when the lock was released, or the attempt given up; zero = it could not be released
	lost     Loss
}

// A contest lets clients compete for a lock in virtual time with every kind of failure, and checks what an
// observer of the store saw against what the clients believed.
type contest struct {
	t     *testing.T
	rng   *rand.Rand
	store *virtualStore
	end   time.Time

	mu    sync.Mutex
	holds []hold
	empty map[string][]time.Time // when the store forgot a lock
}

func (c *contest) random(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

// between returns a random duration.
func (c *contest) between(least, most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return least + time.Duration(c.rng.Int64N(int64(most-least)))
}

// misfortune decides what happens to the requests of the clients whose ids begin with x.
func (c *contest) misfortune(r emulator.Request) emulator.Action {
	if !strings.HasPrefix(r.ClientID, "x") || time.Now().After(c.end) {
		return emulator.Action{}
	}
	short, long := c.between(0, 500*time.Millisecond), c.between(0, 6*time.Second)
	switch c.random(42) {
	case 0:
		return emulator.Action{Drop: true}
	case 1:
		return emulator.Action{DropReply: true}
	case 2, 3:
		return emulator.Action{DelayReply: long}
	case 4, 5:
		return emulator.Action{Delay: long}
	case 6:
		return emulator.Action{Duplicate: true}
	case 7:
		return emulator.Action{Cut: true}
	case 8:
		return emulator.Action{CutAfter: true}
	case 9:
		return emulator.Action{Refuse: 0x97}
	case 10:
		return emulator.Action{Delay: short, DelayReply: long, PubackLast: true}
	case 11:
		return emulator.Action{DelayReply: long, NoPuback: true}
	case 12:
		return emulator.Action{DelayReply: short, Rewrite: func(a *emulator.Answer) { a.Payload = []byte("+OK") }}
	case 13:
		return emulator.Action{Delay: short, Rewrite: func(a *emulator.Answer) { a.Set("__stat", "") }}
	}
	return emulator.Action{Delay: short / 10, DelayReply: short / 10}
}

// byClock returns the default timing as measured by a local clock that is slow by rate: everything takes
// longer by the store's clock, so less of the margin is left.
func byClock(rate float64, o LockOptions) LockOptions {
	t, err := LockOptions{TTL: o.TTL}.Timing()
	if err != nil {
		return o // Lock reports the error
	}
	stretched := func(d time.Duration) time.Duration { return d + time.Duration(rate*float64(d)) }
	o.Grace, o.Margin = stretched(t.Grace), t.TTL-stretched(t.TTL-t.Margin)
	return o
}

// compete acquires, works and releases until the end of the contest, with a clock that is slow by rate.
func (c *contest) compete(id int, s *Session, lock string, rate float64) {
	for n := 0; time.Now().Before(c.end); n++ {
		h := hold{lock: lock, holder: fmt.Sprintf("x%d/%d", id, n)}
		o := LockOptions{
			TTL:    []time.Duration{time.Second, 2 * time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, 40 * time.Second}[c.random(6)],
			Holder: []byte(h.holder),
			Try:    c.random(8) == 0,
			Wait:   c.between(0, 30*time.Second),
		}
		h.ttl = o.TTL
		o = byClock(rate, o)
		ctx, cancel := context.WithTimeout(context.Background(), c.between(time.Second, time.Minute))
		l, err := s.Lock(ctx, lock, o)
		cancel()
		if err != nil {
			if _, open := errors.AsType[*LockUnknownError](err); !open {
				h.left = time.Now()
				c.note(h)
			}
			wait.For(context.Background(), c.between(0, 2*time.Second))
			continue
		}
		h.acquired = time.Now()
		c.work(s, l, c.between(0, 2*o.TTL))
		if lost, ok := errors.AsType[*LockLostError](context.Cause(l.Context())); ok {
			if h.lost = lost.Loss; lost.Loss == LossNoRenewal {
				// A client that stops uses all of its grace period.
				wait.For(context.Background(), l.Lease().UntilIn())
			}
		}
		h.stopped = time.Now()
		last := l.Token()
		limited, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := l.Release(limited); err == nil || errors.Is(err, ErrNotHolder) {
			h.left = time.Now()
		}
		cancel()
		c.note(h)
		if c.random(2) == 0 { // a client that does not notice that its lock is lost
			wait.For(context.Background(), c.between(0, 20*time.Second))
			c.write(context.Background(), s, lock, last)
		}
	}
}

func (c *contest) note(h hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = append(c.holds, h)
}

// work writes under the lock for some time, or until the lock is lost.
func (c *contest) work(s *Session, l *Lock, d time.Duration) {
	ctx, cancel := context.WithTimeout(l.Context(), d)
	defer cancel()
	for wait.For(ctx, c.between(100*time.Millisecond, 2*time.Second)) {
		c.write(ctx, s, l.Name(), l.Token())
	}
}

// write writes the token, so that the observer can check the order of the writes.
func (c *contest) write(ctx context.Context, s *Session, lock string, token wire.Version) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, _ = s.Set(ctx, resourceOf(lock), []byte(token.String()), SetOptions{WriteOptions: WriteOptions{Fence: token}})
}

// forget removes a lock from the store as a restart behind a running broker does: the store loses the lock
// and its watchers, and sends no notification.
func (c *contest) forget(lock string, clients int) {
	for id := range clients {
		c.store.Do(requestBy("x"+strconv.Itoa(id), "KEYNOTIFY", lock, "STOP"))
	}
	c.store.Do(requestBy("restart", "DEL", lock))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.empty[lock] = append(c.empty[lock], time.Now())
}

// forgotten reports whether the store forgot a lock while it was held. Then only the next renewal can tell
// the holder, and another client could acquire the lock before it. That renewal ends the hold within a TTL,
// unless the store forgot the lock between the two requests of the renewal: then the second request acquired
// the lock again, and nothing shows that it was free.
func (c *contest) forgotten(log []seen, h hold, at time.Time) bool {
	return slices.ContainsFunc(c.empty[h.lock], func(empty time.Time) bool {
		if empty.After(at) {
			return false
		}
		known := empty.Add(h.ttl)
		return h.stopped.Before(known) || slices.ContainsFunc(log, func(e seen) bool {
			return e.key == h.lock && e.present && e.value == h.holder && e.at.After(at) && e.at.Before(known)
		})
	})
}

// seen is a change of the store, with the time of the bubble's clock.
type seen struct {
	key     string
	value   string
	present bool
	version wire.Version
	at      time.Time
}

func (c *contest) observe(ctx context.Context, w *Watch) []seen {
	var log []seen
	for {
		e, err := w.Next(ctx)
		if err != nil {
			return log
		}
		log = append(log, seen{e.Key, string(e.Value), e.HasValue, e.Version, e.Time})
	}
}

// runContest returns how often clients tried to acquire the lock, acquired it and lost it.
func runContest(t *testing.T, seed uint64, clients int, length time.Duration) (rounds, acquired, lost int) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		rng := rand.New(rand.NewPCG(seed, 0))
		// The margins allow for a difference of 5 % between the store's clock and a client's. A slow clock of
		// the store is simulated by fast clocks of all clients.
		const most = 0.0225
		rate := rng.Float64() * most // by which the store's clock is fast
		slow := make([]float64, clients)
		for id := range slow {
			slow[id] = most * (2*rng.Float64() - 1)
		}
		c := &contest{t: t, rng: rng, store: startVirtual(t, emulator.Options{}), end: time.Now().Add(length), empty: make(map[string][]time.Time)}
		observer := c.store.dial(t, newBarrier(), Options{})
		keys := slices.Clone(locks)
		for _, lock := range locks {
			keys = append(keys, resourceOf(lock))
		}
		w, err := observer.Watch(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		observing, stop := context.WithCancel(t.Context())
		log := make(chan []seen, 1)
		go func() { log <- c.observe(observing, w) }()
		c.store.Intercept(c.misfortune)

		var people, spirits sync.WaitGroup
		quiet := make(chan struct{})
		for id := range clients {
			g := newBarrier()
			s := c.store.dial(t, g, Options{ClientID: "x" + strconv.Itoa(id), Timeout: 10 * time.Second})
			people.Go(func() {
				var both sync.WaitGroup
				for _, lock := range locks {
					both.Go(func() { c.compete(id, s, lock, slow[id]) })
				}
				both.Wait()
				s.Close()
			})
			spirits.Go(func() { // stops the client for a while, again and again
				defer g.set(false)
				for time.Now().Before(c.end) {
					select {
					case <-time.After(c.between(0, 90*time.Second)):
					case <-quiet:
						return
					}
					g.set(true)
					time.Sleep(c.between(0, 25*time.Second))
					g.set(false)
				}
			})
		}
		spirits.Go(func() {
			const step = 250 * time.Millisecond
			empties := c.between(0, 5*time.Minute)
			for cuts := c.between(0, 3*time.Minute); ; {
				select {
				case <-time.After(step):
				case <-quiet:
					return
				}
				c.store.FastForward(time.Duration(rate * float64(step)))
				if cuts -= step; cuts < 0 && time.Now().Before(c.end) {
					cuts = c.between(0, 3*time.Minute)
					c.store.DropAll()
				}
				if empties -= step; empties < 0 && time.Now().Before(c.end) {
					empties = c.between(0, 5*time.Minute)
					c.forget(locks[c.random(len(locks))], clients)
				}
			}
		})
		people.Wait()
		time.Sleep(time.Minute) // let everything outstanding arrive
		close(quiet)
		spirits.Wait()
		stop()
		rounds = len(c.holds)
		acquired, lost = c.check(<-log)
		observer.Close()
		if err := c.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return rounds, acquired, lost
}

// check compares what the observer saw with what the clients believed.
func (c *contest) check(log []seen) (acquired, lost int) {
	newest := make(map[string]wire.Version) // by key: the version of a lock, or the token in a resource
	for _, e := range log {
		if !e.present {
			continue
		}
		token := e.version
		if !slices.Contains(locks, e.key) {
			var err error
			if token, err = wire.ParseVersion(e.value); err != nil {
				c.t.Fatal(err)
			}
		}
		if token.Compare(newest[e.key]) < 0 {
			c.t.Errorf("%s: the token %s came after %s", e.key, token, newest[e.key])
		}
		newest[e.key] = token
	}
	for _, h := range c.holds {
		if !h.acquired.IsZero() {
			acquired++
		}
		if h.lost != "" {
			lost++
		}
		owner := ""
		for _, e := range log {
			if e.key != h.lock {
				continue
			}
			if !h.left.IsZero() && e.at.After(h.left) {
				if e.present && e.value == h.holder {
					c.t.Errorf("%s has left at %v and acquired at %v", h.holder, h.left, e.at)
				}
				continue
			}
			owner = e.value
			if !h.acquired.IsZero() && e.present && e.value != h.holder && e.at.After(h.acquired) && e.at.Before(h.stopped) && !c.forgotten(log, h, e.at) {
				c.t.Errorf("%s acquired at %v, while %s (lost: %q) held it from %v to %v\n%s", e.value, e.at, h.holder, h.lost, h.acquired, h.stopped, c.around(log, h))
			}
		}
		if !h.left.IsZero() && owner == h.holder {
			c.t.Errorf("%s has left %q at %v and the lock is still its: %+v\n%s", h.holder, h.lock, h.left, h, c.around(log, h))
		}
	}
	return acquired, lost
}

// around describes what happened to a lock around the time of a hold.
func (c *contest) around(log []seen, h hold) string {
	var text strings.Builder
	for _, e := range log {
		if e.key == h.lock && e.at.After(later(h.acquired, h.left.Add(-time.Minute)).Add(-h.ttl)) && e.at.Before(later(h.left, h.stopped).Add(time.Minute)) {
			fmt.Fprintf(&text, "%v: %q (%v) %s\n", e.at, e.value, e.present, e.version)
		}
	}
	fmt.Fprintf(&text, "forgotten at %v", c.empty[h.lock])
	return text.String()
}

// TestLockContest: however clients, network and clocks behave, no client acquires a lock while another
// believes that it holds it, every acquisition is known to a client, and tokens only grow. After a restart of
// the store that forgets a lock, former holders stop within a TTL, or have the lock again.
func TestLockContest(t *testing.T) {
	t.Parallel()
	const clients = 5
	length := 30 * time.Minute
	if full.Race {
		length /= 5
	}
	rounds, acquired, lost := 0, 0, 0
	for i := range *lockBubbles {
		seed := rand.Uint64()
		r, a, l := runContest(t, seed, clients, length)
		rounds, acquired, lost = rounds+r, acquired+a, lost+l
		if t.Failed() {
			t.Fatalf("bubble %d, seed %d", i, seed)
		}
	}
	t.Logf("%d rounds, %d acquisitions, %d of them lost", rounds, acquired, lost)
}
