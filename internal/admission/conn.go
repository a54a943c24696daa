package admission

import (
	"net"
	"sync"

	"github.com/sscli/sscli/internal/socket"
)

const (
	// muchWork is the number of bytes from which a write counts as much work.
	muchWork = 1 << 10
	// maxStep is the number of bytes that are written in one turn, which takes some 20 µs.
	maxStep = 64 << 10
)

// A Conn is a TCP connection whose large writes stand in line. Layers above it, such as TLS, wait in Write
// too, so their work for each write, which is at most as much as the write itself, needs no turn of its own.
type Conn struct {
	net.Conn
	fast    *socket.Conn // nil = not TCP, writes do not stand in line
	line    sync.Locker
	writing sync.Mutex
}

// InLine returns a Conn. fast is the result of [socket.New].
func InLine(nc net.Conn, fast *socket.Conn, line sync.Locker) *Conn {
	return &Conn{Conn: nc, fast: fast, line: line}
}

// Write writes what the socket accepts in turn, and waits for the client without a turn.
func (c *Conn) Write(p []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.fast == nil || len(p) < muchWork {
		return c.Conn.Write(p)
	}
	for err == nil && written < len(p) {
		step := p[written:min(len(p), written+maxStep)]
		c.line.Lock()
		n, failed := c.fast.TryWrite(step)
		c.line.Unlock()
		if written, err = written+n, failed; n < len(step) && err == nil {
			rest := step[n:]
			n, err = c.Conn.Write(rest[:min(len(rest), muchWork)])
			written += n
		}
	}
	return written, err
}
