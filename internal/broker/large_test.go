package broker_test

import (
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/broker"
)

// TestLargePayloads: large messages arrive complete and in order, however they are stored and sent.
func TestLargePayloads(t *testing.T) {
	t.Parallel()
	s, url := startWebSocket(t)
	const size = 3 << 20
	large := func(letter string) string { return strings.Repeat(letter, size) }
	plain, socket := connect(t, s, "plain"), dialWebSocket(t, url, "socket")
	socket.hello()
	away := connect(t, s, "away", lasting)
	away.subscribe("t", 1)
	away.conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 2 })
	plain.subscribe("t", 1)
	socket.subscribe("t", 1)
	p := connect(t, s, "p")
	p.publish("t", 1, "small", broker.Success)
	p.publish("t", 1, large("a"), broker.Success)
	p.publish("t", 0, large("b"), 0)
	p.publish("t", 2, large("c"), broker.Success, retain)
	p.publish("t", 1, "last", broker.Success)
	for _, c := range []*client{plain, socket} {
		c.expect("t q1: small", "t q1: "+large("a"), "t q0: "+large("b"), "t q1: "+large("c"), "t q1: last")
	}
	late := connect(t, s, "late")
	late.subscribe("t", 0)
	late.expect("t q0 retained: " + large("c"))
	back := resume(t, s, "away", lasting)
	back.expect("t q1: small", "t q1: "+large("a"), "t q1: "+large("c"), "t q1: last")
	p.publish("t", 0, "", 0, retain)
	late.expect("t q0: ")
}
