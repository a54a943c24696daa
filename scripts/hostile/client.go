package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/wire"
)

// A client is an attacker's MQTT connection. It may break any rule of the protocol.
type client struct {
	net.Conn
	in *bufio.Reader
	id string
}

type connectOptions struct {
	id             string
	resume         bool   // continue an existing session
	expiry         uint32 // Session Expiry Interval in seconds
	receiveMaximum uint16 // 0 = 65,535
	will           []byte // payload of a will on the topic "will"; nil = no will
	willTopic      string // replaces the topic "will"; empty = it does not
	willDelay      uint32 // in seconds
	password       string // with the user name "user", unless there is another; empty = no password
	user           string // user name; empty = none, or "user" with a password
	token          string // service-account token; empty = none
}

// connectPacket returns the bytes of a CONNECT.
func connectPacket(o connectOptions) []byte {
	p := packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: o.id, CleanStart: !o.resume,
		Properties: &packets.Properties{SessionExpiryInterval: &o.expiry}}
	if o.receiveMaximum > 0 {
		p.Properties.ReceiveMaximum = &o.receiveMaximum
	}
	if o.will != nil {
		p.WillFlag, p.WillTopic, p.WillMessage, p.WillProperties = true, cmp.Or(o.willTopic, "will"), o.will, &packets.Properties{WillDelayInterval: &o.willDelay}
	}
	if o.password != "" {
		p.UsernameFlag, p.PasswordFlag, p.Username, p.Password = true, true, cmp.Or(o.user, "user"), []byte(o.password)
	} else if o.user != "" {
		p.UsernameFlag, p.Username = true, o.user
	}
	if o.token != "" {
		p.Properties.AuthMethod, p.Properties.AuthData = "K8S-SAT", []byte(o.token)
	}
	return encoded(&p)
}

func subscribePacket(properties *packets.Properties, filters ...string) []byte {
	p := packets.Subscribe{PacketID: 1, Properties: properties}
	for _, f := range filters {
		p.Subscriptions = append(p.Subscriptions, packets.SubOptions{Topic: f, QoS: 1})
	}
	return encoded(&p)
}

func publishPacket(topic string, qos byte, payload []byte) []byte {
	return encoded(&packets.Publish{Topic: topic, QoS: qos, PacketID: 1, Payload: payload, Properties: &packets.Properties{}})
}

func encoded(p io.WriterTo) []byte {
	var b bytes.Buffer
	_, _ = p.WriteTo(&b) // writing to a bytes.Buffer does not fail
	return b.Bytes()
}

// disconnectPacket is a DISCONNECT that keeps the session.
var disconnectPacket = []byte{0xe0, 0}

// connectTo opens a connection and waits for CONNACK.
func connectTo(t *target, o connectOptions) (*client, error) {
	conn, err := t.dial(t.mqtt)
	if err != nil {
		return nil, err
	}
	c := &client{Conn: conn, in: bufio.NewReaderSize(conn, 512), id: o.id}
	return c, c.connect(o)
}

func (c *client) connect(o connectOptions) error {
	_, err := c.Write(connectPacket(o))
	if err == nil {
		_, err = connected(c.in)
	}
	return err
}

// connected reads a CONNACK that accepts the client, and reports whether the broker has a session.
func connected(in io.Reader) (session bool, err error) {
	p, err := packets.ReadPacket(in)
	if err != nil {
		return false, fmt.Errorf("CONNACK: %w", err)
	}
	ack, ok := p.Content.(*packets.Connack)
	switch {
	case !ok:
		return false, fmt.Errorf("CONNACK: got %v", p)
	case ack.ReasonCode != 0:
		return false, refusal(ack.ReasonCode)
	}
	return ack.SessionPresent, nil
}

// A refusal is the reason code of a CONNACK that refuses the client.
type refusal byte

func (r refusal) Error() string { return fmt.Sprintf("CONNACK 0x%02x", byte(r)) }

// connectToStore is connectTo for a client that receives the replies of the store.
func connectToStore(t *target, o connectOptions) (*client, error) {
	c, err := connectTo(t, o)
	if err != nil {
		return nil, err
	}
	return c, c.subscribe(wire.ResponseTopic(o.id))
}

// ping sends a PINGREQ and waits for the PINGRESP.
func (c *client) ping() error {
	if _, err := c.Write([]byte{packets.PINGREQ << 4, 0}); err != nil {
		return err
	}
	return c.await(packets.PINGRESP)
}

// await reads packets until one has this type.
func (c *client) await(kind byte) error {
	for {
		p, err := packets.ReadPacket(c.in)
		if err != nil || p.Type == kind {
			return err
		}
	}
}

// subscribe subscribes to filters with one packet, and waits for SUBACK.
func (c *client) subscribe(filters ...string) error {
	if _, err := c.Write(subscribePacket(&packets.Properties{}, filters...)); err != nil {
		return err
	}
	return c.await(packets.SUBACK)
}

// request sends a request to the store.
func (c *client) request(words ...[]byte) error {
	_, err := c.Write(c.requestPacket(words...))
	return err
}

func (c *client) requestPacket(words ...[]byte) []byte {
	now := fmt.Sprintf("%d:0:%s", time.Now().UnixMilli(), c.id)
	return encoded(&packets.Publish{Topic: wire.RequestTopic, QoS: 1, PacketID: 1, Payload: wire.AppendRequest(nil, words...),
		Properties: &packets.Properties{ResponseTopic: wire.ResponseTopic(c.id), CorrelationData: []byte("1"),
			User: []packets.User{{Key: wire.PropTimestamp, Value: now}}}})
}

// reply waits for the next PUBLISH and returns the end of its payload: at most 40 bytes, from the
// last RESP type character on.
func (c *client) reply(within time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	for {
		p, err := packets.ReadPacket(c.in)
		if err != nil {
			return "", err
		}
		if message, ok := p.Content.(*packets.Publish); ok {
			if message.QoS > 0 { // a client that keeps its replies unacknowledged is an attacker
				ack := packets.NewControlPacket(packets.PUBACK)
				ack.Content.(*packets.Puback).PacketID = message.PacketID
				if _, err := ack.WriteTo(c); err != nil {
					return "", err
				}
			}
			body := message.Payload
			if i := bytes.LastIndexAny(body, "+-:*$"); i >= 0 {
				return string(bytes.TrimSpace(body[max(i, len(body)-40):])), nil
			}
			return "", nil
		}
	}
}
