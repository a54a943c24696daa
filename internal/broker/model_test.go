package broker_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/broker"
)

// A model is a broker in its simplest form: lists that are searched.
type model struct {
	sessions map[string]*modelSession
	retained []modelMessage // in order of publication
}

type modelSession struct {
	lasts, connected bool
	lazy             bool // the client acknowledges nothing
	subs             []modelSubscription
	unacked, kept    []modelMessage
	expected         []string // what must arrive at the client
}

type modelSubscription struct {
	filter               string
	qos                  byte
	noLocal, asPublished bool
}

type modelMessage struct {
	topic, payload string
	qos            byte
	retain, dup    bool
}

func (m modelMessage) String() string {
	flags := ""
	if m.dup {
		flags += " dup"
	}
	if m.retain {
		flags += " retained"
	}
	return fmt.Sprintf("%s q%d%s: %s", m.topic, m.qos, flags, m.payload)
}

func (s *modelSession) deliver(m modelMessage) {
	switch {
	case s.connected:
		s.expected = append(s.expected, m.String())
		if s.lazy && m.qos > 0 {
			m.dup = true
			s.unacked = append(s.unacked, m)
		}
	case s.lasts && m.qos > 0:
		s.kept = append(s.kept, m)
	}
}

// modelMatches implements MQTT 5, 4.7, for the filters of the test.
func modelMatches(filter, topic string) bool {
	f, t := strings.Split(filter, "/"), strings.Split(topic, "/")
	for i, level := range f {
		switch {
		case level == "#":
			return true
		case i == len(t), level != "+" && level != t[i]:
			return false
		}
	}
	return len(f) == len(t)
}

func (m *model) publish(from string, msg modelMessage) (matched bool) {
	if msg.retain {
		m.retained = slices.DeleteFunc(m.retained, func(r modelMessage) bool { return r.topic == msg.topic })
		if msg.payload != "" {
			m.retained = append(m.retained, msg)
		}
	}
	for id, s := range m.sessions {
		found := false
		out := msg
		out.qos, out.retain = 0, false
		for _, sub := range s.subs {
			if modelMatches(sub.filter, msg.topic) && (!sub.noLocal || id != from) {
				found = true
				out.qos = max(out.qos, min(sub.qos, msg.qos))
				out.retain = out.retain || sub.asPublished && msg.retain
			}
		}
		if found {
			matched = true
			s.deliver(out)
		}
	}
	return matched
}

func (m *model) subscribe(s *modelSession, sub modelSubscription) {
	s.subs = slices.DeleteFunc(s.subs, func(old modelSubscription) bool { return old.filter == sub.filter })
	s.subs = append(s.subs, sub)
	for _, r := range m.retained {
		if modelMatches(sub.filter, r.topic) {
			r.qos = min(r.qos, sub.qos)
			s.deliver(r)
		}
	}
}

func (m *model) connect(id string, clean, lasts bool) (present bool) {
	m.leave(id)
	if clean {
		delete(m.sessions, id)
	}
	s, present := m.sessions[id]
	if !present {
		s = &modelSession{}
		m.sessions[id] = s
	}
	s.connected, s.lasts, s.lazy, s.expected = true, lasts, false, nil
	again := slices.Concat(s.unacked, s.kept)
	s.unacked, s.kept = nil, nil
	for _, msg := range again {
		s.deliver(msg)
	}
	return present
}

func (m *model) leave(id string) {
	if s := m.sessions[id]; s != nil {
		s.connected = false
		if !s.lasts {
			delete(m.sessions, id)
		}
	}
}

