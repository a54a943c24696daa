//go:build unix

package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/full"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
	"github.com/sscli/sscli/internal/wire"
)

// A witness writes with NX to a broker, twice for each key, and notes when two stores decided.
type witness struct {
	t    *testing.T
	conn *mqtt.Conn
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	answers map[string]int // replies by correlation data
	granted map[string]int // positive replies by key
	twice   []time.Time    // when a request or a key was decided for the second time
	last    time.Time      // when the last reply came
}

// watchStores starts a witness.
func watchStores(t *testing.T, address string) *witness {
	t.Helper()
	w := &witness{t: t, done: make(chan struct{}), answers: make(map[string]int), granted: make(map[string]int)}
	topic := wire.ResponseTopic("witness")
	conn, err := mqtt.Dial(t.Context(), mqtt.Options{Address: address, ClientID: "witness", Subscribe: []string{topic}, OnMessage: w.receive})
	if err != nil {
		t.Fatal(err)
	}
	w.conn = conn
	prefix := rand.Text() // a store may have the keys of an earlier witness
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	go func() {
		defer close(w.done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			key := fmt.Sprint(prefix, i)
			for n := range 2 {
				words := []string{"SET", key, fmt.Sprint(n), "NX"}
				if i%2 == 1 { // as a lock
					words = append(words, "PX", "60000")
				}
				m := mqtt.Message{Topic: wire.RequestTopic, ResponseTopic: topic, Correlation: []byte(fmt.Sprint(key, "/", n)), Payload: wire.AppendRequest(nil, words...),
					User: []mqtt.Property{{Name: wire.PropTimestamp, Value: fmt.Sprintf("%d:0:witness", time.Now().UnixMilli())}}}
				if conn.Publish(ctx, m, func(error) {}) != nil {
					return
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(w.end)
	return w
}

func (w *witness) receive(m mqtt.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	id := string(m.Correlation)
	key, _, _ := strings.Cut(id, "/")
	w.answers[id]++
	if string(m.Payload) == "+OK\r\n" {
		w.granted[key]++
	}
	if w.answers[id] > 1 || w.granted[key] > 1 {
		w.twice = append(w.twice, w.last)
	}
}

// await waits until a reply comes.
func (w *witness) await() {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		w.mu.Lock()
		last := w.last
		w.mu.Unlock()
		if last.After(began) {
			return
		}
	}
}

// end stops the witness and fails the test if two stores decided for longer than one probe.
func (w *witness) end() {
	w.stop()
	<-w.done
	_ = w.conn.Close() // the broker may have ended
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.twice); n > 0 && w.twice[n-1].Sub(w.twice[0]) > 2*time.Second {
		w.t.Errorf("two stores decided %d times in %v", n, w.twice[n-1].Sub(w.twice[0]))
	}
	w.twice = nil
}

// serveAttached starts serve --attach. The terminal shows both its streams.
func serveAttached(t *testing.T, address string, args ...string) *conversation {
	t.Helper()
	both := func(cmd *exec.Cmd) { cmd.Stdout = cmd.Stderr }
	return converse(t, []string{"SSCLI_URL=mqtt://" + address}, both, append([]string{"serve", "--attach"}, args...)...)
}

func (c *conversation) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// stop stops the process, and waits until it has stopped.
func (c *conversation) stop() {
	c.t.Helper()
	c.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		c.t.Fatalf("stop: %v, status %v", err, status)
	}
}

const (
	readyAttached = "mqtt://127.0.0.1:"
	foundAttached = "another state store serves on this broker: process"
	cameAttached  = "another state store came to this broker; this one serves and stays"
)

// changes checks that the first store ended because of the second one, that both logs say so, and ends the second.
func changes(t *testing.T, first, second *conversation) {
	t.Helper()
	if code := first.end(); code != 15 || !strings.Contains(first.screen(), foundAttached) {
		t.Errorf("the store that was away: exit code %d: %s", code, first.screen())
	}
	second.await(cameAttached)
	second.signal(syscall.SIGTERM)
	if code := second.end(); code != 143 {
		t.Errorf("the store that serves: exit code %d: %s", code, second.screen())
	}
}

var attachRounds = flag.Int("attach-rounds", 0, "rounds of the tests of stores that replace each other, see scripts/long.sh; 0 = a few")

// rounds runs a test a few times, and at least 3 times as a slow test.
func rounds(t *testing.T, few int, test func(t *testing.T)) {
	if full.Check() {
		few = max(few, 3)
	}
	for range cmp.Or(*attachRounds, few) {
		test(t)
	}
}

func attachBroker(t *testing.T) (*mosquitto.Broker, string) {
	t.Helper()
	b := mosquitto.Start(t, "max_queued_messages 0\nset_tcp_nodelay true\nmax_keepalive 10", mosquitto.Anonymous)
	return b, b.Addresses[0]
}

// TestAttachStopped: a store that is stopped, for a shorter or a longer time than the keep-alive, does not serve
// beside the store that replaced it.
func TestAttachStopped(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, long := range []bool{false, true} {
		for name, args := range map[string][][]string{"one id": {nil, nil}, "two ids": {{"-i", "store-1"}, {"-i", "store-2"}}} {
			t.Run(fmt.Sprint(name, ", long ", long), func(t *testing.T) {
				t.Parallel()
				if long {
					full.Slow(t)
				}
				rounds(t, 1, func(t *testing.T) {
					_, address := attachBroker(t)
					first := serveAttached(t, address, args[0]...)
					first.await(readyAttached)
					w := watchStores(t, address)
					w.await()
					first.stop()
					second := serveAttached(t, address, args[1]...)
					second.await(readyAttached)
					if long {
						time.Sleep(16 * time.Second) // the keep-alive of Mosquitto cannot be seen
					}
					w.await()
					first.signal(syscall.SIGCONT)
					changes(t, first, second)
					w.end()
				})
			})
		}
	}
}

// TestAttachGaveWay: what a store had that gave way can be read from its file, and compared with the store that serves.
func TestAttachGaveWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long")
	}
	_, address := attachBroker(t)
	dir := t.TempDir()
	old, exported := filepath.Join(dir, "old.db"), filepath.Join(dir, "old.jsonl")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "sscli")); err != nil {
		t.Fatal(err)
	}
	env := []string{"SSCLI_URL=mqtt://" + address, "PATH=" + dir}
	run := func(code int, args ...string) string {
		t.Helper()
		c := converse(t, env, nil, args...)
		if got := c.end(); got != code {
			t.Fatalf("%q: exit code %d, want %d: %s%s", args, got, code, c.screen(), &c.out)
		}
		return c.out.String()
	}
	first := serveAttached(t, address, "--data", old)
	first.await(readyAttached)
	run(0, "set", "recipe", "A")
	run(0, "set", "shift", "early")
	first.stop()
	second := serveAttached(t, address, "--data", filepath.Join(dir, "new.db"))
	second.await(readyAttached)
	run(0, "set", "recipe", "B")
	run(0, "set", "order", "7")
	first.signal(syscall.SIGCONT)
	if code := first.end(); code != 15 {
		t.Errorf("the store that was away: exit code %d: %s", code, first.screen())
	}
	lines := run(0, "serve", "--data", old, "--listen", "127.0.0.1:0", "--", "sscli", "export")
	if err := os.WriteFile(exported, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	differ := regexp.MustCompile(`\d+:\d+:StateStore`).ReplaceAllString(run(1, "diff", exported, "-o", "raw"), "V")
	if want := "changed\trecipe\tV\t?\tB\tA\nadded\tshift\t-\t?\t\tearly\nremoved\torder\tV\t-\t7\t\n"; differ != want {
		t.Errorf("the stores differ by %q, want %q", differ, want)
	}
}

