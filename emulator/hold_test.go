package emulator_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestManyExpiries: when many keys expire at once, other clients don't wait until all of them are removed.
func TestManyExpiries(t *testing.T) {
	steps := 0
	for left := 100 * time.Millisecond; left < 10*time.Second; left *= 2 {
		if steps = expirySteps(t, left); steps > 5 {
			return
		}
	}
	t.Errorf("the keys were removed in %d steps", steps)
}

// expirySteps returns the number of steps, as other clients see them, in which many keys expire. The clock is advanced
// until the time left before that, which a slow machine may use up. Then FastForward removes them all in one step.
func expirySteps(t *testing.T, left time.Duration) int {
	t.Helper()
	const keys, every = 50_000, 5000
	var s *emulator.Server
	var c *redistest.Client
	var reading sync.WaitGroup
	var mu sync.Mutex
	expired, seen, all := 0, make(map[int]bool), make(chan struct{})
	s, c = startWithRedis(t, emulator.Options{Observe: func(e emulator.Event) {
		if e.Op != observe.Expire {
			return
		}
		if expired++; expired == keys {
			close(all)
		}
		if expired%every != 1 || s.Waiting() > 0 {
			return
		}
		reading.Go(func() {
			n := s.State().Keys
			mu.Lock()
			defer mu.Unlock()
			seen[n] = true
		})
		for s.Waiting() == 0 { // the store is locked
			runtime.Gosched()
		}
	}})
	at := s.Now().Add(time.Hour)
	var requests []byte
	for i := range keys {
		requests = append(requests, redistest.Request("SET", fmt.Sprint(i), "v", "PXAT", fmt.Sprint(at.UnixMilli()))...)
	}
	go func() { _, _ = c.Conn.Write(requests) }() // an error would show in the replies
	for range keys {
		if reply, err := c.Frame(); err != nil || string(reply) != "+OK\r\n" {
			t.Fatalf("%q, %v", reply, err)
		}
	}
	s.FastForward(at.Sub(s.Now()) - left)
	<-all
	reading.Wait()
	delete(seen, 0)
	return len(seen) + 1
}

// maxWait is the fraction of a long command's duration for which another client may wait.
const maxWait = 0.3

// longestWait returns the longest wait of another client for the store's lock while f runs, as a fraction of
// f's duration. It returns the minimum of many attempts, because a busy machine delays everything.
func longestWait(s *emulator.Server, f func()) float64 {
	least := 1.0
	for try := 0; try < 50 && least > maxWait/2; try++ {
		ended, result := make(chan struct{}), make(chan time.Duration)
		go func() {
			longest := time.Duration(0)
			for {
				select {
				case <-ended:
					result <- longest
					return
				default:
				}
				begin := time.Now()
				s.State()
				longest = max(longest, time.Since(begin))
			}
		}()
		begin := time.Now()
		f()
		took := time.Since(begin)
		close(ended)
		least = min(least, float64(<-result)/float64(took))
	}
	return least
}

// TestManyArguments: other clients proceed while a command with many arguments runs.
func TestManyArguments(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	s, c := startWithRedis(t, emulator.Options{})
	const n = 100_000
	words := func(command ...string) []byte {
		for i := range n {
			command = append(command, fmt.Sprint("argument", i))
		}
		return redistest.Request(command...)
	}
	frames := func(n int) {
		for range n {
			if reply, err := c.Frame(); err != nil || reply[0] == '-' {
				t.Errorf("%.100q, %v", reply, err)
			}
		}
	}
	run := func(name string, request []byte, replies int) {
		part := longestWait(s, func() {
			go func() { _, _ = c.Conn.Write(request) }() // an error would show in the reply
			frames(replies)
		})
		if part > maxWait {
			t.Errorf("%s: another client waits for %.0f%% of its time", name, 100*part)
		}
	}
	unwatch := redistest.Request("UNWATCH")
	run("WATCH", append(words("WATCH"), unwatch...), 2)
	run("MGET", words("MGET"), 1)
	run("EXISTS", words("EXISTS"), 1)
	go func() { _, _ = c.Conn.Write(append(redistest.Request("HELLO", "3"), words("SUBSCRIBE")...)) }()
	frames(n + 1)
	run("PUBSUB CHANNELS", redistest.Request("PUBSUB", "CHANNELS"), 1)
	run("PUBSUB CHANNELS *1*", redistest.Request("PUBSUB", "CHANNELS", "*1*"), 1)
}

// TestShortFirst: a short request does not wait for all the long requests before it, nor for pipelines of short
// requests, even if each of these came from another client.
func TestShortFirst(t *testing.T) {
	const crowd = 20
	var mu sync.Mutex
	var order []string
	blocked, release := make(chan struct{}), make(chan struct{})
	s, redisClient := startWithRedis(t, emulator.Options{Observe: func(e emulator.Event) {
		switch {
		case slices.Contains(e.Keys, "block"):
			mu.Lock()
			order = nil
			mu.Unlock()
			blocked <- struct{}{}
			<-release
		case slices.Contains(e.Keys, "short"):
			mu.Lock()
			order = append(order, "short")
			mu.Unlock()
		case e.Verb == "get" || e.Verb == "scan":
			mu.Lock()
			order = append(order, e.Verb)
			mu.Unlock()
		}
	}})
	for i := range 1000 { // keys that take long to match
		redisClient.Expect(t, "+OK\r\n", "SET", fmt.Sprint(strings.Repeat("a", 1000), i), "v")
	}
	pattern := "*" + strings.Repeat("a", 600) + "[b]"
	ann, blocker := connect(t, s, "ann"), connect(t, s, "blocker")
	redisCrowd := func(count int, command ...string) func(int) func() {
		return func(int) func() {
			c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
			go func() { _, _ = io.Copy(io.Discard, c.Conn) }()
			return func() {
				if _, err := c.Conn.Write(bytes.Repeat(redistest.Request(command...), count)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for _, test := range []struct {
		name     string
		attacker func(i int) (send func())
		requests int // of each attacker
		waiting  int // attackers that wait for the lock: of those who stand in line, only the first
	}{
		{"MQTT", func(i int) func() {
			c := connect(t, s, fmt.Sprint("scan", i))
			return func() { c.ask("SCAN " + pattern) }
		}, 1, crowd},
		{"Redis", redisCrowd(1, "SCAN", "0", "COUNT", "10000", "MATCH", pattern), 1, 1},
		{"Redis, pipelines", redisCrowd(40, "GET", "k"), 40, 1},
	} {
		all := make([]func(), crowd)
		for i := range all {
			all[i] = test.attacker(i)
		}
		blocker.ask("GET block")
		<-blocked
		for _, send := range all {
			send()
		}
		wait := func(n int) {
			for s.Waiting() < n {
				runtime.Gosched()
			}
		}
		wait(test.waiting)
		ann.ask("GET short")
		wait(test.waiting + 1)
		release <- struct{}{}
		ann.Expect("PUBACK 0x00", "reply $-1")
		blocker.Expect("PUBACK 0x00", "reply $-1")
		total := crowd*test.requests + 1
		await.State(t, s, func(emulator.State) bool {
			mu.Lock()
			defer mu.Unlock()
			return len(order) == total
		})
		mu.Lock()
		if at := slices.Index(order, "short"); at > total/2 {
			t.Errorf("%s: ann's GET was request %d of %d", test.name, at+1, total)
		}
		mu.Unlock()
	}
}