// FuzzBroker: after any sequence of connections, subscriptions and messages, each client has received what
// the model expects, in its order.
func FuzzBroker(f *testing.F) {
	f.Add([]byte{0, 0, 2, 3, 0, 8, 5, 1, 4, 0, 1, 0, 5, 1, 4, 5, 1, 0x28})
	f.Add([]byte{0, 0, 2, 0, 1, 2, 3, 0, 17, 3, 1, 9, 6, 0, 0, 5, 1, 4, 5, 1, 8, 2, 0, 0, 5, 1, 5, 0, 0, 2, 5, 0, 0x24})
	f.Add(bytes.Repeat([]byte{0, 2, 3, 3, 2, 0xff, 5, 2, 0x29, 1, 2, 0, 4, 2, 1}, 4))
	f.Add([]byte{0, 0, 2, 3, 0, 0x11, 6, 0, 0, 5, 0, 4, 5, 0, 8, 5, 0, 0, 0, 0, 2, 6, 0, 0, 0, 0, 2, 0, 0, 3})
	for seed := range uint64(20) {
		random, ops := rand.New(rand.NewPCG(seed, 0)), make([]byte, 360)
		for i := range ops {
			ops[i] = byte(random.Uint32())
		}
		f.Add(ops)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		s := start(t, broker.Options{})
		m := &model{sessions: map[string]*modelSession{}}
		clients := map[string]*client{}
		filters := []string{"a", "a/b", "a/+", "#", "+", "+/b", "a/#"}
		topics := []string{"a", "a/b", "a/c", "b/b"}
		gone := func() {
			s.await(t, func(st broker.Stats) bool { return st.Connections == len(clients) })
		}
		ops = ops[:min(len(ops), 360)]
		for n := 0; len(ops) >= 3; ops = ops[3:] {
			op, id, arg := ops[0]%7, fmt.Sprintf("c%d", ops[1]%3), ops[2]
			c, there := clients[id]
			if op == 0 {
				next := dial(t, s, id)
				present := m.connect(id, arg&1 == 0, arg&2 != 0)
				ack := next.Hello(func(p *packets.Connect) {
					p.CleanStart = arg&1 == 0
					if arg&2 != 0 {
						p.Properties.SessionExpiryInterval = pointer(uint32(3600))
					}
				})
				if ack.SessionPresent != present {
					t.Fatalf("%s: session present %t", id, ack.SessionPresent)
				}
				if there {
					c.Ended("DISCONNECT 0x8e")
					c.Conn.Close()
				}
				clients[id] = next
				gone()
			}
			if !there && op != 0 {
				continue
			}
			ms := m.sessions[id]
			switch op {
			case 1, 2:
				if op == 1 {
					c.Send(&packets.Disconnect{Properties: &packets.Properties{}})
				}
				c.Conn.Close()
				delete(clients, id)
				m.leave(id)
				gone()
			case 3:
				sub := modelSubscription{filters[int(arg)%len(filters)], arg >> 3 % 3, arg>>5&1 != 0, arg>>6&1 != 0}
				c.Subscription(sub.filter, sub.qos, func(p *packets.Subscribe) {
					p.Subscriptions[0].NoLocal, p.Subscriptions[0].RetainAsPublished = sub.noLocal, sub.asPublished
				})
				ms.expected = append(ms.expected, fmt.Sprintf("SUBACK %d", sub.qos))
				m.subscribe(ms, sub)
			case 4:
				filter := filters[int(arg)%len(filters)]
				code := 17
				if i := slices.IndexFunc(ms.subs, func(sub modelSubscription) bool { return sub.filter == filter }); i >= 0 {
					ms.subs = slices.Delete(ms.subs, i, i+1)
					code = 0
				}
				c.Send(&packets.Unsubscribe{PacketID: c.PacketID(), Topics: []string{filter}, Properties: &packets.Properties{}})
				ms.expected = append(ms.expected, fmt.Sprintf("UNSUBACK %d", code))
			case 5:
				n++
				msg := modelMessage{topic: topics[int(arg)%len(topics)], qos: arg >> 2 % 3, retain: arg>>5&1 != 0, payload: fmt.Sprint(n)}
				if arg>>6&1 != 0 {
					msg.payload = ""
				}
				p := c.Message(msg.topic, msg.qos, msg.payload, func(p *packets.Publish) { p.Retain = msg.retain })
				c.Send(p)
				code := 0x10
				if m.publish(id, msg) {
					code = 0
				}
				switch msg.qos {
				case 1:
					ms.expected = append(ms.expected, fmt.Sprintf("PUBACK %d 0x%02x", p.PacketID, code))
				case 2:
					c.Send(&packets.Pubrel{PacketID: p.PacketID, Properties: &packets.Properties{}})
					ms.expected = append(ms.expected, fmt.Sprintf("PUBREC %d 0x%02x", p.PacketID, code), fmt.Sprintf("PUBCOMP %d 0x00", p.PacketID))
				}
			case 6:
				ms.lazy = true
			}
			// The acting client comes first: afterwards, the effects of its packets are queued for the
			// others.
			ids := slices.SortedFunc(mapsKeys(clients), func(a, b string) int { return strings.Compare(mark(a, id), mark(b, id)) })
			for _, other := range ids {
				settle(t, clients[other], m.sessions[other])
			}
		}
		subscriptions := 0
		for _, s := range m.sessions {
			subscriptions += len(s.subs)
		}
		s.await(t, func(st broker.Stats) bool {
			return st.Subscriptions == subscriptions && st.Retained == len(m.retained) && st.Sessions == len(m.sessions)
		})
		// Sessions that ended and messages that are no longer retained leave nothing behind.
		for id := range m.sessions {
			next := dial(t, s, id)
			next.Hello()
			for _, r := range m.retained {
				next.Publish(r.topic, 0, "", 0, retain)
			}
			next.Nothing()
			next.Conn.(*net.TCPConn).SetLinger(0)
			next.Conn.Close()
		}
		for _, c := range clients {
			c.Conn.(*net.TCPConn).SetLinger(0)
			c.Conn.Close()
		}
		s.await(t, func(st broker.Stats) bool {
			return st.Connections == 0 && (st.Kept == 0 || len(m.sessions) == 0)
		})
	})
}

