package emulator_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/mqtttest"
	"github.com/sscli/sscli/internal/wire"
)

const patience = mqtttest.Patience

const (
	requestTopic = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"
	notifyPrefix = "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/"
)

// A client sends requests to the store, one packet at a time.
type client struct{ *mqtttest.Client }

// over returns a client for a connection over which nothing was sent.
func over(t testing.TB, conn net.Conn, id string) *client {
	c := &client{mqtttest.New(t, conn, id)}
	other := c.Describe
	c.Describe = func(p *packets.ControlPacket) string { return c.describe(p, other) }
	return c
}

func dial(t testing.TB, s *emulator.Server, id string) *client {
	t.Helper()
	return over(t, mqtttest.Dial(t, s.Addr(), id).Conn, id)
}

// connect returns a client that has subscribed to its response topic.
func connect(t testing.TB, s *emulator.Server, id string, change ...func(*packets.Connect)) *client {
	t.Helper()
	c := dial(t, s, id)
	if ack := c.Hello(change...); ack.ReasonCode != 0 {
		t.Fatalf("%s: CONNACK %#x", id, ack.ReasonCode)
	}
	c.Subscribe(c.responseTopic(), 1)
	return c
}

func (c *client) responseTopic() string { return "clients/" + c.ID + "/response" }

// publication returns the PUBLISH of a request, for a test to change and send.
func (c *client) publication(words ...string) *packets.Publish {
	p := &packets.Publish{Topic: requestTopic, QoS: 1, PacketID: c.PacketID(), Payload: wire.AppendRequest(nil, words...)}
	p.Properties = &packets.Properties{
		ResponseTopic: c.responseTopic(), CorrelationData: fmt.Appendf(nil, "%s%d", c.ID, p.PacketID),
		User: []packets.User{{Key: "__ts", Value: "1:0:client"}},
	}
	return p
}

// ask sends a request: its words are separated by spaces.
func (c *client) ask(words string) *packets.Publish {
	c.T.Helper()
	p := c.publication(strings.Split(words, " ")...)
	c.Send(p)
	return p
}

// do sends a request and expects PUBACK and this reply.
func (c *client) do(words, reply string) {
	c.T.Helper()
	c.ask(words)
	c.Expect("PUBACK 0x00", "reply "+reply)
}

// describe names replies and notifications, and leaves the identifiers out of acknowledgements.
func (c *client) describe(p *packets.ControlPacket, other func(*packets.ControlPacket) string) string {
	pub, ok := p.Content.(*packets.Publish)
	if !ok {
		words := strings.Fields(other(p))
		if strings.HasPrefix(words[0], "PUB") {
			words = slices.Delete(words, 1, 2)
		}
		return strings.Join(words, " ")
	}
	payload := strings.TrimSuffix(string(pub.Payload), "\r\n")
	switch {
	case pub.Topic == c.responseTopic():
		return "reply " + payload
	case strings.HasPrefix(pub.Topic, notifyPrefix):
		words := slices.DeleteFunc(strings.Split(payload, "\r\n"), func(w string) bool { return strings.ContainsAny(w[:1], "*$") })
		return "notify " + pub.Topic[strings.LastIndexByte(pub.Topic, '/')+1:] + " " + strings.Join(words[1:], " ")
	default:
		return fmt.Sprintf("PUBLISH %s q%d %s", pub.Topic, pub.QoS, payload)
	}
}

func pointer[T any](v T) *T { return &v }

// remember requests a session that outlives its connection.
func remember(c *packets.Connect) {
	c.CleanStart = false
	c.Properties.SessionExpiryInterval = pointer(uint32(24 * 60 * 60))
}
