package emulator_test

import (
	"context"
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

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// patience is how long a test waits for something that must happen.
const patience = time.Minute

const (
	requestTopic = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"
	notifyPrefix = "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/"
)

// A client sends and receives single MQTT 5 packets, so that a test sees every packet.
type client struct {
	t    testing.TB
	conn net.Conn
	id   string
	next uint16
}

// dial opens a connection and sends nothing.
func dial(t testing.TB, s *emulator.Server, id string) *client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr().String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t: t, conn: conn, id: id}
}

// hello sends CONNECT and returns the CONNACK.
func (c *client) hello(change ...func(*packets.Connect)) *packets.Connack {
	c.t.Helper()
	connect := &packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: c.id, CleanStart: true, KeepAlive: 60, Properties: &packets.Properties{}}
	for _, f := range change {
		f(connect)
	}
	c.send(connect)
	ack, ok := c.receive().Content.(*packets.Connack)
	if !ok {
		c.t.Fatalf("%s: no CONNACK", c.id)
	}
	return ack
}

// connect returns a client that has subscribed to its response topic.
func connect(t testing.TB, s *emulator.Server, id string, change ...func(*packets.Connect)) *client {
	t.Helper()
	c := dial(t, s, id)
	if ack := c.hello(change...); ack.ReasonCode != 0 {
		t.Fatalf("%s: CONNACK %#x", id, ack.ReasonCode)
	}
	c.subscribe(c.responseTopic(), 1)
	return c
}

func (c *client) responseTopic() string { return "clients/" + c.id + "/response" }

func (c *client) send(p io.WriterTo) {
	c.t.Helper()
	if _, err := p.WriteTo(c.conn); err != nil {
		c.t.Fatalf("%s: send: %v", c.id, err)
	}
}

func (c *client) receive() *packets.ControlPacket {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	p, err := packets.ReadPacket(c.conn)
	if err != nil {
		c.t.Fatalf("%s: receive: %v", c.id, err)
	}
	return p
}

// packetID returns the next packet identifier, from 1.
func (c *client) packetID() uint16 {
	c.next++
	return c.next
}

func (c *client) subscribe(filter string, qos byte) {
	c.t.Helper()
	c.send(&packets.Subscribe{PacketID: c.packetID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: filter, QoS: qos}}})
	c.expect(fmt.Sprintf("SUBACK %d", qos))
}

// publication returns the PUBLISH of a request, for a test to change and send.
func (c *client) publication(words ...string) *packets.Publish {
	p := &packets.Publish{Topic: requestTopic, QoS: 1, PacketID: c.packetID(), Payload: wire.AppendRequest(nil, words...)}
	p.Properties = &packets.Properties{
		ResponseTopic: c.responseTopic(), CorrelationData: fmt.Appendf(nil, "%s%d", c.id, p.PacketID),
		User: []packets.User{{Key: "__ts", Value: "1:0:client"}},
	}
	return p
}

// ask sends a request: its words are separated by spaces.
func (c *client) ask(words string) *packets.Publish {
	c.t.Helper()
	p := c.publication(strings.Split(words, " ")...)
	c.send(p)
	return p
}

// do sends a request and expects PUBACK and this reply.
func (c *client) do(words, reply string) {
	c.t.Helper()
	c.ask(words)
	c.expect("PUBACK 0x00", "reply "+reply)
}

// expect reads and acknowledges packets and compares them with want.
func (c *client) expect(want ...string) {
	c.t.Helper()
	var got []string
	for range want {
		p := c.receive()
		got = append(got, c.describe(p))
		c.acknowledge(p)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Fatalf("%s: packets (-want +got):\n%s", c.id, diff)
	}
}

func (c *client) acknowledge(p *packets.ControlPacket) {
	c.t.Helper()
	if pub, ok := p.Content.(*packets.Publish); ok && pub.QoS == 1 {
		c.send(&packets.Puback{PacketID: pub.PacketID, Properties: &packets.Properties{}})
	}
}

// ended expects the connection to be closed.
func (c *client) ended() {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
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
	case *packets.Puback:
		return fmt.Sprintf("PUBACK 0x%02x", p.ReasonCode)
	case *packets.Pubrec:
		return fmt.Sprintf("PUBREC 0x%02x", p.ReasonCode)
	case *packets.Pubrel:
		return fmt.Sprintf("PUBREL 0x%02x", p.ReasonCode)
	case *packets.Pubcomp:
		return fmt.Sprintf("PUBCOMP 0x%02x", p.ReasonCode)
	case *packets.Suback:
		return fmt.Sprintf("SUBACK %d", p.Reasons[0])
	case *packets.Disconnect:
		return fmt.Sprintf("DISCONNECT 0x%02x", p.ReasonCode)
	case *packets.Publish:
		payload := strings.TrimSuffix(string(p.Payload), "\r\n")
		switch {
		case p.Topic == c.responseTopic():
			return "reply " + payload
		case strings.HasPrefix(p.Topic, notifyPrefix):
			words := slices.DeleteFunc(strings.Split(payload, "\r\n"), func(w string) bool { return strings.ContainsAny(w[:1], "*$") })
			return "notify " + p.Topic[strings.LastIndexByte(p.Topic, '/')+1:] + " " + strings.Join(words[1:], " ")
		default:
			return fmt.Sprintf("PUBLISH %s q%d %s", p.Topic, p.QoS, payload)
		}
	default:
		return fmt.Sprintf("%T", p)
	}
}

func await(t *testing.T, s *emulator.Server, reached func(emulator.State) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Await(ctx, reached); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal("Await has noticed the state only at the end of its context")
	}
}

func pointer[T any](v T) *T { return &v }

// remember requests a session that outlives its connection.
func remember(c *packets.Connect) {
	c.CleanStart = false
	c.Properties.SessionExpiryInterval = pointer(uint32(24 * 60 * 60))
}
