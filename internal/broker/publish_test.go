package broker_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/broker"
)

// TestQoS: each QoS in both directions; the lower of the two applies [MQTT-3.8.4-8].
func TestQoS(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	pub := connect(t, s, "pub")
	for granted := range byte(3) {
		sub := connect(t, s, "sub")
		sub.Subscribe("t", granted)
		for qos := range byte(3) {
			pub.Publish("t", qos, "x", 0)
			sub.Expect(fmt.Sprintf("t q%d: x", min(qos, granted)))
		}
		sub.Nothing()
		sub.Conn.Close()
	}
}

// TestQoS2: a message is passed on once, however often it is sent before PUBREL [MQTT-4.3.3-10], and its
// identifier is free afterwards.
func TestQoS2(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	sub, pub := connect(t, s, "sub"), connect(t, s, "pub", lasting)
	sub.Subscribe("t", 0)
	p := pub.Message("t", 2, "x")
	pub.Send(p)
	pub.Expect("PUBREC 1 0x00")
	p.Duplicate = true
	pub.Send(p)
	pub.Expect("PUBREC 1 0x00")
	// The same applies on the session's next connection [MQTT-4.1.0-1].
	pub = resume(t, s, "pub")
	pub.Send(p)
	pub.Expect("PUBREC 1 0x00")
	for _, code := range []string{"0x00", "0x92"} { // the second PUBREL has nothing to release
		pub.Send(&packets.Pubrel{PacketID: 1, Properties: &packets.Properties{}})
		pub.Expect("PUBCOMP 1 " + code)
	}
	p.Duplicate = false
	pub.Send(p)
	pub.Expect("PUBREC 1 0x00")
	sub.Expect("t q0: x", "t q0: x")
	sub.Nothing()

	pub.Send(&packets.Pubrel{PacketID: 1, Properties: &packets.Properties{}})
	pub.Expect("PUBCOMP 1 0x00")

	// The other direction: a PUBREC with an error code ends the exchange [MQTT-4.3.3-4].
	sub.Subscribe("u", 2)
	pub.Publish("u", 2, "y", 0)
	got := sub.Receive().Content.(*packets.Publish)
	sub.Send(&packets.Pubrec{PacketID: got.PacketID, ReasonCode: 0x87, Properties: &packets.Properties{}})
	sub.Nothing()
	sub.Send(&packets.Pubrec{PacketID: got.PacketID, Properties: &packets.Properties{}})
	sub.Expect(fmt.Sprintf("PUBREL %d 0x92", got.PacketID))
}

// TestProperties: a message's properties reach its subscribers unchanged [MQTT-3.3.2-4],
// [MQTT-3.3.2-15], [MQTT-3.3.2-16], [MQTT-3.3.2-17], [MQTT-3.3.2-20]; a Topic Alias does
// not [MQTT-3.3.2-7].
func TestProperties(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	sub, pub := connect(t, s, "sub"), connect(t, s, "pub")
	sub.Subscribe("t", 0)
	want := &packets.Properties{
		PayloadFormat: pointer(byte(1)), ContentType: "text", ResponseTopic: "back", CorrelationData: []byte("\x00\xff"),
		User: []packets.User{{Key: "b", Value: "2"}, {Key: "a", Value: "1"}, {Key: "b", Value: ""}},
	}
	sent := *want
	sent.TopicAlias, sent.MessageExpiry = pointer(uint16(3)), pointer(uint32(50))
	pub.Send(&packets.Publish{Topic: "t", Payload: []byte("x"), Properties: &sent})
	want.MessageExpiry = sent.MessageExpiry
	if diff := cmp.Diff(want, sub.Receive().Content.(*packets.Publish).Properties); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
}

