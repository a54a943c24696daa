package broker_test

import (
	"fmt"
	"math/bits"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/broker"
)

// TestBudget: the memory that all clients together can use is limited. A client that asks for more gets 0x97
// (MQTT 5, 4.13), and sessions that end free memory.
func TestBudget(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	block := strings.Repeat("x", most/8)
	free := func(s *server) {
		t.Helper()
		s.await(t, func(st broker.Stats) bool { return st.Kept < most/2 })
	}
	exhaust := func(t *testing.T, step func(i int) (refused bool)) int {
		t.Helper()
		for i := range 10_000 {
			if step(i) {
				return i
			}
		}
		t.Fatal("there is no limit")
		return 0
	}
	hello := func(s *server, i int, change ...func(*packets.Connect)) byte {
		c := dial(t, s, fmt.Sprint("c", i))
		code := c.Hello(append([]func(*packets.Connect){lasting}, change...)...).ReasonCode
		c.Conn.Close()
		return code
	}
	startSmall := func(t *testing.T) *server { return start(t, broker.Options{Limits: broker.Limits{MaxBytes: most}}) }

	t.Run("sessions", func(t *testing.T) {
		s := startSmall(t)
		if n := exhaust(t, func(i int) bool { return hello(s, i) == 0x97 }); n > most/(10*bits.UintSize) {
			t.Errorf("%d sessions", n)
		}
		if code := hello(s, 0); code != 0 {
			t.Errorf("a session that is there: CONNACK %#x", code)
		}
		s.advance(2 * 3600e9)
		free(s)
		connect(t, s, "new")
	})
	t.Run("wills", func(t *testing.T) {
		s := startSmall(t)
		will := func(p *packets.Connect) {
			p.WillFlag, p.WillTopic, p.WillMessage = true, "w", []byte(block[:50_000])
			p.WillProperties = &packets.Properties{WillDelayInterval: pointer(uint32(60))}
		}
		if n := exhaust(t, func(i int) bool { return hello(s, i, will) == 0x97 }); n > most/50_000 {
			t.Errorf("%d wills", n)
		}
		s.advance(61e9)
		free(s)
	})
	t.Run("messages that are not released", func(t *testing.T) {
		s := startSmall(t)
		c := connect(t, s, "c")
		for range 100 {
			c.Send(c.Message("t", 2, ""))
		}
		for id := range 100 {
			c.Expect(fmt.Sprintf("PUBREC %d 0x10", id+1))
		}
		c.Conn.Close()
		s.await(t, func(st broker.Stats) bool { return st.Sessions == 0 && st.Connections == 0 && st.Kept == 0 })
	})
	t.Run("subscriptions", func(t *testing.T) {
		s := startSmall(t)
		c := connect(t, s, "c")
		refused := func(i int) bool {
			c.Subscription(fmt.Sprintf("%d/%s", i, block[:60_000]), 1)
			return c.Describe(c.Receive()) == "SUBACK 151"
		}
		if n := exhaust(t, refused); n > most/60_000 {
			t.Errorf("%d subscriptions", n)
		}
		c.Send(&packets.Unsubscribe{PacketID: c.PacketID(), Topics: []string{"0/" + block[:60_000]}, Properties: &packets.Properties{}})
		c.Expect("UNSUBACK 0")
		c.Subscribe("t", 1)
	})
	t.Run("retained", func(t *testing.T) {
		s := startSmall(t)
		c := connect(t, s, "c")
		more := func(i int) bool {
			p := c.Message(fmt.Sprint(i), 1, block, retain)
			c.Send(p)
			return c.Describe(c.Receive()) == fmt.Sprintf("PUBACK %d 0x97", p.PacketID)
		}
		n := exhaust(t, more)
		if n < 5 || n > 8 {
			t.Errorf("%d messages", n)
		}
		c.Publish("0", 1, "", 0x10, retain)
		c.Publish("1", 1, strings.ToUpper(block), 0x10, retain)
	})
	t.Run("kept messages", func(t *testing.T) {
		s := startSmall(t)
		const sessions = 20
		for i := range sessions {
			sub := connect(t, s, fmt.Sprint("sub", i), lasting)
			sub.Subscribe("t", 2)
			sub.Conn.Close()
		}
		s.await(t, func(st broker.Stats) bool { return st.Clients == 0 })
		pub := connect(t, s, "pub")
		// All sessions share the memory of the message.
		n := exhaust(t, func(int) bool {
			p := pub.Message("t", 1, block)
			pub.Send(p)
			return pub.Describe(pub.Receive()) == fmt.Sprintf("PUBACK %d 0x97", p.PacketID)
		})
		if n < 4 || n > 7 {
			t.Errorf("%d messages", n)
		}
		for i := range sessions {
			c := resume(t, s, fmt.Sprint("sub", i))
			for range n {
				c.Expect("t q1: " + block)
			}
			c.Conn.Close()
			s.await(t, func(st broker.Stats) bool { return st.Connections == 1 })
		}
		free(s)
		pub.Publish("t", 2, block, 0)
	})
	t.Run("a client that does not read", func(t *testing.T) {
		s := startSmall(t)
		lazy, sub, pub := connect(t, s, "lazy"), connect(t, s, "sub"), connect(t, s, "pub")
		lazy.Conn.(*net.TCPConn).SetReadBuffer(1)
		for _, c := range []*client{lazy, sub} {
			c.Subscribe("t", 0)
		}
		text, limit := block, 500 // most messages are in kernel buffers
		if runtime.GOOS == "windows" {
			// Package socket does not write there, so each message passes through the outbox of sub. It
			// must fit in the share of sub when lazy has exhausted the budget.
			const smaller = 8
			text, limit = text[:len(text)/smaller], limit*smaller
		}
		n := exhaust(t, func(int) bool {
			pub.Publish("t", 1, text, 0)
			sub.Expect("t q0: " + text)
			s.Lock()
			defer s.Unlock()
			return s.Stats().Clients == 2
		})
		if n > limit {
			t.Errorf("%d messages", n)
		}
		lazy.Conn.Close()
		free(s)
	})
	t.Run("many clients that do not read, and one that does", func(t *testing.T) {
		const (
			most = 4 << 20
			many = 20
			step = 1 << 20 // bytes in transit to sockets that accept them at once
		)
		text := strings.Repeat("x", 30_000)
		s := start(t, broker.Options{Limits: broker.Limits{MaxBytes: most}})
		for i := range many {
			lazy := connect(t, s, fmt.Sprint("lazy", i))
			lazy.Conn.(*net.TCPConn).SetReadBuffer(1)
			lazy.Subscribe("t", 0)
		}
		sub, pub := connect(t, s, "sub"), connect(t, s, "pub")
		sub.Subscribe("t", 0)
		for i := range most * 3 / 4 / len(text) { // the rest is for the outboxes
			pub.Publish(fmt.Sprint("retained/", i), 1, text, 0x10, retain)
		}
		n := exhaust(t, func(int) bool {
			pub.Publish("t", 1, text, 0)
			sub.Expect("t q0: " + text)
			s.Lock()
			defer s.Unlock()
			if kept := s.Stats().Kept; kept > most+most/4+step {
				t.Fatalf("%d bytes are kept", kept)
			}
			return s.Stats().Clients == 2
		})
		if n > 2000 {
			t.Errorf("%d messages", n)
		}
	})
	t.Run("a client that does not acknowledge", func(t *testing.T) {
		s := startSmall(t)
		lazy, sub, pub := connect(t, s, "lazy", lasting), connect(t, s, "sub"), connect(t, s, "pub")
		for _, c := range []*client{lazy, sub} {
			c.Subscribe("t", 1)
		}
		n := exhaust(t, func(int) bool {
			p := pub.Message("t", 1, block[:50_000])
			pub.Send(p)
			sub.Expect("t q1: " + block[:50_000])
			if pub.Describe(pub.Receive()) == fmt.Sprintf("PUBACK %d 0x97", p.PacketID) {
				return true
			}
			lazy.Receive()
			return false
		})
		if n > 2*most/50_000 {
			t.Errorf("%d messages", n)
		}
		sub.Nothing()
	})
	t.Run("packets that do not end", func(t *testing.T) {
		s := startSmall(t)
		c := connect(t, s, "c")
		c.Raw("\x30\xff\xff\xff\x7f\x00\x01t\x00")
		go func() {
			for range 100 {
				if _, err := c.Conn.Write([]byte(block)); err != nil {
					return
				}
			}
		}()
		c.Ended("DISCONNECT 0x97")
		c.Conn.Close()
		free(s)
	})
	t.Run("topic aliases", func(t *testing.T) {
		s := startSmall(t)
		c := connect(t, s, "c")
		alias := uint16(0)
		refused := func(int) bool {
			alias++
			p := c.Message(block[:60_000], 1, "", func(p *packets.Publish) { p.Properties.TopicAlias = pointer(alias) })
			c.Send(p)
			return c.Describe(c.Receive()) == "DISCONNECT 0x97"
		}
		if n := exhaust(t, refused); n > most/60_000 {
			t.Errorf("%d aliases", n)
		}
		c.Conn.Close()
		free(s)
	})
}

