package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/broker"
)

// TestFilters: MQTT 5, 4.7, with the standard's examples; [MQTT-4.7.1-1], [MQTT-4.7.1-2], [MQTT-4.7.2-1],
// [MQTT-4.7.3-4].
func TestFilters(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	c := connect(t, s, "c")
	topics := []string{
		"sport/tennis/player1", "sport/tennis/player1/ranking", "sport/tennis/player1/score/wimbledon", "sport", "sport/",
		"/finance", "finance", "/", "$x/monitor/Clients", "$x", "ACCOUNTS", "Accounts", "a b", "a//b", "\U0001F600/é", strings.Repeat("x/", 300),
	}
	for filter, want := range map[string][]string{
		"sport/tennis/player1/#":        {"sport/tennis/player1", "sport/tennis/player1/ranking", "sport/tennis/player1/score/wimbledon"},
		"sport/#":                       {"sport/tennis/player1", "sport/tennis/player1/ranking", "sport/tennis/player1/score/wimbledon", "sport", "sport/"},
		"sport/tennis/+":                {"sport/tennis/player1"},
		"sport/+":                       {"sport/"},
		"+/tennis/#":                    {"sport/tennis/player1", "sport/tennis/player1/ranking", "sport/tennis/player1/score/wimbledon"},
		"sport/+/player1":               {"sport/tennis/player1"},
		"+/+":                           {"sport/", "/finance", "/", "\U0001F600/é"},
		"/+":                            {"/finance", "/"},
		"+":                             {"sport", "finance", "ACCOUNTS", "Accounts", "a b"},
		"+/monitor/Clients":             nil,
		"$x/#":                          {"$x/monitor/Clients", "$x"},
		"$x/monitor/+":                  {"$x/monitor/Clients"},
		"a/+/b":                         {"a//b"},
		"ACCOUNTS":                      {"ACCOUNTS"},
		"\U0001F600/é":                  {"\U0001F600/é"},
		"#":                             slices.DeleteFunc(slices.Clone(topics), func(topic string) bool { return topic[0] == '$' }),
		strings.Repeat("x/", 200) + "#": {strings.Repeat("x/", 300)},
	} {
		c.Subscribe(filter, 0)
		for _, topic := range topics {
			c.Send(c.Message(topic, 0, ""))
		}
		for _, topic := range want {
			c.Expect(topic + " q0: ")
		}
		c.Nothing()
		c.unsubscribe(filter)
	}
	for _, filter := range []string{"sport/tennis#", "sport/tennis/#/ranking", "sport+", "+sport", "##", "#/", "$share/g", "$share//t", "$share/g/", "$share/g+/t", "$share/#/t", "$share/g/a#"} {
		c.Subscription(filter, 0)
		c.Expect("SUBACK 143")
	}
	c.Subscription(strings.Repeat("/", 1000), 0)
	c.Expect("SUBACK 151")
}

func (c *client) unsubscribe(filters ...string) {
	c.T.Helper()
	c.Send(&packets.Unsubscribe{PacketID: c.PacketID(), Topics: filters, Properties: &packets.Properties{}})
	c.Expect("UNSUBACK " + strings.TrimSuffix(strings.Repeat("0 ", len(filters)), " "))
}

// TestOverlappingSubscriptions: one copy, at the highest QoS [MQTT-3.3.4-2], with all
// identifiers [MQTT-3.3.4-3], [MQTT-3.3.4-4], [MQTT-3.3.4-5].
func TestOverlappingSubscriptions(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	c := connect(t, s, "c")
	c.Subscribe("a/#", 2, identifier(3))
	c.Subscribe("a/b", 1, identifier(2_000_000))
	c.Subscribe("+/b", 0)
	c.Subscribe("a/+", 0, identifier(3))
	c.Subscribe("x", 0, identifier(9))
	for _, want := range []string{"a/b q2 ids [3 2000000]: ", "a/b q2 ids [7]: "} {
		c.Send(c.Message("a/b", 2, ""))
		c.ExpectAll(fmt.Sprintf("PUBREC %d 0x00", c.Last), want)
		c.Send(&packets.Pubrel{PacketID: c.Last, Properties: &packets.Properties{}})
		c.Expect(fmt.Sprintf("PUBCOMP %d 0x00", c.Last))
		// A subscription with the same filter replaces the earlier one [MQTT-3.8.4-3].
		c.Subscribe("a/#", 2, identifier(7))
		c.Subscribe("a/b", 1)
		c.Subscribe("a/+", 0)
	}
}