// TestTopicAliases: topic aliases of the client (MQTT 5, 3.3.2.3.4), and of the broker, which respects the
// client's maximum [MQTT-3.1.2-26], [MQTT-3.3.2-12].
func TestTopicAliases(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	sub := connect(t, s, "sub", func(p *packets.Connect) { p.Properties.TopicAliasMaximum = pointer(uint16(2)) })
	sub.Subscribe("#", 0)
	plain := connect(t, s, "plain")
	plain.Subscribe("#", 0)
	pub := connect(t, s, "pub")
	alias := func(topic string, n uint16) {
		pub.Send(pub.Message(topic, 0, "x", func(p *packets.Publish) { p.Properties.TopicAlias = &n }))
	}
	known := map[uint16]string{}
	for _, step := range []struct {
		topic string
		alias uint16
		want  string
	}{{"a", 1, "a"}, {"", 1, "a"}, {"b", 2, "b"}, {"", 1, "a"}, {"c", 1, "c"}, {"", 1, "c"}, {"", 2, "b"}, {"a", 3, "a"}} {
		alias(step.topic, step.alias)
		plain.Expect(step.want + " q0: x")
		p := sub.Receive().Content.(*packets.Publish)
		n := p.Properties.TopicAlias
		if n == nil || *n == 0 || *n > 2 {
			t.Fatalf("alias %v", n)
		}
		if p.Topic != "" {
			known[*n] = p.Topic
		}
		if known[*n] != step.want {
			t.Errorf("%v: got %q by alias %d", step, known[*n], *n)
		}
	}
	if len(known) != 2 {
		t.Error("not all aliases are used")
	}
}

// TestReceiveMaximum: no more than Receive Maximum messages with QoS 1 and 2 are in flight [MQTT-3.3.4-9],
// QoS 0 messages overtake them [MQTT-3.3.4-10], and the order is kept [MQTT-4.6.0-6].
func TestReceiveMaximum(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	sub, pub := connect(t, s, "sub", receiveMaximum(2)), connect(t, s, "pub")
	sub.Subscribe("t/+", 2)
	for i := range 6 {
		pub.Publish("t/x", byte(1+i%2), fmt.Sprint(i), 0)
	}
	pub.Publish("t/y", 0, "free", 0)
	first, second := sub.Receive(), sub.Receive()
	sub.Expect("t/y q0: free")
	sub.Nothing()
	if got := sub.Describe(first) + sub.Describe(second); got != "t/x q1: 0t/x q2: 1" {
		t.Fatalf("got %s", got)
	}
	sub.Acknowledge(first)
	third := sub.Receive()
	sub.Nothing()
	sub.Acknowledge(second) // 4.9: PUBCOMP makes room, PUBREC does not
	fourth := sub.Receive()
	sub.Nothing()
	if got := sub.Describe(third) + sub.Describe(fourth); got != "t/x q1: 2t/x q2: 3" {
		t.Fatalf("got %s", got)
	}
	sub.Acknowledge(third)
	sub.Expect("t/x q1: 4")
	sub.Acknowledge(fourth)
	sub.Expect("t/x q2: 5")
	sub.Nothing()
}

// TestReceiveMaximumOfBroker: each connection begins with a new send quota, which a PUBCOMP for a message of
// an earlier connection does not raise (4.9).
func TestReceiveMaximumOfBroker(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{ReceiveMaximum: 2}})
	send := func(c *client, id uint16) {
		c.Send(&packets.Publish{Topic: "t", QoS: 2, PacketID: id, Properties: &packets.Properties{}})
	}
	release := func(c *client, id uint16) {
		c.Send(&packets.Pubrel{PacketID: id, Properties: &packets.Properties{}})
		c.Expect(fmt.Sprintf("PUBCOMP %d 0x00", id))
	}
	c := connect(t, s, "c", lasting)
	for id := range uint16(2) {
		send(c, id+1)
		c.Expect(fmt.Sprintf("PUBREC %d 0x10", id+1))
	}
	c.Conn.Close()
	c = resume(t, s, "c")
	send(c, 3)
	c.Expect("PUBREC 3 0x10")
	send(c, 4)
	c.Expect("PUBREC 4 0x10")
	release(c, 3)
	send(c, 5)
	c.Expect("PUBREC 5 0x10")
	release(c, 1) // the broker cannot recognize it as an old exchange, nor can the client
	release(c, 4)
	release(c, 5)
	release(c, 2)
	for id := range uint16(2) {
		send(c, id+6)
		c.Expect(fmt.Sprintf("PUBREC %d 0x10", id+6))
	}
	send(c, 8)
	c.Ended("DISCONNECT 0x93")
}

