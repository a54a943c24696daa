package broker

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/testkit/memtest"
)

// TestCosts compares the broker's charge for each kind of object, at its largest and in large numbers, with
// the memory of the objects. It fails if a new field of variable size is not charged.
func TestCosts(t *testing.T) {
	if !memtest.Alone(t) {
		return
	}
	text := func(i, n int) string { return strings.Clone(fmt.Sprintf("%06d", i) + strings.Repeat("x", n-6)) }
	deep := func(i, levels int) string {
		return strings.Clone(fmt.Sprintf("%06d", i) + strings.Repeat("/", levels-1))
	}
	newMessage := func(i, topic, props, payload int) *message {
		m := &message{topic: text(i, topic), props: make([]byte, props), payload: make([]byte, payload), qos: 1}
		return m.keep()
	}
	queued := func(s *session, m *message, ids *identifierList) { s.enqueue(delivery{msg: m, ids: ids, qos: 1}) }
	online := func(b *Broker, s *session) *Client {
		c := &Client{b: b, session: s, Version: version5, quota: identifiers}
		s.client = c
		return c
	}
	subscribe := func(c *Client, filter string, id int) {
		if code, _ := c.subscribeTo(&requestedFilter{filter: []byte(filter), qos: 1, handling: 2}, id); code != 1 {
			t.Fatalf("%.30s: %#x", filter, code)
		}
	}
	one := &Client{Version: version5}
	for _, test := range []struct {
		object string
		number int
		make   func(b *Broker, s *session, i int)
	}{
		{"session with the longest id and user", 100, func(b *Broker, _ *session, i int) {
			b.newSession(&Identity{ID: text(i, 65_535), Username: text(i, 65_000)})
		}},
		{"subscription", 9_000, func(b *Broker, s *session, i int) { subscribe(online(b, s), text(i, 10), 7) }},
		{"session with a subscription", 9_000, func(b *Broker, s *session, i int) {
			one.session = b.newSession(&Identity{ID: text(i, 20), Username: ""})
			one.b = b
			subscribe(one, text(i, 10), 7)
		}},
		{"subscription to a long filter", 100, func(b *Broker, s *session, i int) { subscribe(online(b, s), text(i, 65_535), 7) }},
		{"subscription to a deep filter", 100, func(b *Broker, s *session, i int) { subscribe(online(b, s), deep(i, maxLevels), 7) }},
		{"shared subscription", 9_000, func(b *Broker, s *session, i int) {
			subscribe(online(b, s), "$share/g"+text(i, 10)+"/f"+text(i, 10), 7)
		}},
		{"queued message", 10_000, func(_ *Broker, s *session, i int) { queued(s, newMessage(i, 10, 0, 1), nil) }},
		{"queued message of the largest parts", 20, func(_ *Broker, s *session, i int) { queued(s, newMessage(i, 65_535, maxProperties, 1<<20), nil) }},
		{"queued delivery of one message", 65_536, func() func(*Broker, *session, int) {
			m := newMessage(0, 10, 0, 1)
			return func(_ *Broker, s *session, _ int) { queued(s, m, nil) }
		}()},
		{"queued message with 10,000 identifiers", 100, func(_ *Broker, s *session, i int) {
			queued(s, newMessage(i, 10, 0, 1), &identifierList{ids: make([]uint32, 10_000)})
		}},
		{"message in flight, identified 10,000 times", 100, func(b *Broker, s *session, i int) {
			s.expiry = 1
			online(b, s)
			s.send(&delivery{msg: newMessage(i, 10, 0, 1), ids: &identifierList{ids: make([]uint32, 10_000)}, qos: 1})
			s.client.out, s.client.parts = nil, nil // a real client would read it
			s.client.chargeBuffers(-s.client.charged)
			s.client.queued = 0
		}},
		{"transient message in flight", identifiers, func(b *Broker, s *session, i int) {
			c := s.client
			if c == nil {
				c = online(b, s)
			}
			s.send(&delivery{msg: newMessage(i, 10, 0, 1), ids: &identifierList{ids: make([]uint32, 100)}, qos: 1})
			if i%1000 == 999 || i == identifiers-1 {
				c.out, c.parts = nil, nil
				c.chargeBuffers(-c.charged)
				c.queued = 0
			}
		}},
		{"window whose first message is never acknowledged", 10, func(b *Broker, _ *session, i int) {
			s := b.newSession(&Identity{ID: text(i, 20), Username: ""})
			for j := range identifiers - 1 {
				s.inflight.full()
				s.inflight.add(waiting{qos: 1})
				if j > 0 {
					s.finish(s.inflight.hi - 1)
				}
			}
		}},
		{"retained message", 10_000, func(b *Broker, _ *session, i int) { b.retain(newMessage(i, 10, 0, 1)) }},
		{"retained message that expires", 10_000, func(b *Broker, _ *session, i int) {
			m := newMessage(i, 10, 0, 1)
			m.expires = b.Now().Add(time.Hour)
			b.retain(m)
		}},
		{"retained message of a deep topic", 100, func(b *Broker, _ *session, i int) {
			m := newMessage(i, 10, 0, 1)
			m.topic = deep(i, maxLevels)
			b.retain(m)
		}},
		{"will", 50, func(b *Broker, _ *session, i int) {
			b.newSession(&Identity{ID: text(i, 20), Username: ""}).setWill(&will{msg: newMessage(i, 65_535, maxProperties, 65_535)})
		}},
		{"received messages that wait for PUBREL", 50, func(b *Broker, _ *session, i int) {
			s := b.newSession(&Identity{ID: text(i, 20), Username: ""})
			for id := range identifiers {
				s.receive(uint16(id + 1))
			}
		}},
		{"topic aliases of the broker", 200, func(b *Broker, s *session, i int) {
			c := &Client{b: b, aliasMax: maxOutgoingAliases}
			for j := range maxOutgoingAliases {
				c.assignAlias(text(i*1000+j, 10), uint16(j+1))
			}
			b.clients[c] = struct{}{}
		}},
	} {
		t.Run(test.object, func(t *testing.T) {
			b := New(Options{Limits: Limits{MaxBytes: math.MaxInt, MaxSubscriptions: 1 << 20}})
			b.Lock()
			s := b.newSession(&Identity{ID: "s", Username: ""})
			b.Unlock()
			memtest.Compare(t, test.number, func() int { return int(b.kept.Load()) }, func(i int) {
				b.Lock()
				test.make(b, s, i)
				b.dirty = nil
				b.Unlock()
			})
			runtime.KeepAlive(b)
			runtime.KeepAlive(s)
			b.Lock()
			clear(b.clients)
			b.Unlock()
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFields: each field of the objects that clients fill is charged or bounded.
func TestFields(t *testing.T) {
	const (
		fixed     = "Client.fixedCost"
		login     = "Ticket.Reserve, until the login ends"
		one       = "one for a broker"
		elsewhere = "an object that is charged for itself"
		ofSession = "session.cost; TestCosts"
		ofClient  = "chargeBuffers; budget_test.go"
		ofSub     = "subscription.cost; TestCosts"
		ofMessage = "message.cost; TestCosts"
		ofRoute   = "route.cost; all routes: maxRouteBytes"
		ofTimer   = "timerOverhead; TestCosts"
		ofSlots   = "chargeSlots; TestCosts"
	)
	memtest.Fields(t, map[string]string{
		"Broker.opts": one, "Broker.log": one, "Broker.done": one, "Broker.line": one, "Broker.gate": "package admission", "Broker.sysTimer": one, "Broker.listeners": one,
		"Broker.clients": fixed, "Broker.sessions": ofSession, "Broker.away": ofSession, "Broker.owned": ofSession,
		"Broker.tree": ofSub, "Broker.routes": ofRoute, "Broker.lastRoute": ofRoute, "Broker.timers": ofTimer,
		"Broker.endings": "two small ones for each connection", "Broker.jobs": "one for the end of a session, a will or a SUBSCRIBE", "Broker.spares": "at most maxSpares", "Broker.dirty": elsewhere, "Broker.toClose": elsewhere,
		"Broker.own":      "the message that is being sent",
		"Broker.messages": ofSlots, "Broker.identifiers": ofSlots, "Broker.groups": ofSlots,

		"Client.Identity": "session.cost, with Verdict.Memory",
		"Client.b":        elsewhere, "Client.nc": fixed, "Client.raw": fixed, "Client.fast": fixed, "Client.tls": fixed, "Client.ws": fixed, "Client.ticket": fixed, "Client.takenOver": fixed, "Client.stalled": fixed, "Client.resume": fixed,
		"Client.session": elsewhere, "Client.login": login, "Client.connect": login, "Client.end": "a constant text, or the text of an error",
		"Client.parts": ofClient, "part.bytes": ofClient + "; once for each client that shares a value", "Client.out": ofClient, "Client.writing": ofClient, "Client.unwritten": ofClient,
		"Client.aliases": "chargeAlias; TestCosts", "Client.aliasTopics": "chargeAlias; TestCosts", "Client.topics": "chargeAlias",
		"Client.publish": "a view of the read buffer, which chargeReads charges",

		"session.b": elsewhere, "session.id": ofSession, "session.user": ofSession, "session.client": elsewhere, "session.who": "session.cost; its Value: Verdict.Memory", "session.subs": ofSub,
		"session.received": "receivedOverhead; TestCosts", "session.inflight": "chargePlaces; TestCosts", "session.pending": "chargePlaces; TestCosts",
		"session.will": ofMessage, "session.willTimer": ofSession, "session.expiryTimer": ofSession, "session.away": ofSession,

		"subscription.session": elsewhere, "subscription.filter": ofSub, "subscription.at": elsewhere, "subscription.ids": ofSub, "subscription.group": elsewhere,
		"group.name": ofSub, "group.members": ofSub,
		"node.parent": elsewhere, "node.level": ofSub, "node.children": ofSub, "node.subs": ofSub, "node.groups": ofSub, "node.retained": ofMessage, "node.expires": ofTimer,

		"delivery.msg": ofMessage, "delivery.ids": "identifierList.cost; TestCosts", "delivery.group": elsewhere,
		"message.topic": ofMessage, "message.props": ofMessage, "message.payload": ofMessage, "message.value": ofMessage + "; it may hold the packet of at most 4/3 of its size", "message.end": "a constant", "message.kept": elsewhere,
		"will.msg": ofMessage, "identifierList.ids": "identifierList.cost; TestCosts",
		"route.topic": ofRoute, "route.targets": ofRoute, "route.groups": ofRoute, "target.session": elsewhere, "target.ids": ofRoute, "target.own": ofRoute,
		"Timer.do": ofTimer,

		"connectPacket.props": login, "connectPacket.clientID": login, "connectPacket.willProps": login, "connectPacket.willTopic": login, "connectPacket.willBody": login,
		"connectPacket.user": login, "connectPacket.password": login,
		"Login.ClientID": ofSession, "Login.Username": login, "Login.Password": login, "Login.Method": "one that the login accepts", "Login.Data": login, "Login.TLS": fixed, "Login.Client": elsewhere,
		"webSocket.webSocketConn": fixed, "webSocket.path": one, "webSocket.origins": one, "webSocket.ws": fixed, "webSocket.in": fixed, "webSocket.frames": "at most maxControl twice", "webSocket.ended": one,
	}, reflect.TypeFor[Broker](), reflect.TypeFor[Client](), reflect.TypeFor[session](), reflect.TypeFor[subscription](), reflect.TypeFor[group](), reflect.TypeFor[node](),
		reflect.TypeFor[delivery](), reflect.TypeFor[message](), reflect.TypeFor[will](), reflect.TypeFor[identifierList](), reflect.TypeFor[route](), reflect.TypeFor[target](),
		reflect.TypeFor[Timer](), reflect.TypeFor[part](), reflect.TypeFor[connectPacket](), reflect.TypeFor[Login](), reflect.TypeFor[webSocket]())
}