// TestUnsubscribe: [MQTT-3.10.4-1] to [MQTT-3.10.4-6].
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	c := connect(t, s, "c")
	for _, filter := range []string{"a", "b", "$share/g/c", "+/#"} {
		c.Subscribe(filter, 1)
	}
	c.Send(&packets.Unsubscribe{PacketID: 77, Topics: []string{"a", "c", "$share/g/c", "#", "+/#"}, Properties: &packets.Properties{}})
	if ack := c.Receive(); ack.PacketID() != 77 || c.Describe(ack) != "UNSUBACK 0 17 0 17 0" {
		t.Errorf("UNSUBACK %v", ack)
	}
	for _, topic := range []string{"a", "c", "x"} {
		c.Send(c.Message(topic, 0, ""))
	}
	c.Send(c.Message("b", 0, "still"))
	c.Expect("b q0: still")
	c.unsubscribe("b")
	s.await(t, func(st broker.Stats) bool { return st.Subscriptions == 0 })
}

// TestNoLocal: [MQTT-3.8.3-3].
func TestNoLocal(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	c, d := connect(t, s, "c"), connect(t, s, "d")
	noLocal := func(p *packets.Subscribe) { p.Subscriptions[0].NoLocal = true }
	c.Subscribe("t", 0, noLocal)
	d.Subscribe("t", 0, noLocal)
	d.Subscribe("+", 0)
	c.Send(c.Message("t", 0, "c"))
	c.Nothing()
	d.Expect("t q0: c")
	d.Send(d.Message("t", 0, "d"))
	c.Expect("t q0: d")
	d.Expect("t q0: d") // matches the other subscription
	d.Nothing()
	// No Local does not apply to messages that the broker's owner publishes.
	s.Lock()
	s.Publish([]byte("t"), broker.Message{Payload: []byte("o")})
	s.Unlock()
	c.Expect("t q0: o")
}

// TestRetained: MQTT 5, 3.3.1.3 and 3.8.3.1.
func TestRetained(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	pub := connect(t, s, "pub")
	live := connect(t, s, "live")
	live.Subscribe("r/#", 2)
	pub.Publish("r/1", 2, "old", 0, retain)
	pub.Publish("r/1", 1, "one", 0, retain) // replaces [MQTT-3.3.1-5]
	pub.Publish("r/2", 0, "two", 0, retain)
	pub.Publish("r/1", 0, "not retained", 0) // [MQTT-3.3.1-8]
	pub.Publish("r", 2, "parent", 0, retain)
	// Existing subscriptions get the RETAIN flag only with Retain As Published [MQTT-3.3.1-12],
	// [MQTT-3.3.1-13].
	live.Expect("r/1 q2: old", "r/1 q1: one", "r/2 q0: two", "r/1 q0: not retained", "r q2: parent")

	handling := func(n byte) func(*packets.Subscribe) {
		return func(p *packets.Subscribe) { p.Subscriptions[0].RetainHandling = n }
	}
	c := connect(t, s, "c")
	c.Subscribe("r/+", 1, handling(2)) // [MQTT-3.3.1-11]
	c.Nothing()
	c.Subscribe("r/+", 1, handling(1)) // [MQTT-3.3.1-10]: the subscription existed
	c.Nothing()
	c.Subscribe("r/+", 1, handling(0), identifier(5)) // [MQTT-3.3.1-9]
	c.Expect("r/1 q1 retained ids [5]: one", "r/2 q0 retained ids [5]: two")
	c.Subscribe("#", 2, handling(1), func(p *packets.Subscribe) { p.Subscriptions[0].RetainAsPublished = true })
	c.Expect("r/1 q1 retained: one", "r/2 q0 retained: two", "r q2 retained: parent")
	c.Subscribe("$share/g/r/+", 1) // 4.8.2: no retained messages for a shared subscription
	c.Nothing()
	c.unsubscribe("$share/g/r/+")
	pub.Publish("r/1", 1, "", 0, retain) // removes [MQTT-3.3.1-6], [MQTT-3.3.1-7]
	c.Expect("r/1 q1 retained ids [5]: ")
	pub.Publish("r/3", 1, "again", 0, retain)
	c.Expect("r/3 q1 retained ids [5]: again")
	d := connect(t, s, "d")
	d.Subscribe("r/#", 0)
	d.Expect("r/2 q0 retained: two", "r q0 retained: parent", "r/3 q0 retained: again")
	d.Nothing()
	s.await(t, func(st broker.Stats) bool { return st.Retained == 3 })
}