// TestMaximumPacketSize: a message that exceeds the client's maximum is treated as delivered [MQTT-3.1.2-24],
// [MQTT-3.1.2-25].
func TestMaximumPacketSize(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	sub := connect(t, s, "sub", func(p *packets.Connect) { p.Properties.MaximumPacketSize = pointer(uint32(100)) }, receiveMaximum(1))
	pub := connect(t, s, "pub")
	sub.Subscribe("t", 1)
	fits := func(n int) bool { // reports whether a PUBLISH with a payload of n bytes fits
		return 2+3+2+1+n <= 100
	}
	for n := 85; n < 100; n++ {
		pub.Publish("t", 1, strings.Repeat("x", n), 0)
		if fits(n) {
			sub.Expect("t q1: " + strings.Repeat("x", n))
		}
	}
	// The limit also applies to messages that wait for others.
	pub.Publish("t", 1, "1", 0)
	pub.Publish("t", 1, strings.Repeat("x", 93), 0)
	pub.Publish("t", 1, strings.Repeat("x", 120), 0)
	pub.Publish("t", 1, "2", 0)
	sub.Expect("t q1: 1", "t q1: 2")
	sub.Nothing()
	// Resent messages are measured by the new connection's limit; those that are too large are dropped and
	// make room.
	away := connect(t, s, "away", lasting)
	away.Subscribe("u", 2)
	for qos := range byte(2) {
		pub.Publish("u", qos+1, strings.Repeat("x", 120), 0)
		away.Read()
	}
	away.Conn.Close()
	away = resume(t, s, "away", receiveMaximum(1), func(p *packets.Connect) { p.Properties.MaximumPacketSize = pointer(uint32(100)) })
	pub.Publish("u", 1, "1", 0)
	away.Expect("u q1: 1")
	away.Nothing()
	away.Conn.Close()
	away = resume(t, s, "away")
	away.Nothing()
}

// TestMessageExpiry: the remaining interval is passed on [MQTT-3.3.2-6], and expired messages are not sent
// [MQTT-3.3.2-5].
func TestMessageExpiry(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	pub := connect(t, s, "pub")
	sub := connect(t, s, "sub", lasting)
	sub.Subscribe("t", 1)
	sub.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 1 })
	for _, seconds := range []uint32{3000, 3300, 30_000} {
		pub.Publish("t", 1, fmt.Sprint(seconds), 0, expiry(seconds))
	}
	pub.Publish("t", 1, "none", 0)
	pub.Publish("t", 1, "retained", 0, expiry(30_000), retain)
	s.advance(3000 * time.Second)
	sub = resume(t, s, "sub")
	for _, want := range []struct {
		payload string
		left    uint32
	}{{"3300", 300}, {"30000", 27_000}, {"none", 0}, {"retained", 27_000}} {
		p := sub.Receive().Content.(*packets.Publish)
		var left uint32
		if e := p.Properties.MessageExpiry; e != nil {
			left = *e
		}
		if string(p.Payload) != want.payload || !about(left, want.left) || p.Duplicate {
			t.Errorf("got %s with %d s, DUP %t; want %v", p.Payload, left, p.Duplicate, want)
		}
	}
	s.advance(26_700 * time.Second)
	late := connect(t, s, "late")
	late.Subscribe("t", 0)
	if p := late.Receive().Content.(*packets.Publish); !about(*p.Properties.MessageExpiry, 300) {
		t.Errorf("%d s are left of the retained message", *p.Properties.MessageExpiry)
	}
	s.advance(300 * time.Second)
	late = connect(t, s, "later")
	late.Subscribe("t", 0)
	late.Nothing()
}

// about reports whether a number of seconds that are left is want, less the time that the test took.
func about(left, want uint32) bool {
	return left <= want && time.Duration(want-left)*time.Second <= patience
}

