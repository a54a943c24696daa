package emulator_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
	"github.com/sscli/sscli/internal/wire"
)

// TestAttachedData restarts a store that is attached to a broker and has a data file, and stops one with a
// disk error, which then answers nothing.
func TestAttachedData(t *testing.T) {
	t.Parallel()
	address := mosquitto.Start(t, "set_tcp_nodelay true", mosquitto.Anonymous).Addresses[0]
	var broken stalled
	data := newData(t).Around(broken.commit)
	attach := func() *emulator.Attached {
		t.Helper()
		a, err := emulator.Attach(t.Context(), emulator.AttachOptions{Address: address, ClientID: "store", Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	store := attach()
	c, err := ask(t.Context(), address, "client")
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	request := func(want string, words ...string) wire.Version {
		t.Helper()
		reply, version, err := c.wait(t.Context(), "", words...)
		if err != nil || reply != want {
			t.Fatalf("%q: %q, %v; want %q", words, reply, err, want)
		}
		return version
	}
	first := request("+OK\r\n", "SET", "k", "1")
	for range 3 {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		store = attach()
		if again := request("$1\r\n1\r\n", "GET", "k"); !again.Equal(first) {
			t.Errorf("the version %v after a restart, want %v", again, first)
		}
	}
	if next := request("+OK\r\n", "SET", "k", "2"); next.Compare(first) <= 0 {
		t.Errorf("the version %v, after %v", next, first)
	}

	broken.mu.Lock()
	broken.err = errors.New("input/output error")
	broken.mu.Unlock()
	answered := false
	if err := c.do(t.Context(), "", []string{"SET", "k", "3"}, func(string, wire.Version) { answered = true }); err != nil {
		t.Fatal(err)
	}
	<-store.Done()
	if err := store.Close(); !errors.Is(err, broken.err) {
		t.Errorf("close: %v", err)
	}
	broken.mu.Lock()
	broken.err = nil
	broken.mu.Unlock()
	store = attach()
	request("$1\r\n2\r\n", "GET", "k")
	if answered {
		t.Error("a write that was not kept was answered")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAttachedLiar: a client that names another client in `__srcId`, with its own response topic, does not
// change the other client's registrations.
func TestAttachedLiar(t *testing.T) {
	t.Parallel()
	b := broker.New(broker.Options{})
	defer b.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.Serve(ln)
	var ignored atomic.Int32
	observed := func(e observe.Event) {
		if e.Outcome == observe.Ignored {
			ignored.Add(1)
		}
	}
	a, err := emulator.Attach(t.Context(), emulator.AttachOptions{Address: ln.Addr().String(), ClientID: "store", Observe: observed})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	join := func(id string) *client {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		c := over(t, conn, id)
		c.Hello()
		c.Subscribe(c.responseTopic(), 1)
		return c
	}
	ann, eve := join("a"), join("eve")
	ann.Subscribe(notifyPrefix+"61/command/notify/+", 1)
	ann.do("KEYNOTIFY k", "+OK")
	for _, topic := range []string{eve.responseTopic(), hexResponse("eve"), "$SYS/broker/version"} {
		lie := eve.publication("KEYNOTIFY", "k", "STOP")
		lie.Properties.User = append(lie.Properties.User, packets.User{Key: wire.PropSource, Value: "a"})
		lie.Properties.ResponseTopic = topic
		eve.Send(lie)
		eve.Expect("PUBACK 0x00")
	}
	eve.do("SET k v", "+OK")
	ann.Expect("notify 6B SET VALUE v")
	if n := ignored.Load(); n != 3 {
		t.Errorf("%d requests were ignored, want 3", n)
	}
	for topic, source := range map[string]string{
		"clients/ann/response": "ann", hexResponse("ann"): "ann", "replies/of/anybody": "ann",
	} {
		honest := eve.publication("GET", "nothing")
		honest.Properties.User = append(honest.Properties.User, packets.User{Key: wire.PropSource, Value: source})
		honest.Properties.ResponseTopic = topic
		eve.Subscribe(topic, 1)
		eve.Send(honest)
		eve.Expect("PUBACK 0x00", "PUBLISH "+topic+" q1 $-1")
	}

	// Registrations of one key under many names do not exhaust the memory.
	key, refused := strings.Repeat("k", 30_000), ""
	for i := 0; i < 1000 && refused == ""; i++ {
		lie := eve.publication("KEYNOTIFY", key)
		lie.Properties.User = append(lie.Properties.User, packets.User{Key: wire.PropSource, Value: fmt.Sprint("client", i)})
		lie.Properties.ResponseTopic = "replies/of/anybody"
		eve.Send(lie)
		for range 2 { // PUBACK and the reply
			if p, ok := eve.Receive().Content.(*packets.Publish); ok && string(p.Payload) != "+OK\r\n" {
				refused = string(p.Payload)
			}
		}
	}
	if refused != "-ERR the quota has been exceeded\r\n" {
		t.Errorf("1,000 registrations of a key of 30 KB: %q", refused)
	}
	eve.do("SET k v", "+OK")
}

// TestAttachedGone: registrations of clients that have disconnected without STOP end with the next notification, so
// they do not keep other clients from watching.
func TestAttachedGone(t *testing.T) {
	t.Parallel()
	address := mosquitto.Start(t, "set_tcp_nodelay true", mosquitto.Anonymous).Addresses[0]
	observed := make(chan observe.Event, 1000)
	a, err := emulator.Attach(t.Context(), emulator.AttachOptions{Address: address, ClientID: "store", Observe: func(e observe.Event) { observed <- e }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for i := range 3 {
		c, err := ask(t.Context(), address, fmt.Sprint("gone", i))
		if err != nil {
			t.Fatal(err)
		}
		if reply, _, err := c.wait(t.Context(), "", "KEYNOTIFY", "k"); err != nil || reply != "+OK\r\n" {
			t.Fatal(reply, err)
		}
		c.conn.Close()
	}
	c, err := ask(t.Context(), address, "client")
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	for i, want := 0, 3; want > 0; i++ {
		if _, _, err := c.wait(t.Context(), "", "SET", "k", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		for e := range observed {
			if e.Verb == "SET" || e.Verb == "set" {
				if want = len(e.Notified); i > 100 {
					t.Fatalf("%d registrations of clients that have gone are left", want)
				}
				break
			}
		}
	}
}

// TestAttachedTakenOver: a client that takes the store's client id, and is no store, ends the store.
func TestAttachedTakenOver(t *testing.T) {
	t.Parallel()
	b := broker.New(broker.Options{})
	defer b.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.Serve(ln)
	o := mqtt.Options{Address: ln.Addr().String(), ClientID: "store"}
	a, err := emulator.Attach(t.Context(), emulator.AttachOptions{Address: o.Address, ClientID: o.ClientID})
	if err != nil {
		t.Fatal(err)
	}
	other, err := mqtt.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	<-a.Done()
	if code, _ := mqtt.ReasonCode(a.Close()); code != mqtt.ReasonTakenOver {
		t.Errorf("the store ended with %v", a.Err())
	}
}
