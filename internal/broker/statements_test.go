package broker_test

import (
	"fmt"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/broker"
)

// TestStatements checks statements of MQTT 5 that no other test covers.
func TestStatements(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		test func(t *testing.T, s *server, c, pub *client)
	}{
		{"a byte order mark is part of a topic [MQTT-1.5.4-3], [MQTT-4.7.3-4]", func(_ *testing.T, _ *server, c, pub *client) {
			c.Subscribe("\ufefft", 0)
			pub.Publish("t", 1, "x", 0x10)
			pub.Publish("\ufefft", 1, "y", 0)
			c.Expect("\ufefft q0: y")
		}},
		{"flags that are reserved [MQTT-2.1.3-1], [MQTT-3.10.1-1], [MQTT-3.15.1-1]", func(t *testing.T, s *server, _, _ *client) {
			for _, bytes := range []string{
				"\x41\x02\x00\x01", "\x52\x02\x00\x01", "\x63\x02\x00\x01", "\x78\x02\x00\x01", "\x83\x07\x00\x01\x00\x00\x01t\x00",
				"\xa0\x06\x00\x01\x00\x00\x01t", "\xa3\x06\x00\x01\x00\x00\x01t", "\xc1\x00", "\xe8\x00", "\xf1\x00",
			} {
				c := connect(t, s, "flags")
				c.Raw(bytes)
				c.Ended("DISCONNECT 0x81")
			}
		}},
		{"packet identifiers of answers [MQTT-2.2.1-5], [MQTT-2.2.1-6]", func(t *testing.T, _ *server, c, _ *client) {
			for _, id := range []uint16{65535, 1, 0x8000} {
				c.Send(&packets.Subscribe{PacketID: id, Subscriptions: []packets.SubOptions{{Topic: "t"}}, Properties: &packets.Properties{}})
				if ack := c.Receive().Content.(*packets.Suback); ack.PacketID != id {
					t.Errorf("SUBACK %d, want %d", ack.PacketID, id)
				}
				c.Send(&packets.Unsubscribe{PacketID: id, Topics: []string{"t"}, Properties: &packets.Properties{}})
				if ack := c.Receive().Content.(*packets.Unsuback); ack.PacketID != id {
					t.Errorf("UNSUBACK %d, want %d", ack.PacketID, id)
				}
			}
		}},
		{"user name and password are there if their flags are set, else not [MQTT-3.1.2-16] to [MQTT-3.1.2-19]", func(t *testing.T, s *server, _, _ *client) {
			for _, bytes := range []string{
				"\x10\x0e\x00\x04MQTT\x05\x82\x00\x3c\x00\x00\x01c",                   // user name flag without a user name
				"\x10\x0e\x00\x04MQTT\x05\x42\x00\x3c\x00\x00\x01c",                   // password flag without a password
				"\x10\x11\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x01c\x00\x01u",          // user name without its flag
				"\x10\x14\x00\x04MQTT\x05\x82\x00\x3c\x00\x00\x01c\x00\x01u\x00\x01p", // password without its flag
			} {
				c := dial(t, s, "c")
				c.Raw(bytes)
				c.Ended("CONNACK 0x81")
			}
			c := dial(t, s, "c")
			c.Raw("\x10\x11\x00\x04MQTT\x05\x42\x00\x3c\x00\x00\x01c\x00\x01p") // MQTT 5 allows a password alone
			c.Expect("CONNACK 0x00")
		}},
		{"what follows a CONNECT that is refused is not processed [MQTT-3.1.4-6]", func(t *testing.T, s *server, c, pub *client) {
			c.Subscribe("t", 0)
			refused := dial(t, s, "c")
			refused.Raw("\x10\x0e\x00\x04MQTT\x05\x03\x00\x3c\x00\x00\x01z" + "\x30\x05\x00\x01t\x00x")
			refused.Ended("CONNACK 0x81")
			pub.Publish("t", 1, "y", 0)
			c.Expect("t q0: y")
		}},
		{"DUP is not passed on [MQTT-3.3.1-3]", func(_ *testing.T, _ *server, c, pub *client) {
			c.Subscribe("t", 2)
			for qos := range byte(2) {
				pub.Publish("t", qos+1, "x", 0, func(p *packets.Publish) { p.Duplicate = true })
				c.Expect(fmt.Sprintf("t q%d: x", qos+1))
			}
		}},
		{"problem information that is not asked for [MQTT-3.1.2-29]", func(t *testing.T, s *server, _, _ *client) {
			c := connect(t, s, "quiet", func(p *packets.Connect) { p.Properties.RequestProblemInfo = new(byte) })
			c.Raw("\x82\x08\x00\x01\x00\x00\x02#+\x00")
			c.bytes("\x90\x04\x00\x01\x00\x8f")
			c.Raw("\x32\x06\x00\x01t\x00\x01\x00\x62\x02\x00\x09\xa2\x06\x00\x01\x00\x00\x01t")
			c.bytes("\x40\x03\x00\x01\x10" + "\x70\x03\x00\x09\x92" + "\xb0\x04\x00\x01\x00\x11")
		}},
		{"a subscription that is replaced [MQTT-3.8.4-3], [MQTT-3.8.4-4]", func(_ *testing.T, _ *server, c, pub *client) {
			pub.Publish("t", 1, "r", 0x10, retain)
			c.Subscription("t", 0)
			c.Expect("SUBACK 0", "t q0 retained: r")
			pub.Publish("t", 1, "1", 0)
			c.Subscription("t", 1, identifier(3))
			c.Expect("t q0: 1", "SUBACK 1", "t q1 retained ids [3]: r")
			pub.Publish("t", 1, "2", 0)
			c.Expect("t q1 ids [3]: 2")
			c.Nothing()
		}},
		{"what was begun is completed after UNSUBSCRIBE [MQTT-3.10.4-2], [MQTT-3.10.4-3]", func(_ *testing.T, _ *server, c, pub *client) {
			c.Subscribe("t", 2)
			pub.Publish("t", 2, "1", 0)
			first := c.Receive()
			c.unsubscribe("t")
			pub.Publish("t", 2, "2", 0x10)
			id := first.Content.(*packets.Publish).PacketID
			c.Send(&packets.Pubrec{PacketID: id, Properties: &packets.Properties{}})
			c.Expect(fmt.Sprintf("PUBREL %d 0x00", id))
			c.Send(&packets.Pubcomp{PacketID: id, Properties: &packets.Properties{}})
			c.Nothing()
		}},
		{"nothing is processed after DISCONNECT [MQTT-3.14.4-1], [MQTT-3.14.4-2]", func(_ *testing.T, _ *server, c, pub *client) {
			c.Subscribe("t", 0)
			pub.Raw("\xe0\x00" + "\x30\x05\x00\x01t\x00x")
			pub.Ended()
			c.Nothing()
		}},
		{"a PUBREC with an error is not answered [MQTT-4.3.3-4]", func(_ *testing.T, _ *server, c, _ *client) {
			c.Raw("\x50\x03\x00\x09\x87" + "\x50\x02\x00\x09")
			c.Expect("PUBREL 9 0x92")
			c.Nothing()
		}},
		{"the response topic of a will is a topic name [MQTT-3.3.2-14], [MQTT-4.7.3-1]", func(t *testing.T, s *server, _, _ *client) {
			for _, topic := range []string{"", "#"} {
				properties := fmt.Sprintf("%c\x08\x00%c%s", 3+len(topic), len(topic), topic)
				c := dial(t, s, "c")
				c.Raw(fmt.Sprintf("\x10%c\x00\x04MQTT\x05\x06\x00\x3c\x00\x00\x01z%s\x00\x01w\x00\x00", 19+len(properties), properties))
				c.Ended("CONNACK 0x82")
			}
		}},
		{"a message after PUBACK is a new one [MQTT-4.3.2-5]", func(_ *testing.T, _ *server, c, pub *client) {
			c.Subscribe("t", 0)
			for range 2 {
				pub.Raw("\x3a\x07\x00\x01t\x00\x05\x00x")
				pub.Expect("PUBACK 5 0x00")
				c.Expect("t q0: x")
			}
		}},
		{"a message after a PUBREC that refuses is a new one [MQTT-4.3.3-9]", func(t *testing.T, s *server, c, _ *client) {
			pub := connect(t, s, "stranger")
			for range 2 {
				pub.Raw("\x34\x09\x00\x03not\x00\x05\x00x")
				pub.Expect("PUBREC 5 0x87")
			}
			c.Subscribe("t", 0)
			pub.Raw("\x34\x07\x00\x01t\x00\x05\x00x")
			pub.Expect("PUBREC 5 0x00")
			c.Expect("t q0: x")
		}},
		{"a message that was sent does not expire [MQTT-4.3.3-7], [MQTT-4.3.3-13]", func(t *testing.T, s *server, _, pub *client) {
			c := connect(t, s, "sleeper", lasting)
			c.Subscribe("t", 2)
			pub.Publish("t", 2, "1", 0, expiry(5))
			pub.Publish("t", 2, "2", 0, expiry(5))
			first := c.Read().Content.(*packets.Publish)
			c.Read()
			s.advance(6e9)
			c.Send(&packets.Pubrec{PacketID: first.PacketID, Properties: &packets.Properties{}})
			c.Expect(fmt.Sprintf("PUBREL %d 0x00", first.PacketID))
			c.Conn.Close()
			c = resume(t, s, "sleeper")
			c.Expect(fmt.Sprintf("PUBREL %d 0x00", first.PacketID))
			again := c.Receive()
			if p := again.Content.(*packets.Publish); !p.Duplicate || *p.Properties.MessageExpiry != 0 {
				t.Errorf("DUP %t, %d s are left", p.Duplicate, *p.Properties.MessageExpiry)
			}
		}},
		{"what was refused is not sent again, nor to another member [MQTT-4.4.0-2], [MQTT-4.8.2-6]", func(t *testing.T, s *server, other, pub *client) {
			c := connect(t, s, "refuser", lasting, receiveMaximum(1))
			c.Subscribe("$share/g/t", 2)
			for qos := range byte(2) {
				pub.Publish("t", qos+1, "x", 0)
				got := c.Read()
				id := got.Content.(*packets.Publish).PacketID
				if qos == 0 {
					c.Send(&packets.Puback{PacketID: id, ReasonCode: 0x80, Properties: &packets.Properties{}})
				} else {
					c.Send(&packets.Pubrec{PacketID: id, ReasonCode: 0x97, Properties: &packets.Properties{}})
				}
				c.Nothing()
			}
			other.Subscribe("$share/g/t", 2)
			c.Conn.Close()
			c = resume(t, s, "refuser")
			c.Nothing()
			c.Send(&packets.Disconnect{Properties: &packets.Properties{SessionExpiryInterval: new(uint32)}})
			c.Ended()
			other.Nothing()
		}},
		{"no AUTH without a method in CONNECT [MQTT-4.12.0-6], [MQTT-4.12.0-7]", func(_ *testing.T, _ *server, c, _ *client) {
			c.Raw("\xf0\x06\x19\x04\x15\x00\x01m")
			c.Ended("DISCONNECT 0x82")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, broker.Options{Authorize: func(c *broker.Identity, topic string, _ bool) bool { return topic != "not" }})
			tt.test(t, s, connect(t, s, "c"), connect(t, s, "pub"))
		})
	}
}