// TestRedelivery: unacknowledged messages are resent with DUP [MQTT-3.3.1-1], in the original order
// [MQTT-4.4.0-1], [MQTT-4.6.0-1]; so is PUBREL.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	pub := connect(t, s, "pub")
	sub := connect(t, s, "sub", lasting, receiveMaximum(5))
	sub.Subscribe("t", 2)
	for i := range 8 {
		pub.Publish("t", byte(1+i%2), fmt.Sprint(i), 0)
	}
	ids := map[string]uint16{}
	for i := range 5 {
		p := sub.Receive().Content.(*packets.Publish)
		ids[string(p.Payload)] = p.PacketID
		if string(p.Payload) != fmt.Sprint(i) || p.Duplicate {
			t.Fatalf("got %s, DUP %t", p.Payload, p.Duplicate)
		}
	}
	sub.Send(&packets.Puback{PacketID: ids["2"], Properties: &packets.Properties{}})
	if p := sub.Receive().Content.(*packets.Publish); string(p.Payload) != "5" {
		t.Fatalf("got %s", p.Payload)
	}
	sub.Send(&packets.Pubrec{PacketID: ids["1"], Properties: &packets.Properties{}})
	sub.Expect(fmt.Sprintf("PUBREL %d 0x00", ids["1"]))
	sub.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 1 })
	pub.Publish("t", 1, "8", 0)

	sub = resume(t, s, "sub")
	again := func(payload, qos string, duplicate bool) {
		t.Helper()
		packet := sub.Receive()
		p, ok := packet.Content.(*packets.Publish)
		if !ok || string(p.Payload) != payload || fmt.Sprint(p.QoS) != qos || p.Duplicate != duplicate {
			t.Fatalf("got %s, want %s with QoS %s, DUP %t", sub.Describe(packet), payload, qos, duplicate)
		}
		if id, sent := ids[payload]; sent && id != p.PacketID {
			t.Errorf("%s has packet id %d, had %d", payload, p.PacketID, id)
		}
	}
	again("0", "1", true)
	sub.Expect(fmt.Sprintf("PUBREL %d 0x00", ids["1"]))
	sub.Send(&packets.Pubcomp{PacketID: ids["1"], Properties: &packets.Properties{}})
	again("3", "2", true)
	again("4", "1", true)
	again("5", "2", true)
	again("6", "1", false)
	again("7", "2", false)
	again("8", "1", false)
	sub.Nothing()
}

// TestKeptMessages: messages kept for an absent client arrive in order [MQTT-4.6.0-5], and a publisher gets
// an error if there is no room.
func TestKeptMessages(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{Queue: 200}})
	pub := connect(t, s, "pub")
	sub := connect(t, s, "sub", lasting)
	sub.Subscribe("t/#", 2)
	sub.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 1 })
	for i := range 200 {
		pub.Publish(fmt.Sprintf("t/%d", i%3), byte(1+i%2), fmt.Sprint(i), 0)
		pub.Publish("t/0", 0, "not kept", 0)
	}
	pub.Publish("t", 1, "too much", 0x97)
	pub.Publish("t", 2, "too much", 0x97)
	sub = resume(t, s, "sub")
	for i := range 200 {
		sub.Expect(fmt.Sprintf("t/%d q%d: %d", i%3, 1+i%2, i))
	}
	sub.Nothing()
	sub.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 1 })
	for i := range 200 { // expired messages make room
		pub.Publish("t", 1, "short", 0, expiry(uint32(500+i%2*1000)))
	}
	pub.Publish("t", 1, "too much", 0x97)
	s.advance(500 * time.Second)
	for range 100 {
		pub.Publish("t", 1, "in their place", 0)
	}
	pub.Publish("t", 1, "too much", 0x97)
	sub = resume(t, s, "sub")
	for range 100 {
		sub.Expect("t q1: short")
	}
	for range 100 {
		sub.Expect("t q1: in their place")
	}
	sub.Nothing()
	pub.Publish("t", 1, "there is room", 0)
	sub.Expect("t q1: there is room")
}

// TestSlowClient: the outbox of a client that does not acknowledge has a limit, and the client gets a
// DISCONNECT that says so.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{Outbox: 10}})
	sub, pub := connect(t, s, "sub", receiveMaximum(1)), connect(t, s, "pub")
	sub.Subscribe("t", 1)
	pub.Publish("t", 1, "0", 0)
	sub.Receive() // removes the message from the outbox
	for i := range 10 {
		pub.Publish("t", 1, fmt.Sprint(i+1), 0)
	}
	pub.Publish("t", 1, "11", 0)
	sub.Ended("DISCONNECT 0x97")
	pub.Publish("t", 1, "12", 0x10)
}

