package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// patience is how long a test waits for an expected event.
const patience = time.Minute

// A front is a gateway under test.
type front struct {
	*backend
	address string       // address for Redis clients
	direct  string       // address of the broker
	log     *logBuffer   // what the gateway has logged
	ended   <-chan error // result of keepConnected
}

// A logBuffer collects a log.
type logBuffer struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote sync.Cond
}

func newLogBuffer() *logBuffer {
	l := &logBuffer{}
	l.wrote.L = &l.mu
	return l
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrote.Broadcast()
	return l.text.Write(p)
}

func (l *logBuffer) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// await waits until the log contains text.
func (l *logBuffer) await(t *testing.T, text string) {
	t.Helper()
	late := false
	defer time.AfterFunc(patience, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.wrote.Broadcast()
	}).Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !strings.Contains(l.text.String(), text) {
		if late {
			t.Fatalf("%q is not in the log:\n%s", text, &l.text)
		}
		l.wrote.Wait()
	}
}

// onBoth runs a test against a store in the emulator, and against one attached to a Mosquitto broker.
func onBoth(t *testing.T, o emulator.Options, test func(t *testing.T, address string)) {
	t.Run("emulator", func(t *testing.T) {
		t.Parallel()
		test(t, emulator.Start(t, o).Addr().String())
	})
	t.Run("mosquitto", func(t *testing.T) {
		t.Parallel()
		address := mosquitto.Start(t, "set_tcp_nodelay true\nmax_queued_messages 0", mosquitto.Anonymous).Addresses[0]
		engine := emulator.AttachOptions{Address: address, ClientID: client.NewClientID(), MaxKeys: o.MaxKeys, ScanPage: o.ScanPage, Policy: o.Policy, Variants: o.Variants, Skew: o.Skew}
		store, err := emulator.Attach(t.Context(), engine)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Errorf("close the store: %v", err)
			}
		})
		test(t, address)
	})
}

// dial opens a session that does not go through the gateway.
func dial(t *testing.T, o client.Options) *client.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	s, err := client.Dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // some tests close the broker first
	return s
}

// start starts a gateway in front of the broker at address.
func start(t *testing.T, address string, timeout time.Duration, notify string, watch ...string) *front {
	t.Helper()
	return startWith(t, address, timeout, redis.Options{Notify: notify}, watch...)
}

func startWith(t *testing.T, address string, timeout time.Duration, o redis.Options, watch ...string) *front {
	t.Helper()
	return startAs(t, client.Options{Address: address, Timeout: timeout}, o, watch...)
}

func startAs(t *testing.T, upstream client.Options, o redis.Options, watch ...string) *front {
	t.Helper()
	s := dial(t, upstream)
	f := &front{direct: upstream.Address, log: newLogBuffer()}
	var err error
	log := slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if f.backend, err = open(t.Context(), s, upstream.Timeout, log, watch, o); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = ln.Addr().String()
	f.server.Serve(ln)
	ended := make(chan error, 1)
	f.ended = ended
	f.running.Go(func() { ended <- f.keepConnected(f.ctx) })
	t.Cleanup(func() {
		if err := f.close(); err != nil {
			t.Errorf("close the gateway: %v", err)
		}
	})
	return f
}

// A redisClient is a client that speaks RESP2.
type redisClient struct {
	*redistest.Client
	t *testing.T
}

func (f *front) connect(t *testing.T) *redisClient {
	t.Helper()
	return &redisClient{redistest.Dial(t, "tcp", f.address), t}
}

// send sends a command, given as words.
func (c *redisClient) send(words ...string) {
	c.t.Helper()
	if err := c.Send(words...); err != nil {
		c.t.Fatalf("%q: %v", words, err)
	}
}

// reply returns the text of the next reply.
func (c *redisClient) reply() (string, error) {
	f, err := c.Frame()
	if err != nil {
		return "", err
	}
	return redistest.Text(f), nil
}

// want fails the test unless the next reply is reply.
func (c *redisClient) want(reply string) {
	c.t.Helper()
	if got, err := c.reply(); err != nil || got != reply {
		c.t.Fatalf("got %q, %v, want %q", got, err, reply)
	}
}

// do sends a command and fails the test unless it gets this reply.
func (c *redisClient) do(reply string, words ...string) {
	c.t.Helper()
	c.send(words...)
	if got, err := c.reply(); err != nil || got != reply {
		c.t.Fatalf("%q: got %q, %v, want %q", words, got, err, reply)
	}
}

// subscribe subscribes to channels, or with PSUBSCRIBE to patterns.
func (c *redisClient) subscribe(word string, names ...string) {
	c.t.Helper()
	c.send(append([]string{word}, names...)...)
	for i, name := range names {
		c.want(fmt.Sprintf("[%s %s :%d]", strings.ToLower(word), name, i+1))
	}
}

// messages fails the test unless these events arrive on the channel of the key.
func (c *redisClient) messages(key string, events ...string) {
	c.t.Helper()
	for _, e := range events {
		c.want("[message __keyspace@0__:" + key + " " + e + "]")
	}
}

// closed fails the test unless the gateway closes the connection. It returns the replies that came before.
func (c *redisClient) closed() (before []string) {
	c.t.Helper()
	for {
		r, err := c.reply()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.t.Fatalf("the connection is open after %q", before)
		}
		if err != nil {
			return before
		}
		before = append(before, r)
	}
}
