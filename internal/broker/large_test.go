package broker_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/broker"
)

// TestLargePayloads: large messages arrive complete and in order, however they are stored and sent.
func TestLargePayloads(t *testing.T) {
	t.Parallel()
	s, url := startWebSocket(t)
	const size = 3 << 20
	large := func(letter string) string { return strings.Repeat(letter, size) }
	plain, socket := connect(t, s, "plain"), dialWebSocket(t, url, "socket")
	socket.Hello()
	away := connect(t, s, "away", lasting)
	away.Subscribe("t", 1)
	away.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 2 })
	plain.Subscribe("t", 1)
	socket.Subscribe("t", 1)
	p := connect(t, s, "p")
	p.Publish("t", 1, "small", broker.Success)
	p.Publish("t", 1, large("a"), broker.Success)
	p.Publish("t", 0, large("b"), 0)
	p.Publish("t", 2, large("c"), broker.Success, retain)
	p.Publish("t", 1, "last", broker.Success)
	for _, c := range []*client{plain, socket} {
		c.Expect("t q1: small", "t q1: "+large("a"), "t q0: "+large("b"), "t q1: "+large("c"), "t q1: last")
	}
	late := connect(t, s, "late")
	late.Subscribe("t", 0)
	late.Expect("t q0 retained: " + large("c"))
	back := resume(t, s, "away", lasting)
	back.Expect("t q1: small", "t q1: "+large("a"), "t q1: "+large("c"), "t q1: last")
	p.Publish("t", 0, "", 0, retain)
	late.Expect("t q0: ")
}

// TestLargeMessageIsShared: the packet of a large message is its only copy, however many clients wait for it.
// Each of them is charged for it.
func TestLargeMessageIsShared(t *testing.T) {
	t.Parallel()
	const size, clients = broker.LargePayload, 20
	s := start(t, broker.Options{})
	for i := range clients {
		c := connect(t, s, fmt.Sprint("c", i), lasting)
		c.Subscribe("t", 1)
		c.Conn.Close()
	}
	s.await(t, func(st broker.Stats) bool { return st.Clients == 0 && st.Connections == 0 })
	payload := strings.Repeat("x", size)
	p := connect(t, s, "p")
	p.Publish("t", 1, payload, broker.Success)
	p.Publish("other", 1, strings.Repeat("y", size), 0x10) // may not be read into the memory of the first
	p.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Connections == 0 && st.Kept < 2*size })
	for i := range clients {
		back := resume(t, s, fmt.Sprint("c", i), lasting)
		back.Expect("t q1: " + payload)
	}
}

// TestTornPacket: the broker disconnects a client that reads a large message too slowly. If it has written a part of
// the message, it writes nothing after that part.
func TestTornPacket(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	s := start(t, broker.Options{Limits: broker.Limits{OutboxBytes: 2 * size}})
	c, p := connect(t, s, "c"), connect(t, s, "p")
	c.Subscribe("t", 0)
	payload := strings.Repeat("x", size)
	connected := func() bool {
		s.Lock()
		defer s.Unlock()
		return s.Client("c") != nil
	}
	for connected() {
		p.Publish("t", 0, payload, 0)
		p.Publish("none", 1, "", 0x10) // the broker has handled the message
	}
	for {
		c.Conn.SetReadDeadline(time.Now().Add(patience))
		packet, err := packets.ReadPacket(c.Conn)
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Describe(packet); got != "t q0: "+payload && got != "DISCONNECT 0x97" {
			t.Fatalf("%d bytes: %.60q…", len(got), got)
		}
	}
}

// TestLargeMessageBeyondShare: if the memory for clients is exhausted, a client that is sent a large message which
// exceeds its share is disconnected, though the beginning of the message could be written.
func TestLargeMessageBeyondShare(t *testing.T) {
	t.Parallel()
	const size = 12 << 20
	s := start(t, broker.Options{Limits: broker.Limits{MaxBytes: size * 4 / 3}})
	c, p := connect(t, s, "c"), connect(t, s, "p")
	c.Subscribe("t", 0)
	p.Publish("t", 0, strings.Repeat("x", size), 0)
	p.Publish("none", 1, "", 0x10) // the broker has handled the message
	s.Lock()
	defer s.Unlock()
	if s.Client("c") != nil {
		t.Error("the client is still connected")
	}
}