// TestClientThatDoesNotRead: a client that only writes is disconnected once its outbox is full.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{Outbox: 100, OutboxBytes: 1 << 20}})
	c := connect(t, s, "c")
	c.Subscribe("t", 0)
	p := c.Message("t", 0, strings.Repeat("x", 1<<19))
	c.Conn.SetWriteDeadline(time.Now().Add(patience))
	for {
		if _, err := p.WriteTo(c.Conn); err != nil {
			break
		}
	}
	s.await(t, func(st broker.Stats) bool { return st.Clients == 0 && st.Connections == 0 })
}

// TestHandler: a message that the handler accepts reaches no other client, in any form.
func TestHandler(t *testing.T) {
	t.Parallel()
	var b *broker.Broker
	var later []uint16
	s := start(t, broker.Options{
		Topic: "ask",
		Handle: func(c *broker.Client, p *broker.Publish) byte {
			switch string(p.Payload) {
			case "later":
				later = append(later, p.ID)
				return broker.Later
			case "now":
				for _, id := range later {
					c.Ack(id, 0x83)
				}
			case "unlocked":
				b.Unlock()
				b.Lock()
			case "leave":
				c.Disconnect(0x98)
			case "cut":
				c.Cut()
			}
			var props []byte
			for name, value := range p.User() {
				props = broker.AppendUser(props, value, name)
			}
			props = broker.AppendCorrelation(props, p.Correlation)
			props = broker.AppendContentType(props, "answer")
			if d := b.Publish(p.ResponseTopic, broker.Message{QoS: 1, Properties: props, Payload: append(bytes.ToUpper(p.Payload), fmt.Sprint(p.QoS, p.Retain, p.Expiry)...)}); d.Sent != 1 {
				t.Errorf("%s: %+v", p.Payload, d)
			}
			return 0
		},
	}, func(started *broker.Broker) { b = started })
	spy := connect(t, s, "spy")
	spy.Subscribe("#", 2)
	c := connect(t, s, "c", func(p *packets.Connect) {
		p.WillFlag, p.WillTopic, p.WillMessage, p.WillQOS, p.WillProperties = true, "ask", []byte("will"), 1, &packets.Properties{}
	})
	with := func(p *packets.Publish) {
		p.Retain = true
		p.Properties.ResponseTopic, p.Properties.CorrelationData = "back", []byte("1")
		p.Properties.User = []packets.User{{Key: "k", Value: "v"}}
		p.Properties.MessageExpiry = pointer(uint32(7))
	}
	c.Publish("ask", 1, "one", 0, with)
	answer := spy.Receive()
	want := &packets.Properties{ContentType: "answer", CorrelationData: []byte("1"), User: []packets.User{{Key: "v", Value: "k"}}}
	if p := answer.Content.(*packets.Publish); spy.Describe(answer) != "back q1: ONE1 true 7s" || cmp.Diff(want, p.Properties) != "" {
		t.Errorf("got %s %v", spy.Describe(answer), p.Properties)
	}
	spy.Acknowledge(answer)
	late := c.Message("ask", 1, "later", with)
	c.Send(late)
	now := c.Message("ask", 1, "now", with)
	c.Send(now)
	c.Expect(fmt.Sprintf("PUBACK %d 0x83", late.PacketID), fmt.Sprintf("PUBACK %d 0x00", now.PacketID))
	c.Publish("ask", 2, "two", 0, with)
	c.Publish("ask", 0, "unlocked", 0, with)
	spy.Expect("back q1: NOW1 true 7s", "back q1: TWO2 true 7s", "back q1: UNLOCKED0 true 7s")
	c.Send(c.Message("ask", 1, "leave", with))
	spy.Expect("back q1: LEAVE1 true 7s")
	c.Ended("DISCONNECT 0x98")
	c = connect(t, s, "c")
	c.Subscribe("ask", 0)
	c.Send(c.Message("ask", 1, "cut", with))
	spy.Expect("back q1: CUT1 true 7s")
	c.Ended()
	spy.Nothing()
}

