// Package mqtttest is an MQTT 5 client for tests of a broker. It sends and receives single packets, so that a test sees
// each of them, and encodes and decodes with paho, not with the code under test.
package mqtttest

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
)

// Patience is how long a test waits for something that must happen.
const Patience = time.Minute

// A Client sends and receives the packets of one connection.
type Client struct {
	T        testing.TB
	Conn     net.Conn
	ID       string                              // the client id
	Describe func(*packets.ControlPacket) string // what Expect compares; [New] sets it
	Last     uint16                              // the last packet identifier
	IDs      []int                               // subscription identifiers of the last PUBLISH

	releasing map[uint16]bool // identifiers of QoS 2 messages whose PUBREL has not arrived
}

// New returns a client for a connection over which nothing was sent.
func New(t testing.TB, conn net.Conn, id string) *Client {
	c := &Client{T: t, Conn: conn, ID: id, releasing: make(map[uint16]bool)}
	c.Describe = c.describe
	return c
}

// Dial opens a connection and sends nothing.
func Dial(t testing.TB, addr net.Addr, id string) *Client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr.String(), Patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return New(t, conn, id)
}

// Connection returns the client's CONNECT.
func (c *Client) Connection(change ...func(*packets.Connect)) *packets.Connect {
	p := &packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: c.ID, CleanStart: true, KeepAlive: 60, Properties: &packets.Properties{}}
	for _, f := range change {
		f(p)
	}
	return p
}

// Hello sends CONNECT and returns the CONNACK.
func (c *Client) Hello(change ...func(*packets.Connect)) *packets.Connack {
	c.T.Helper()
	c.Send(c.Connection(change...))
	ack, ok := c.Receive().Content.(*packets.Connack)
	if !ok {
		c.T.Fatalf("%s: no CONNACK", c.ID)
	}
	return ack
}

// Send sends a packet.
func (c *Client) Send(p io.WriterTo) {
	c.T.Helper()
	if _, err := p.WriteTo(c.Conn); err != nil {
		c.T.Fatalf("%s: send: %v", c.ID, err)
	}
}

// Raw sends bytes, which need not be packets.
func (c *Client) Raw(bytes string) {
	c.T.Helper()
	if _, err := io.WriteString(c.Conn, bytes); err != nil {
		c.T.Fatalf("%s: send: %v", c.ID, err)
	}
}

// Receive returns the next packet. It answers the PUBREL of an exchange that Acknowledge began, and does not
// return it.
func (c *Client) Receive() *packets.ControlPacket {
	c.T.Helper()
	for {
		p := c.Read()
		if rel, ok := p.Content.(*packets.Pubrel); ok && c.releasing[rel.PacketID] {
			delete(c.releasing, rel.PacketID)
			c.Send(&packets.Pubcomp{PacketID: rel.PacketID, Properties: &packets.Properties{}})
			continue
		}
		return p
	}
}

// Read returns the next packet, of any kind.
func (c *Client) Read() *packets.ControlPacket {
	c.T.Helper()
	c.Conn.SetReadDeadline(time.Now().Add(Patience))
	var raw bytes.Buffer
	p, err := packets.ReadPacket(io.TeeReader(c.Conn, &raw))
	if err != nil {
		c.T.Fatalf("%s: receive: %v", c.ID, err)
	}
	c.IDs = nil
	if p.Type == packets.PUBLISH {
		c.IDs = identifiers(raw.Bytes())
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

// PacketID returns the next packet identifier, from 1.
func (c *Client) PacketID() uint16 {
	c.Last++
	return c.Last
}

// Subscribe adds one subscription and expects it to be granted.
func (c *Client) Subscribe(filter string, qos byte, change ...func(*packets.Subscribe)) {
	c.T.Helper()
	c.Subscription(filter, qos, change...)
	c.Expect(fmt.Sprintf("SUBACK %d", qos))
}

// Subscription sends a SUBSCRIBE, which change may modify.
func (c *Client) Subscription(filter string, qos byte, change ...func(*packets.Subscribe)) {
	c.T.Helper()
	p := &packets.Subscribe{PacketID: c.PacketID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: filter, QoS: qos}}}
	for _, f := range change {
		f(p)
	}
	c.Send(p)
}

// Message returns a PUBLISH that change may modify.
func (c *Client) Message(topic string, qos byte, payload string, change ...func(*packets.Publish)) *packets.Publish {
	p := &packets.Publish{Topic: topic, QoS: qos, Payload: []byte(payload), Properties: &packets.Properties{}}
	if qos > 0 {
		p.PacketID = c.PacketID()
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// Publish sends a message, completes its QoS exchange and expects this reason code.
func (c *Client) Publish(topic string, qos byte, payload string, code byte, change ...func(*packets.Publish)) {
	c.T.Helper()
	p := c.Message(topic, qos, payload, change...)
	c.Send(p)
	switch qos {
	case 1:
		c.Expect(fmt.Sprintf("PUBACK %d 0x%02x", p.PacketID, code))
	case 2:
		c.Expect(fmt.Sprintf("PUBREC %d 0x%02x", p.PacketID, code))
		if code < 0x80 {
			c.Send(&packets.Pubrel{PacketID: p.PacketID, Properties: &packets.Properties{}})
			c.Expect(fmt.Sprintf("PUBCOMP %d 0x00", p.PacketID))
		}
	}
}

// Expect reads packets and compares their descriptions with want. It acknowledges messages.
func (c *Client) Expect(want ...string) {
	c.T.Helper()
	for i, w := range want {
		p := c.Receive()
		if got := c.Describe(p); got != w {
			c.T.Fatalf("%s: packet %d: got %q, want %q", c.ID, i+1, got, w)
		}
		c.Acknowledge(p)
	}
}

// ExpectAll is Expect for packets in any order.
func (c *Client) ExpectAll(want ...string) {
	c.T.Helper()
	var got []string
	for range want {
		p := c.Receive()
		got = append(got, c.Describe(p))
		c.Acknowledge(p)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		c.T.Fatalf("%s: packets (-want +got):\n%s", c.ID, diff)
	}
}

// Acknowledge begins the acknowledgement of a received message.
func (c *Client) Acknowledge(p *packets.ControlPacket) {
	c.T.Helper()
	pub, ok := p.Content.(*packets.Publish)
	if !ok {
		return
	}
	switch pub.QoS {
	case 1:
		c.Send(&packets.Puback{PacketID: pub.PacketID, Properties: &packets.Properties{}})
	case 2:
		c.Send(&packets.Pubrec{PacketID: pub.PacketID, Properties: &packets.Properties{}})
		c.releasing[pub.PacketID] = true
	}
}

// Nothing expects no packet in transit: the next packet is the PINGRESP to its PINGREQ.
func (c *Client) Nothing() {
	c.T.Helper()
	c.Send(&packets.Pingreq{})
	c.Expect("PINGRESP")
}

// Ended expects these packets, then the end of the connection.
func (c *Client) Ended(want ...string) {
	c.T.Helper()
	c.Expect(want...)
	c.Conn.SetReadDeadline(time.Now().Add(Patience))
	p, err := packets.ReadPacket(c.Conn)
	var timeout net.Error
	switch {
	case err == nil:
		c.T.Fatalf("%s: got %s, want the end of the connection", c.ID, c.Describe(p))
	case errors.As(err, &timeout) && timeout.Timeout():
		c.T.Fatalf("%s: the connection does not end", c.ID)
	}
}

// describe returns a packet as text, with its main fields.
func (c *Client) describe(p *packets.ControlPacket) string {
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
		if len(c.IDs) > 0 {
			flags += fmt.Sprintf(" ids %v", c.IDs)
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
