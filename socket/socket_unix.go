//go:build unix

package socket

import (
	"io"
	"net"
	"os"
	"syscall"
)

// A Conn is a plain TCP connection. One goroutine at a time may read, and one may write.
type Conn struct {
	raw syscall.RawConn

	// Made once: a closure for each call would be garbage.
	tryRead, tryWrite func(fd uintptr) bool
	quick             func(fd uintptr)

	in       []byte
	read     int
	readErr  error
	inARow   int // reads since there was nothing to read
	out      []byte
	written  int
	writeErr error
}

// patience is how many reads in a row find something before the scheduler is told of the next
// ones.
const patience = 32

// New returns a Conn that reads and writes nc, which stays in use for all else, such as deadlines
// and Close. It returns nil if nc is not a plain TCP connection.
func New(nc net.Conn) *Conn {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return nil
	}
	c := &Conn{raw: raw, quick: quickAck}
	c.tryRead = func(fd uintptr) bool {
		c.inARow++
		for c.readErr = syscall.EINTR; c.readErr == syscall.EINTR; {
			c.read, c.readErr = read(fd, c.in, c.inARow > patience)
		}
		if c.readErr == syscall.EAGAIN {
			c.inARow = 0
			return false
		}
		return true
	}
	c.tryWrite = func(fd uintptr) bool {
		c.written, c.writeErr = write(fd, c.out)
		return true
	}
	return c
}

// Read is [net.Conn.Read].
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.in = p
	err := c.raw.Read(c.tryRead)
	c.in = nil
	switch {
	case err != nil:
		return 0, err
	case c.readErr != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", c.readErr)}
	case c.read == 0:
		return 0, io.EOF
	}
	return c.read, nil
}

// TryWrite writes what the socket takes at once, and returns how much that was. So replies leave
// on the goroutine that made them, which needs no other to be woken, and which a client that does
// not read cannot hold up.
func (c *Conn) TryWrite(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.out = p
	err := c.raw.Write(c.tryWrite)
	c.out = nil
	switch {
	case err != nil:
		return 0, err
	case c.writeErr == syscall.EAGAIN || c.writeErr == syscall.EINTR:
		return 0, nil
	case c.writeErr != nil:
		return 0, c.writeErr
	}
	return c.written, nil
}

// AcknowledgeQuickly has the kernel acknowledge at once what it gets next, which a client with
// Nagle's algorithm waits for. After a write there is no need: the answer carries the
// acknowledgement.
func (c *Conn) AcknowledgeQuickly() {
	if c.quick != nil {
		// Read returns the same error.
		_ = c.raw.Control(c.quick)
	}
}
