package broker_test

import (
	"net"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/testkit/mqtttest"
)

const patience = mqtttest.Patience

// A server is a broker that tests connect to.
type server struct {
	*broker.Broker
	addr    net.Addr
	changed chan struct{} // receives when the result of Stats may have changed; capacity 1
}

// start runs a broker for a test. It calls before with the broker before the broker listens.
func start(t testing.TB, o broker.Options, before ...func(*broker.Broker)) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(o, ln.Addr())
	for _, f := range before {
		f(s.Broker)
	}
	s.Serve(ln)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newServer(o broker.Options, addr net.Addr) *server {
	s := &server{addr: addr, changed: make(chan struct{}, 1)}
	o.Changed = func() {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	s.Broker = broker.New(o)
	return s
}

type client struct{ *mqtttest.Client }

func dial(t testing.TB, s *server, id string) *client {
	t.Helper()
	return &client{mqtttest.Dial(t, s.addr, id)}
}

// connect returns a client with a new session.
func connect(t testing.TB, s *server, id string, change ...func(*packets.Connect)) *client {
	t.Helper()
	c := dial(t, s, id)
	if ack := c.Hello(change...); ack.ReasonCode != 0 {
		t.Fatalf("%s: CONNACK %#x", id, ack.ReasonCode)
	}
	return c
}

// resume connects to an existing session.
func resume(t testing.TB, s *server, id string, change ...func(*packets.Connect)) *client {
	t.Helper()
	c := dial(t, s, id)
	if ack := c.Hello(append([]func(*packets.Connect){lasting}, change...)...); ack.ReasonCode != 0 || !ack.SessionPresent {
		t.Fatalf("%s: CONNACK %#x, session present %t", id, ack.ReasonCode, ack.SessionPresent)
	}
	return c
}

// lasting requests a session that outlives its connection.
func lasting(c *packets.Connect) {
	c.CleanStart = false
	c.Properties.SessionExpiryInterval = pointer(uint32(3600))
}

func receiveMaximum(n uint16) func(*packets.Connect) {
	return func(c *packets.Connect) { c.Properties.ReceiveMaximum = &n }
}

func identifier(n int) func(*packets.Subscribe) {
	return func(p *packets.Subscribe) { p.Properties.SubscriptionIdentifier = &n }
}

func retain(p *packets.Publish) { p.Retain = true }

func expiry(seconds uint32) func(*packets.Publish) {
	return func(p *packets.Publish) { p.Properties.MessageExpiry = &seconds }
}

func pointer[T any](v T) *T { return &v }

// await waits until reached returns true for the broker's statistics.
func (s *server) await(t testing.TB, reached func(broker.Stats) bool) {
	t.Helper()
	for end := time.After(patience); ; {
		s.Lock()
		st := s.Stats()
		s.Unlock()
		if reached(st) {
			return
		}
		select {
		case <-s.changed:
		case <-end:
			t.Fatalf("the broker is at %+v", st)
		}
	}
}

// advance moves the broker's clock.
func (s *server) advance(d time.Duration) {
	s.Lock()
	defer s.Unlock()
	s.Advance(d)
}