// TestRetainedLimits: the number of retained messages is limited, and expired ones make room.
func TestRetainedLimits(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{MaxRetained: 2, MaxRetainedBytes: 2000}})
	c := connect(t, s, "c")
	c.Publish("a", 1, "1", 0x10, retain)
	c.Publish("$b", 1, "2", 0x10, retain, expiry(10_000))
	c.Publish("c", 1, "3", 0x97, retain)
	c.Publish("c", 2, "3", 0x97, retain)
	c.Publish("a", 1, "replaced", 0x10, retain)
	c.Publish("a", 1, strings.Repeat("x", 2000), 0x97, retain)
	s.advance(10_000 * time.Second)
	c.Publish("c", 1, "3", 0x10, retain)
	c.Publish("a", 1, "", 0x10, retain)
	c.Publish("d", 1, "4", 0x10, retain)
	c.Subscribe("#", 0)
	c.Expect("c q0 retained: 3", "d q0 retained: 4")
	c.Publish(strings.Repeat("/", 1000), 1, "5", 0x97, retain)
}

// TestWill: [MQTT-3.1.2-8], [MQTT-3.1.2-10], [MQTT-3.14.4-3], [MQTT-3.1.3-9] and the
// properties of 3.1.3.2.
func TestWill(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	watch := connect(t, s, "watch")
	watch.Subscribe("w/#", 2)
	will := func(name string, delay uint32) func(*packets.Connect) {
		return func(p *packets.Connect) {
			p.WillFlag, p.WillTopic, p.WillMessage, p.WillQOS, p.WillRetain = true, "w/"+name, []byte(p.ClientID), 1, true
			p.WillProperties = &packets.Properties{WillDelayInterval: &delay}
			p.Properties.SessionExpiryInterval = pointer(uint32(100_000))
		}
	}
	gone := func(c *client) {
		c.Conn.Close()
		s.await(t, func(st broker.Stats) bool { return st.Clients == 1 })
	}
	// paho's encoder omits properties of wills, so this CONNECT is written by hand.
	c := dial(t, s, "lost")
	c.Raw("\x10\x43\x00\x04MQTT\x05\x2e\x00\x3c\x00\x00\x04lost" +
		"\x24\x18\x00\x00\x00\x00\x01\x01\x26\x00\x01k\x00\x01v\x02\x00\x00\x00\x09\x03\x00\x01c\x08\x00\x01r\x09\x00\x01d\x26\x00\x00\x00\x00" +
		"\x00\x05w/now\x00\x04lost")
	c.Expect("CONNACK 0x00")
	gone(c)
	p := watch.Receive().Content.(*packets.Publish)
	want := &packets.Publish{Topic: "w/now", QoS: 1, PacketID: p.PacketID, Payload: []byte("lost"), Properties: &packets.Properties{
		PayloadFormat: pointer(byte(1)), MessageExpiry: pointer(uint32(9)), ContentType: "c", ResponseTopic: "r", CorrelationData: []byte("d"),
		User: []packets.User{{Key: "k", Value: "v"}, {}},
	}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("will (-want +got):\n%s", diff)
	}
	watch.Subscribe("w/now", 0)
	watch.Expect("w/now q0 retained: lost")

	c = connect(t, s, "clean", will("none", 0))
	c.Send(&packets.Disconnect{Properties: &packets.Properties{}})
	c.Ended()
	c = connect(t, s, "asked", will("asked", 0))
	c.Send(&packets.Disconnect{ReasonCode: 0x04, Properties: &packets.Properties{}})
	c.Ended()
	watch.Expect("w/asked q1: asked")
	c = connect(t, s, "wrong", will("wrong", 0))
	c.Raw("\x00\x00")
	c.Ended("DISCONNECT 0x82")
	watch.Expect("w/wrong q1: wrong")

	gone(connect(t, s, "late", will("late", 10_000)))
	s.advance(9000 * time.Second)
	watch.Nothing()
	s.advance(1000 * time.Second)
	watch.Expect("w/late q1: late")

	gone(connect(t, s, "back", will("back", 10_000)))
	s.advance(9000 * time.Second)
	c = resume(t, s, "back", will("not yet", 0)) // the new will is not sent at the time of the old one either
	s.advance(20_000 * time.Second)
	watch.Nothing()
	gone(c)
	watch.Expect("w/not yet q1: back")

	gone(connect(t, s, "anew", will("anew", 10_000)))
	c = connect(t, s, "anew") // which ends the session
	watch.Expect("w/anew q1: anew")
	gone(c)

	gone(connect(t, s, "short", will("short", 1_000_000)))
	s.advance(99_000 * time.Second)
	watch.Nothing()
	s.advance(1000 * time.Second) // ends the session
	watch.Expect("w/short q1: short")

	connect(t, s, "taken", will("taken", 0))
	connect(t, s, "taken")
	watch.Expect("w/taken q1: taken")
}