// TestAttachTogether: of two stores that start at the same time, exactly one serves.
func TestAttachTogether(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long")
	}
	for name, args := range map[string][][]string{"one id": {nil, nil}, "two ids": {{"-i", "store-1"}, {"-i", "store-2"}}} {
		rounds(t, 3, func(t *testing.T) {
			_, address := attachBroker(t)
			stores := []*conversation{serveAttached(t, address, args[0]...), serveAttached(t, address, args[1]...)}
			ended := make(chan int, 2)
			for i, store := range stores {
				go func() {
					<-store.closed
					ended <- i
				}()
			}
			loser := <-ended
			if code := stores[loser].end(); code != 15 {
				t.Errorf("%s: exit code %d: %s", name, code, stores[loser].screen())
			}
			winner := stores[1-loser]
			winner.await(readyAttached)
			w := watchStores(t, address)
			w.await()
			w.end()
			winner.signal(syscall.SIGTERM)
			if code := winner.end(); code != 143 {
				t.Errorf("%s: the other one: exit code %d: %s", name, code, winner.screen())
			}
		})
	}
}

// TestAttachBrokerRestarts: a store says that its broker goes and comes, and serves again. One that stands by says the
// same, and does not serve meanwhile, but when the first one has ended.
func TestAttachBrokerRestarts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long")
	}
	broker, address := attachBroker(t)
	first := serveAttached(t, address)
	first.await(readyAttached)
	second := serveAttached(t, address, "--standby=5s")
	second.await("standing by")
	restarts := 0
	rounds(t, 3, func(t *testing.T) {
		restarts++
		broker.Restart(t)
		w := watchStores(t, address)
		w.await()
		for _, store := range []*conversation{first, second} {
			for strings.Count(store.screen(), "connected to the broker again") < restarts {
				select {
				case <-store.more:
				case <-store.closed:
					t.Fatalf("%d restarts, and the store ended: %s", restarts, store.screen())
				}
			}
		}
		w.end()
	})
	for _, store := range []*conversation{first, second} {
		if n := strings.Count(store.screen(), "the connection to the broker was lost, trying again"); n != restarts {
			t.Errorf("%d restarts, a store lost its broker %d times: %s", restarts, n, store.screen())
		}
	}
	if strings.Contains(second.screen(), readyAttached) {
		t.Errorf("the store that stands by served: %s", second.screen())
	}
	first.signal(syscall.SIGKILL)
	second.await("its data may be older")
	second.await(readyAttached)
	w := watchStores(t, address)
	w.await()
	w.end()
}

