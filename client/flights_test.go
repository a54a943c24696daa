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
)

// A line is a network between a client and a broker that delays everything from the broker. All that the
// client sends in the meantime is one flight, because it waited for nothing in between.
type line struct {
	delay time.Duration

	mu       sync.Mutex
	flights  [][]string // the client's writes, by flight
	answered bool       // bytes from the broker arrived after the last bytes from the client
}

// A lineConn is a client's connection over a line.
type lineConn struct {
	net.Conn
	line *line
}

// over returns a connection that is made over the line.
func (l *line) over(nc net.Conn) net.Conn {
	l.heard()
	return lineConn{nc, l}
}

func (c lineConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		time.Sleep(c.line.delay)
		c.line.heard()
	}
	return n, err
}

func (c lineConn) Write(b []byte) (int, error) {
	c.line.said(b)
	return c.Conn.Write(b)
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

func (l *line) heard() {
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
