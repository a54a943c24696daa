package broker

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// heap returns the bytes of all live objects.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what the first collection found in pools
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestCosts compares the broker's charge for each kind of object, at its largest and in large numbers, with
// the memory of the objects. It fails if a new field of variable size is not charged.
func TestCosts(t *testing.T) {
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
		{"session with the longest id and user", 100, func(b *Broker, _ *session, i int) { b.newSession(text(i, 65_535), text(i, 65_000)) }},
		{"subscription", 9_000, func(b *Broker, s *session, i int) { subscribe(online(b, s), text(i, 10), 7) }},
		{"session with a subscription", 9_000, func(b *Broker, s *session, i int) {
			one.session = b.newSession(text(i, 20), "")
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
			s.client.out = nil // a real client would read it
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
				c.out = nil
				c.chargeBuffers(-c.charged)
				c.queued = 0
			}
		}},
		{"window whose first message is never acknowledged", 10, func(b *Broker, _ *session, i int) {
			s := b.newSession(text(i, 20), "")
			for j := range identifiers - 1 {
				s.inflight.full()
				s.inflight.add(&delivery{qos: 1})
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
			b.newSession(text(i, 20), "").setWill(&will{msg: newMessage(i, 65_535, maxProperties, 65_535)})
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
			b := New(Options{Limits: Limits{MaxBytes: 8 << 30, MaxSubscriptions: 1 << 20}})
			b.Lock()
			s := b.newSession("s", "")
			b.Unlock()
			before, charged := heap(), b.kept.Load()
			b.Lock()
			for i := range test.number {
				test.make(b, s, i)
			}
			b.dirty = nil
			b.Unlock()
			memory, cost := heap()-before, int(b.kept.Load()-charged)
			t.Logf("cost %d, memory %d bytes each", cost/test.number, memory/test.number)
			if cost < memory*3/4 || cost > memory*5/4+1<<16 {
				t.Errorf("%d bytes are charged, %d are in use", cost/test.number, memory/test.number)
			}
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
