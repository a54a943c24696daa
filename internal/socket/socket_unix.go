//go:build unix

package socket

import (
	"io"
	"net"
	"os"
	"syscall"
)

// A Conn reads and writes a plain TCP connection. At most one goroutine may read at a time, and at
// most one may write.
type Conn struct {
	raw syscall.RawConn

	// Closures that New creates once, so that Read and TryWrite don't allocate.
	tryRead, tryWrite func(fd uintptr) bool
	quickAck          func(fd uintptr) // nil = not supported on this system

	// Arguments and results of tryRead and tryWrite.
	in         []byte
	read       int
	readErr    error
	readsInRow int // reads since the socket was last empty
	out        []byte
	written    int
	writeErr   error
}

// maxReadsInRow is how many reads in a row may find data before Read starts telling Go's scheduler
// about its system calls.
const maxReadsInRow = 32

// New returns a Conn that reads and writes nc, or nil if nc is not a plain TCP connection. Callers
// still use nc for everything else, such as deadlines and Close.
func New(nc net.Conn) *Conn {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return nil
	}
	c := &Conn{raw: raw, quickAck: quickAck}
	c.tryRead = func(fd uintptr) bool {
		c.readsInRow++
		for c.readErr = syscall.EINTR; c.readErr == syscall.EINTR; {
			c.read, c.readErr = read(fd, c.in, c.readsInRow > maxReadsInRow)
		}
		if c.readErr == syscall.EAGAIN {
			c.readsInRow = 0
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

// Read is like [net.Conn]'s Read.
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

// WasEmpty reports whether the last Read found the socket empty, and had to wait.
func (c *Conn) WasEmpty() bool { return c.readsInRow <= 1 }

// TryWrite writes as many bytes as the socket accepts without blocking, and returns their number.
// The goroutine that handles a request can therefore send the reply itself, without waking another
// goroutine, and a client that does not read cannot block it.
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

// AcknowledgeQuickly makes the kernel acknowledge the next data immediately, because a peer that
// uses Nagle's algorithm waits for the acknowledgement. Callers that have just written need not
// call it: the packet that they sent carries the acknowledgement.
func (c *Conn) AcknowledgeQuickly() {
	if c.quickAck != nil {
		// Ignore the error: the next Read fails too if the connection is closed.
		_ = c.raw.Control(c.quickAck)
	}
}