// TestShared: MQTT 5, 4.8.2. Each message goes to one member of each group.
func TestShared(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	pub := connect(t, s, "pub")
	a, b, other, plain := connect(t, s, "a"), connect(t, s, "b"), connect(t, s, "other"), connect(t, s, "plain")
	a.Subscribe("$share/g/t/+", 2, identifier(4))
	b.Subscribe("$share/g/t/+", 0)
	other.Subscribe("$share/h/t/+", 1)
	plain.Subscribe("t/1", 1)
	for i := range 4 {
		pub.Publish("t/1", 1, fmt.Sprint(i), 0)
		other.Expect(fmt.Sprintf("t/1 q1: %d", i))
		plain.Expect(fmt.Sprintf("t/1 q1: %d", i))
	}
	a.Expect("t/1 q1 ids [4]: 0", "t/1 q1 ids [4]: 2")
	b.Expect("t/1 q0: 1", "t/1 q0: 3") // with the QoS of each member's subscription [MQTT-4.8.2-3]
	a.Nothing()
	b.Nothing()
	a.unsubscribe("$share/g/t/+")
	b.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 4 })
	pub.Publish("t/2", 1, "h", 0)
	other.Expect("t/2 q1: h")
	other.unsubscribe("$share/h/t/+")
	pub.Publish("t/2", 1, "nobody", 0x10)
}

// TestSharedRoom: a member without room is skipped.
func TestSharedRoom(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{Queue: 1}})
	pub := connect(t, s, "pub")
	busy, free := connect(t, s, "busy", receiveMaximum(1)), connect(t, s, "free")
	away := connect(t, s, "away", lasting)
	for _, c := range []*client{busy, free, away} {
		c.Subscribe("$share/g/t", 1)
	}
	away.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 3 })
	for i := range 4 {
		pub.Publish("t", 1, fmt.Sprint(i), 0)
	}
	busy.Read()
	free.Expect("t q1: 1", "t q1: 2", "t q1: 3")
	free.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 2 })
	pub.Publish("t", 1, "4", 0) // waits for busy
	busy.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 1 })
	// The messages of busy go to the remaining member: "0" is kept, but there is no room for "4".
	pub.Publish("t", 1, "5", 0x97)
	away = resume(t, s, "away")
	away.Expect("t q1: 0")
	away.Nothing()
	pub.Publish("t", 1, "6", 0)
	away.Expect("t q1: 6")
}

