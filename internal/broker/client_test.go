package broker_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/broker"
)

// patience is how long a test waits for something that must happen.
const patience = time.Minute

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

// A client sends and receives single MQTT packets, so that a test sees every packet. It encodes and decodes
// with paho.
type client struct {
	t         testing.TB
	conn      net.Conn
	id        string
	next      uint16
	releasing map[uint16]bool // identifiers of QoS 2 messages whose PUBREL has not arrived
	ids       []int           // subscription identifiers of the last PUBLISH
}

func dial(t testing.TB, s *server, id string) *client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.addr.String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t: t, conn: conn, id: id, releasing: make(map[uint16]bool)}
}

// connection returns the client's CONNECT.
func (c *client) connection(change ...func(*packets.Connect)) *packets.Connect {
	p := &packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: c.id, CleanStart: true, KeepAlive: 60, Properties: &packets.Properties{}}
	for _, f := range change {
		f(p)
	}
	return p
}

// hello sends CONNECT and returns the CONNACK.
func (c *client) hello(change ...func(*packets.Connect)) *packets.Connack {
	c.t.Helper()
	c.send(c.connection(change...))
	ack, ok := c.receive().Content.(*packets.Connack)
	if !ok {
		c.t.Fatalf("%s: no CONNACK", c.id)
	}
	return ack
}

// connect returns a client with a new session.
func connect(t testing.TB, s *server, id string, change ...func(*packets.Connect)) *client {
	t.Helper()
	c := dial(t, s, id)
	if ack := c.hello(change...); ack.ReasonCode != 0 {
		t.Fatalf("%s: CONNACK %#x", id, ack.ReasonCode)
	}
	return c
}

// resume connects to an existing session.
func resume(t testing.TB, s *server, id string, change ...func(*packets.Connect)) *client {
	t.Helper()
	c := dial(t, s, id)
	if ack := c.hello(append([]func(*packets.Connect){lasting}, change...)...); ack.ReasonCode != 0 || !ack.SessionPresent {
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

func (c *client) send(p io.WriterTo) {
	c.t.Helper()
	if _, err := p.WriteTo(c.conn); err != nil {
		c.t.Fatalf("%s: send: %v", c.id, err)
	}
}

func (c *client) raw(bytes string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, bytes); err != nil {
		c.t.Fatalf("%s: send: %v", c.id, err)
	}
}

// receive returns the next packet. It answers the PUBREL of an exchange that acknowledge began, and does not
// return it.
func (c *client) receive() *packets.ControlPacket {
	c.t.Helper()
	for {
		p := c.read()
		if rel, ok := p.Content.(*packets.Pubrel); ok && c.releasing[rel.PacketID] {
			delete(c.releasing, rel.PacketID)
			c.send(&packets.Pubcomp{PacketID: rel.PacketID, Properties: &packets.Properties{}})
			continue
		}
		return p
	}
}

func (c *client) read() *packets.ControlPacket {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(patience))
	var raw bytes.Buffer
	p, err := packets.ReadPacket(io.TeeReader(c.conn, &raw))
	if err != nil {
		c.t.Fatalf("%s: receive: %v", c.id, err)
	}
	c.ids = nil
	if p.Type == packets.PUBLISH {
		c.ids = identifiers(raw.Bytes())
	}
	return p
}

// identifiers returns all subscription identifiers of a PUBLISH; paho decodes only the last.
func identifiers(raw []byte) (ids []int) {
	varint := func() int {
		n, size := binary.Uvarint(raw)
		raw = raw[size:]
		return int(n)
	}
	text := func() { raw = raw[2+int(binary.BigEndian.Uint16(raw)):] }
	qos := raw[0] >> 1 & 3
	raw = raw[1:]
	varint()
	text()
	if qos > 0 {
		raw = raw[2:]
	}
	n := varint()
	for end := len(raw) - n; len(raw) > end; {
		kind := raw[0]
		raw = raw[1:]
		switch kind {
		case packets.PropPayloadFormat:
			raw = raw[1:]
		case packets.PropMessageExpiry:
			raw = raw[4:]
		case packets.PropTopicAlias:
			raw = raw[2:]
		case packets.PropSubscriptionIdentifier:
			ids = append(ids, varint())
		case packets.PropUser:
			text()
			text()
		default:
			text()
		}
	}
	slices.Sort(ids)
	return ids
}

func (c *client) packetID() uint16 {
	c.next++
	return c.next
}

// subscribe adds one subscription and expects it to be granted.
func (c *client) subscribe(filter string, qos byte, change ...func(*packets.Subscribe)) {
	c.t.Helper()
	c.subscription(filter, qos, change...)
	c.expect(fmt.Sprintf("SUBACK %d", qos))
}

func (c *client) subscription(filter string, qos byte, change ...func(*packets.Subscribe)) {
	c.t.Helper()
	p := &packets.Subscribe{PacketID: c.packetID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: filter, QoS: qos}}}
	for _, f := range change {
		f(p)
	}
	c.send(p)
}

func identifier(n int) func(*packets.Subscribe) {
	return func(p *packets.Subscribe) { p.Properties.SubscriptionIdentifier = &n }
}

