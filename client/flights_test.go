package client_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/testkit/testpeer"
)

// A line is a network between a client and a broker that delays everything from the broker. All that the
// client sends in the meantime is one flight, because it waited for nothing in between.
type line struct {
	address string

	mu          sync.Mutex
	connections int
	flights     [][]string // the client's writes, by flight
	answered    bool       // bytes from the broker arrived after the last bytes from the client
}

// newLine returns a line that delays the broker's bytes by delay. A client that the machine holds up for less
// than delay does not count as waiting.
func newLine(t *testing.T, broker string, delay time.Duration) *line {
	t.Helper()
	l := new(line)
	l.address = testpeer.Serve(t, func(_ int, nc net.Conn) {
		l.mu.Lock()
		l.connections++
		l.answered = true
		l.mu.Unlock()
		testpeer.Relay(nc, broker,
			func(to, from net.Conn) { l.carry(to, from, l.said, 0) },
			func(to, from net.Conn) { l.carry(to, from, l.heard, delay) })
	})
	return l
}

// carry copies from one side to the other until one of them closes.
func (l *line) carry(to, from net.Conn, note func([]byte), delay time.Duration) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		time.Sleep(delay)
		note(buf[:n])
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *line) said(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered {
		l.flights = append(l.flights, nil)
		l.answered = false
	}
	last := &l.flights[len(l.flights)-1]
	*last = append(*last, string(b))
}

func (l *line) heard([]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = true
}

// sent returns the flights.
func (l *line) sent() [][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.flights)
}

// packetNames returns the names of the packets in a plain-text write.
func packetNames(t *testing.T, write string) string {
	t.Helper()
	var names []string
	for r := bytes.NewReader([]byte(write)); ; {
		cp, err := packets.ReadPacket(r)
		if err == io.EOF {
			return strings.Join(names, " ")
		}
		if err != nil {
			t.Errorf("%q: %v", write, err)
			return ""
		}
		names = append(names, cp.PacketType())
	}
}
