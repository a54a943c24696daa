package broker

import (
	"io"
	"net"
	"testing"
	"time"
)

// A deadlineConn notes the last deadline for writes, and the one that the first write had.
type deadlineConn struct {
	net.Conn
	deadline, first time.Time
}

func (c *deadlineConn) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *deadlineConn) Write(p []byte) (int, error) {
	if c.first.IsZero() {
		c.first = c.deadline
	}
	return c.Conn.Write(p)
}

// TestDrainTime: the time that a client has to read the rest and DISCONNECT begins when they are first written, however
// long the broker took to come to it.
func TestDrainTime(t *testing.T) {
	b := New(Options{})
	b.Lock()
	c := writingClient(t, b)
	near, far := net.Pipe()
	conn := &deadlineConn{Conn: near}
	c.nc, c.raw = conn, conn
	c.disconnect(AdministrativeAction, "")
	written := time.Now()
	c.callWriter()
	b.Unlock()
	go c.writeLoop()
	got, err := io.ReadAll(far)
	if err != nil || len(got) == 0 || got[0] != typeDisconnect<<4 {
		t.Errorf("%q, %v", got, err)
	}
	if conn.first.Before(written.Add(drainTimeout)) {
		t.Errorf("the first write may take %v", conn.first.Sub(written))
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