// TestPublishToManyWithinBudget: a reply to a topic of many clients waits for its turn. The broker copies it
// only if the budget allows the copy.
func TestPublishToManyWithinBudget(t *testing.T) {
	t.Parallel()
	const most, many = 16 << 20, 520
	s := start(t, broker.Options{Limits: broker.Limits{MaxBytes: most}})
	for i := range many {
		c := connect(t, s, fmt.Sprint("c", i), lasting)
		c.Subscribe("all", 0)
		c.Conn.Close()
	}
	s.await(t, func(st broker.Stats) bool { return st.Clients == 0 })
	payload := make([]byte, 1<<20)
	s.Lock()
	for i := range 100 { // the lock makes all of them wait
		d := s.Publish([]byte("all"), broker.Message{Payload: payload})
		if i == 0 && d.Sent != many || i == 99 && d != (broker.Delivered{Matched: many, Refused: many}) {
			t.Errorf("reply %d: %+v", i, d)
		}
	}
	kept := s.Stats().Kept
	s.Unlock()
	if kept > most {
		t.Errorf("the broker keeps %d bytes, its limit is %d", kept, most)
	}
}

// TestUserNameMemory: the broker does not store a user name that no login has proved.
func TestUserNameMemory(t *testing.T) {
	const clients = 200
	s := start(t, broker.Options{})
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		s.Lock()
		defer s.Unlock()
		return int(m.HeapAlloc) - s.Stats().Kept
	}
	before := heap()
	for i := range clients {
		connect(t, s, fmt.Sprint("c", i), func(c *packets.Connect) {
			c.UsernameFlag, c.Username = true, strings.Repeat("u", 60_000)
		})
	}
	if each := (heap() - before) / clients; each > 30_000 {
		t.Errorf("a client with a user name of 60 KB takes %d bytes more than are charged", each)
	}
}