// A cutProxy is a connection to a broker that can be cut.
type cutProxy struct {
	address string
	mu      sync.RWMutex // held while the connection is cut
}

func newCutProxy(t *testing.T, to string) *cutProxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	p := &cutProxy{address: ln.Addr().String()}
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			go p.copy(in, out)
			go p.copy(out, in)
		}
	}()
	return p
}

func (p *cutProxy) copy(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.RLock()
		_, failed := to.Write(buf[:n])
		p.mu.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}

// askRedis returns the reply of a store's Redis port to KEYS, until the end of its line.
func askRedis(t *testing.T, store *conversation) string {
	t.Helper()
	store.await("redis://")
	_, address, _ := strings.Cut(store.screen(), "redis://")
	conn, err := net.Dial("tcp", strings.Fields(address)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("KEYS none\r\n")); err != nil {
		t.Fatal(err)
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// TestAttachCut: a store whose network is cut, for a shorter or a longer time than the keep-alive, does not serve beside
// the store that replaced it, neither MQTT nor Redis clients.
func TestAttachCut(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, long := range []bool{false, true} {
		t.Run(fmt.Sprint("long ", long), func(t *testing.T) {
			t.Parallel()
			if long {
				full.Slow(t)
			}
			rounds(t, 1, func(t *testing.T) {
				_, address := attachBroker(t)
				proxy := newCutProxy(t, address)
				first := serveAttached(t, proxy.address, "--redis", "127.0.0.1:0")
				first.await(readyAttached)
				if reply := askRedis(t, first); !strings.HasPrefix(reply, "*0") {
					t.Errorf("the Redis port of a store that serves: %q", reply)
				}
				w := watchStores(t, address)
				w.await()
				proxy.mu.Lock()
				second := serveAttached(t, address)
				second.await(readyAttached)
				if reply := askRedis(t, first); !strings.HasPrefix(reply, "-LOADING ") {
					t.Errorf("the Redis port of a store whose network is cut: %q", reply)
				}
				if long {
					time.Sleep(16 * time.Second) // as in TestAttachStopped
				}
				w.await()
				proxy.mu.Unlock()
				changes(t, first, second)
				w.end()
			})
		})
	}
}