func mark(id, first string) string {
	if id == first {
		return ""
	}
	return id
}

func mapsKeys(m map[string]*client) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// settle reads everything in transit to a client and compares it with the model. Replies to the client's
// packets and other clients' messages may interleave, so it compares each kind in its own order.
func settle(t *testing.T, c *client, ms *modelSession) {
	t.Helper()
	c.Send(&packets.Pingreq{})
	var answers, messages []string
	for {
		p := c.Receive()
		text := c.Describe(p)
		if text == "PINGRESP" {
			break
		}
		if p.Type != packets.PUBLISH {
			answers = append(answers, text)
			continue
		}
		messages = append(messages, text)
		if !ms.lazy {
			c.Acknowledge(p)
		}
	}
	var wantAnswers, wantMessages []string
	for _, want := range ms.expected {
		if strings.Contains(want, ": ") {
			wantMessages = append(wantMessages, want)
		} else {
			wantAnswers = append(wantAnswers, want)
		}
	}
	ms.expected = nil
	if diff := cmp.Diff([][]string{wantAnswers, wantMessages}, [][]string{answers, messages}); diff != "" {
		t.Fatalf("%s (-model +broker):\n%s", c.ID, diff)
	}
	// Complete all acknowledgements before the connection breaks: PUBREC is answered with PUBREL, and PUBREL
	// with PUBCOMP.
	c.Nothing()
	c.Nothing()
}

// FuzzStream: whatever bytes a client sends after CONNECT, the broker survives and serves other clients.
func FuzzStream(f *testing.F) {
	s := start(f, broker.Options{Limits: broker.Limits{Outbox: 1000, OutboxBytes: 1 << 20, Queue: 100, MaxPacketSize: 1 << 16, MaxRetained: 10, MaxSessions: 10}, Topic: "ask",
		Handle: func(c *broker.Client, p *broker.Publish) byte { return broker.Later }})
	f.Add(byte(5), []byte("\x32\x07\x00\x01t\x00\x01\x00x\x82\x07\x00\x01\x00\x00\x01#\x02\x34\x07\x00\x01t\x00\x02\x00x\x62\x02\x00\x02"))
	f.Add(byte(4), []byte("\x82\x06\x00\x01\x00\x01#\x02\x35\x06\x00\x01t\x00\x02x\xe0\x00"))
	f.Add(byte(5), []byte("\x30\x09\x00\x01t\x03\x23\x00\x01xx\x30\x07\x00\x00\x03\x23\x00\x01x\xf0\x00\xc0\x00"))
	f.Add(byte(5), []byte("\x82\x10\x00\x01\x00\x00\x0a$share/g/t\x02\x34\x07\x00\x01t\x00\x02\x00x\x50\x02\x00\x01\x70\x02\x00\x01"))
	f.Fuzz(func(t *testing.T, version byte, stream []byte) {
		c := dial(t, s, "fuzz")
		hello := []byte("\x10\x15\x00\x04MQTT\x05\x00\x00\x3c\x05\x11\x00\x00\x00\x10\x00\x04fuzz")
		if version%2 == 0 {
			hello = []byte("\x10\x10\x00\x04MQTT\x04\x00\x00\x3c\x00\x04fuzz")
		}
		c.Conn.Write(append(hello, stream...)) // the broker may close the connection in the middle
		c.Conn.(*net.TCPConn).CloseWrite()
		other := connect(t, s, "other")
		other.Subscribe("own", 1)
		other.Send(other.Message("own", 1, "x"))
		got := []string{other.Describe(other.Receive()), other.Describe(other.Receive())}
		// The bytes may have created a session that is full.
		if !slices.Contains(got, "own q1: x") || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "PUBACK") }) {
			t.Errorf("got %q", got)
		}
		other.Conn.Close()
		c.Conn.Close()
		s.await(t, func(st broker.Stats) bool { return st.Connections == 0 })
	})
}