// message returns a PUBLISH that change may modify.
func (c *client) message(topic string, qos byte, payload string, change ...func(*packets.Publish)) *packets.Publish {
	p := &packets.Publish{Topic: topic, QoS: qos, Payload: []byte(payload), Properties: &packets.Properties{}}
	if qos > 0 {
		p.PacketID = c.packetID()
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// publish sends a message, completes its QoS exchange and expects this reason code.
func (c *client) publish(topic string, qos byte, payload string, code byte, change ...func(*packets.Publish)) {
	c.t.Helper()
	p := c.message(topic, qos, payload, change...)
	c.send(p)
	switch qos {
	case 1:
		c.expect(fmt.Sprintf("PUBACK %d 0x%02x", p.PacketID, code))
	case 2:
		c.expect(fmt.Sprintf("PUBREC %d 0x%02x", p.PacketID, code))
		if code < 0x80 {
			c.send(&packets.Pubrel{PacketID: p.PacketID, Properties: &packets.Properties{}})
			c.expect(fmt.Sprintf("PUBCOMP %d 0x00", p.PacketID))
		}
	}
}

func retain(p *packets.Publish) { p.Retain = true }

func expiry(seconds uint32) func(*packets.Publish) {
	return func(p *packets.Publish) { p.Properties.MessageExpiry = &seconds }
}

// expect reads packets and compares their descriptions with want. It acknowledges messages.
func (c *client) expect(want ...string) {
	c.t.Helper()
	for i, w := range want {
		p := c.receive()
		if got := c.describe(p); got != w {
			c.t.Fatalf("%s: packet %d: got %q, want %q", c.id, i+1, got, w)
		}
		c.acknowledge(p)
	}
}

// expectAll is expect for packets in any order.
func (c *client) expectAll(want ...string) {
	c.t.Helper()
	var got []string
	for range want {
		p := c.receive()
		got = append(got, c.describe(p))
		c.acknowledge(p)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Fatalf("%s: packets (-want +got):\n%s", c.id, diff)
	}
}

// acknowledge begins the acknowledgement of a received message.
func (c *client) acknowledge(p *packets.ControlPacket) {
	c.t.Helper()
	pub, ok := p.Content.(*packets.Publish)
	if !ok {
		return
	}
	switch pub.QoS {
	case 1:
		c.send(&packets.Puback{PacketID: pub.PacketID, Properties: &packets.Properties{}})
	case 2:
		c.send(&packets.Pubrec{PacketID: pub.PacketID, Properties: &packets.Properties{}})
		c.releasing[pub.PacketID] = true
	}
}

// nothing expects no packet in transit: the next packet is the PINGRESP to its PINGREQ.
func (c *client) nothing() {
	c.t.Helper()
	c.send(&packets.Pingreq{})
	c.expect("PINGRESP")
}

// ended expects these packets, then the end of the connection.
func (c *client) ended(want ...string) {
	c.t.Helper()
	c.expect(want...)
	c.conn.SetReadDeadline(time.Now().Add(patience))
	p, err := packets.ReadPacket(c.conn)
	var timeout net.Error
	switch {
	case err == nil:
		c.t.Fatalf("%s: got %s, want the end of the connection", c.id, c.describe(p))
	case errors.As(err, &timeout) && timeout.Timeout():
		c.t.Fatalf("%s: the connection does not end", c.id)
	}
}

func (c *client) describe(p *packets.ControlPacket) string {
	switch p := p.Content.(type) {
	case *packets.Connack:
		return fmt.Sprintf("CONNACK 0x%02x", p.ReasonCode)
	case *packets.Puback:
		return fmt.Sprintf("PUBACK %d 0x%02x", p.PacketID, p.ReasonCode)
	case *packets.Pubrec:
		return fmt.Sprintf("PUBREC %d 0x%02x", p.PacketID, p.ReasonCode)
	case *packets.Pubrel:
		return fmt.Sprintf("PUBREL %d 0x%02x", p.PacketID, p.ReasonCode)
	case *packets.Pubcomp:
		return fmt.Sprintf("PUBCOMP %d 0x%02x", p.PacketID, p.ReasonCode)
	case *packets.Suback:
		return "SUBACK " + codes(p.Reasons)
	case *packets.Unsuback:
		return "UNSUBACK " + codes(p.Reasons)
	case *packets.Pingresp:
		return "PINGRESP"
	case *packets.Disconnect:
		return fmt.Sprintf("DISCONNECT 0x%02x", p.ReasonCode)
	case *packets.Auth:
		return fmt.Sprintf("AUTH 0x%02x %s %s", p.ReasonCode, p.Properties.AuthMethod, p.Properties.AuthData)
	case *packets.Publish:
		flags := ""
		if p.Duplicate {
			flags += " dup"
		}
		if p.Retain {
			flags += " retained"
		}
		if len(c.ids) > 0 {
			flags += fmt.Sprintf(" ids %v", c.ids)
		}
		return fmt.Sprintf("%s q%d%s: %s", p.Topic, p.QoS, flags, p.Payload)
	default:
		return fmt.Sprintf("%T", p)
	}
}

func codes(reasons []byte) string {
	var words []string
	for _, r := range reasons {
		words = append(words, fmt.Sprint(r))
	}
	return strings.Join(words, " ")
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