// TestSend: a message sent to one client, subscribed or not, is not kept for it.
func TestSend(t *testing.T) {
	t.Parallel()
	var client *broker.Client
	s := start(t, broker.Options{Connected: func(c *broker.Client) { client = c }})
	send := func(topic, payload string) bool {
		s.Lock()
		defer s.Unlock()
		return client.Send(topic, broker.Message{QoS: 1, Payload: []byte(payload)})
	}
	c := connect(t, s, "c", lasting, receiveMaximum(1), func(p *packets.Connect) { p.Properties.MaximumPacketSize = pointer(uint32(1000)) })
	for i := range 3 {
		if !send("t", fmt.Sprint(i)) {
			t.Error("too large")
		}
	}
	if send("t", strings.Repeat("x", 1000)) || send(strings.Repeat("t", 70000), "") {
		t.Error("not too large")
	}
	c.Expect("t q1: 0")
	c.Receive()
	c.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Connections == 0 })
	send("t", "nobody is there")
	c = resume(t, s, "c")
	c.Nothing()
	send("t", "3")
	c.Expect("t q1: 3")
}

// TestPublishFromDisconnected: while Publish delivers a message, it may disconnect a client, whose
// Disconnected may publish and send other messages. All messages arrive unchanged.
func TestPublishFromDisconnected(t *testing.T) {
	t.Parallel()
	var s *server
	gone := false
	s = start(t, broker.Options{
		Limits: broker.Limits{Outbox: 64},
		Disconnected: func(c *broker.Client) {
			if gone || c.ID != "slow" {
				return
			}
			gone = true
			s.Publish([]byte("t"), broker.Message{QoS: 1, Payload: []byte("gone")})
			s.Client("reader").Send("u", broker.Message{Payload: []byte("sent")})
		},
	})
	slow := connect(t, s, "slow", receiveMaximum(1))
	slow.Subscribe("t", 1)
	reader := connect(t, s, "reader")
	reader.Subscribe("t", 1)
	for i := 0; !gone; i++ { // slow acknowledges nothing: the first message is sent, and the others wait
		payload := fmt.Sprint(i)
		s.Lock()
		s.Publish([]byte("t"), broker.Message{QoS: 1, Payload: []byte(payload)})
		s.Unlock()
		want := []string{"t q1: " + payload}
		if gone {
			want = append(want, "t q1: gone", "u q0: sent")
		}
		reader.ExpectAll(want...)
	}
}

// TestPublishWhileTakenOver: the broker remembers a QoS 2 message that it was handling when the connection
// ended, so that a resent copy is not published again [MQTT-4.3.3-10]. A refused message is handled again.
func TestPublishWhileTakenOver(t *testing.T) {
	t.Parallel()
	for code, want := range map[byte]int32{broker.Success: 1, broker.Later: 1, broker.QuotaExceeded: 2} {
		t.Run(fmt.Sprintf("0x%02x", code), func(t *testing.T) {
			t.Parallel()
			var b *broker.Broker
			var handled atomic.Int32
			entered, left, proceed := make(chan struct{}, 2), make(chan struct{}, 2), make(chan struct{})
			s := start(t, broker.Options{Topic: "t", Handle: func(*broker.Client, *broker.Publish) byte {
				handled.Add(1)
				b.Unlock()
				entered <- struct{}{}
				<-proceed
				b.Lock()
				left <- struct{}{} // the lock is held until the message is handled
				return code
			}}, func(made *broker.Broker) { b = made })
			c := connect(t, s, "c", lasting)
			m := c.Message("t", 2, "m")
			c.Send(m)
			<-entered
			d := resume(t, s, "c")
			close(proceed)
			<-left
			m.Duplicate = true
			d.Send(m)
			answer := code
			if code == broker.Later {
				answer = broker.Success
			}
			d.Expect(fmt.Sprintf("PUBREC %d 0x%02x", m.PacketID, answer))
			if n := handled.Load(); n != want {
				t.Errorf("handled %d times, want %d", n, want)
			}
		})
	}
}