// TestSharedMemberLeaves: when a member's session ends, its unacknowledged messages go to another member,
// except those already sent with QoS 2 [MQTT-4.8.2-4], [MQTT-4.8.2-5].
func TestSharedMemberLeaves(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	pub := connect(t, s, "pub")
	for _, keeps := range []bool{false, true} {
		leaver := connect(t, s, "leaver", receiveMaximum(4), func(p *packets.Connect) {
			if keeps {
				lasting(p)
			}
		})
		leaver.Subscribe("$share/g/t", 2)
		for i := range 6 {
			pub.Publish("t", byte(1+i%2), fmt.Sprint(i), 0)
		}
		for range 4 {
			leaver.Read()
		}
		leaver.Send(&packets.Puback{PacketID: 1, Properties: &packets.Properties{}})
		leaver.Read()
		stayer := connect(t, s, "stayer")
		stayer.Subscribe("$share/g/t", 1)
		leaver.Conn.Close()
		s.await(t, func(st broker.Stats) bool { return st.Clients == 2 })
		if keeps { // until the session ends
			stayer.Nothing()
			s.advance(time.Hour)
		}
		stayer.Expect("t q1: 2", "t q1: 4", "t q1: 5")
		stayer.Nothing()
		stayer.Conn.Close()
		s.await(t, func(st broker.Stats) bool { return st.Clients == 1 })
	}
	s.await(t, func(st broker.Stats) bool { return st.Subscriptions == 0 && st.Sessions == 1 })
}

// TestSubscriptionLimit: the number of a client's subscriptions is limited.
func TestSubscriptionLimit(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{MaxSubscriptions: 2, MaxSessions: 1}})
	c := connect(t, s, "c")
	c.Subscribe("a", 0)
	c.Subscribe("b", 0)
	c.Subscription("c", 0)
	c.Expect("SUBACK 151")
	c.Subscribe("b", 1)
	c.unsubscribe("a")
	c.Subscribe("c", 0)
	d := dial(t, s, "d")
	d.Send(d.Connection())
	d.Ended("CONNACK 0x97")
}

// TestSys: the broker publishes its statistics every 10 s while a client is subscribed.
func TestSys(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Version: "1.2"})
	other := connect(t, s, "other", lasting)
	other.Subscribe("a", 0)
	other.Publish("r", 1, "x", 0x10, retain)
	other.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 0 })
	c := connect(t, s, "c")
	c.Subscribe("#", 0)
	c.Expect("r q0 retained: x")
	c.Nothing()
	s.advance(25 * time.Second)
	c.Subscribe("$SYS/#", 0)
	read := func(flags string) map[string]string {
		t.Helper()
		values := map[string]string{}
		for range 11 {
			text := c.Describe(c.Receive())
			topic, value, _ := strings.Cut(text, " q0"+flags+": ")
			values[strings.TrimPrefix(topic, "$SYS/broker/")] = value
		}
		return values
	}
	first := read(" retained")
	for topic, want := range map[string]string{
		"version": "1.2", "clients/connected": "1", "clients/disconnected": "1", "clients/total": "2",
		"subscriptions/count": "3", "retained messages/count": "1", "messages/received": "1",
	} {
		if first[topic] != want {
			t.Errorf("%s is %q, want %q", topic, first[topic], want)
		}
	}
	uptime := func(values map[string]string, least int) {
		t.Helper()
		var seconds int
		if _, err := fmt.Sscanf(values["uptime"], "%d seconds", &seconds); err != nil || seconds < least || seconds > least+int(patience.Seconds()) {
			t.Errorf("uptime is %q, want at least %d seconds", values["uptime"], least)
		}
	}
	uptime(first, 25)
	c.Nothing()
	s.advance(10 * time.Second)
	second := read("")
	for _, topic := range []string{"uptime", "messages/sent", "bytes/sent", "bytes/received"} {
		if second[topic] == first[topic] || second[topic] == "" {
			t.Errorf("%s stays %q", topic, first[topic])
		}
	}
	c.Nothing()
	s.advance(10 * time.Second)
	uptime(read(""), 45)
	c.Nothing()
	c.unsubscribe("$SYS/#")
	s.advance(time.Minute)
	c.Nothing()
}
