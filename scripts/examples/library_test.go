package examples

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/format"
	"iter"
	"log"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

func application(ctx context.Context) error {
	o, err := client.FromEnv() // in a pod; client.ParseURL("mqtt://127.0.0.1:1883") elsewhere
	if err != nil {
		return err
	}
	o.RetryFor = time.Minute // wait that long for a broker that is away
	s, err := client.Dial(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()

	if _, err := s.Set(ctx, "setpoint", []byte("21.5"), client.SetOptions{TTL: time.Hour}); err != nil {
		return err
	}
	get, err := s.Get(ctx, "setpoint")
	if err != nil {
		return err // a missing key is no error: get.Found is false
	}
	fmt.Printf("%s, version %s\n", get.Value, get.Version)
	return nil
}

func TestSetpoint(t *testing.T) {
	store := emulator.Start(t)
	host, port, _ := net.SplitHostPort(store.Addr().String())
	t.Setenv("AIO_BROKER_HOSTNAME", host)
	t.Setenv("AIO_BROKER_TCP_PORT", port)
	t.Setenv("AIO_MQTT_USE_TLS", "false")
	if err := application(t.Context()); err != nil {
		t.Fatal(err)
	}
	if entry, ok := store.Get("setpoint"); !ok || string(entry.Value) != "21.5" {
		t.Errorf("setpoint is %q", entry.Value)
	}
}

func classes(err error) {
	switch client.Class(err) {
	case client.ClassOK:
	case client.ClassConnection, client.ClassTimeout: // nothing was applied: try again later
	case client.ClassLogin, client.ClassInvalid: // wrong configuration: a person must act
	case client.ClassFencing, client.ClassLockLost: // another client has the lock now: begin again
	case client.ClassUnknown: // the write may have been applied: read the key, see Session.ReadBack
	}
}

func count(ctx context.Context, s *client.Session) error {
	_, err := s.Update(ctx, "counter", func(old client.GetResult) ([]byte, error) {
		n, err := strconv.Atoi(cmp.Or(string(old.Value), "0"))
		return []byte(strconv.Itoa(n + 1)), err
	})
	return err
}

func follow(ctx context.Context, s *client.Session, apply func(iter.Seq2[string, client.GetResult])) error {
	m, err := s.Mirror(ctx, "config/*") // returns when all keys have been read
	if err != nil {
		return err
	}
	defer m.Close()
	for {
		changed := m.Changed()
		if err := m.Err(); err != nil {
			log.Print("the configuration may be old: ", err)
		}
		apply(m.All())
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A histogram is what a package for metrics has.
type histogram []string

func (h *histogram) Observe(verb string, class int, _ time.Duration) {
	*h = append(*h, fmt.Sprint(verb, " ", class))
}

func observed(o *client.Options, requests *histogram) {
	o.Observe = func(ctx context.Context, c client.Command) func(client.Result, error) {
		began := time.Now()
		return func(_ client.Result, err error) {
			requests.Observe(c.Verb(), int(client.Class(err)), time.Since(began))
		}
	}
}

// TestLibrary runs the blocks of docs/library.md that are not tests by themselves.
func TestLibrary(t *testing.T) {
	store := emulator.Start(t)
	var requests histogram
	o := client.Options{Address: store.Addr().String()}
	observed(&o, &requests)
	s, err := client.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := count(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if e, _ := store.Get("counter"); string(e.Value) != "2" || e.Fence.IsZero() {
		t.Errorf("counter is %q, with the fence %v", e.Value, e.Fence)
	}
	if len(requests) == 0 || requests[0] != "SET 0" {
		t.Errorf("observed %q, want the SET of the lock first", requests)
	}

	if _, err := store.Set("config/a", "1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rounds := 0
	err = follow(ctx, s, func(all iter.Seq2[string, client.GetResult]) {
		for key, r := range all {
			if key == "config/a" && string(r.Value) == "1" {
				store.Set("config/a", "2")
			} else if key == "config/a" && string(r.Value) == "2" {
				cancel()
			}
		}
		rounds++
	})
	if !errors.Is(err, context.Canceled) || rounds < 2 {
		t.Errorf("after %d rounds: %v", rounds, err)
	}
	classes(err)
}

// TestGoBlocks: this file or emulator_test.go has each Go block of README.md and docs, so that it is compiled. A block
// with "…" is a sketch.
func TestGoBlocks(t *testing.T) {
	code := read(t, "scripts/examples/library_test.go") + read(t, "scripts/examples/emulator_test.go")
	found := 0
	for _, page := range pages(t) {
		for _, b := range regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(read(t, page), -1) {
			found++
			indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(b[1], "\t$1")
			sketch := strings.ReplaceAll(b[1], "…", "_()")
			if formatted, err := format.Source([]byte(sketch)); string(formatted) != sketch {
				t.Errorf("%s: not as gofmt writes it: %v\n%s", page, err, b[1])
			} else if sketch == b[1] && !strings.Contains(code, b[1]) && !strings.Contains(code, indented) {
				t.Errorf("%s: no file in scripts/examples has this:\n%s", page, b[1])
			}
		}
	}
	if found < 9 {
		t.Errorf("%d blocks of Go", found)
	}
}