// TestResumeTogether: clients with a WebSocket come back to the same messages, each kept once for all of them, while
// memory is scarce. A client that does not read gets a part of them, and a client that reads gets all.
func TestResumeTogether(t *testing.T) {
	const (
		size  = 64 << 10
		kept  = 32 << 20
		most  = kept + 16<<20
		limit = most + most/4 + 1<<20
	)
	s := start(t, broker.Options{Limits: broker.Limits{MaxBytes: most}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.ServeWebSocket(ln, "/mqtt")
	ids := []string{"a", "b", "c", "d"}
	for _, id := range ids {
		c := connect(t, s, id, lasting)
		c.Subscribe("t", 1)
		c.Conn.Close()
	}
	s.await(t, func(st broker.Stats) bool { return st.Connections == 0 })
	pub := connect(t, s, "pub")
	payload := strings.Repeat("x", size)
	for range kept / size {
		pub.Publish("t", 1, payload, 0)
	}
	var clients []*client
	for _, id := range ids {
		c := dialWebSocket(t, "ws://"+ln.Addr().String()+"/mqtt", id)
		if ack := c.Hello(lasting, receiveMaximum(10_000)); ack.ReasonCode != 0 {
			t.Fatalf("CONNACK %#x", ack.ReasonCode)
		}
		clients = append(clients, c)
	}
	last := clients[len(clients)-1]
	for range kept / size {
		last.Expect("t q1: " + payload)
	}
	s.Lock()
	st := s.Stats()
	s.Unlock()
	if st.Kept > limit {
		t.Errorf("%d bytes are kept, want at most %d", st.Kept, limit)
	}
}
