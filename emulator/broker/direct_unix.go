//go:build unix

package broker

import (
	"net"
	"syscall"
)

// A directWriter writes to a TCP connection what its socket takes at once. So replies
// leave on the goroutine that made them, which needs no other to be woken, and which a
// client that does not read cannot hold up.
type directWriter struct {
	raw   syscall.RawConn
	try   func(fd uintptr) bool // made once: a closure for each write would be garbage
	quick func(fd uintptr)
	bytes []byte
	n     int
	err   error
}

// newDirectWriter returns nil for a connection that is not plain TCP.
func newDirectWriter(nc net.Conn) *directWriter {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return nil
	}
	w := &directWriter{raw: raw, quick: quickAck}
	w.try = func(fd uintptr) bool {
		w.n, w.err = syscall.Write(int(fd), w.bytes)
		return true
	}
	return w
}

// write returns how much of p the socket took.
func (w *directWriter) write(p []byte) (int, error) {
	w.bytes = p
	err := w.raw.Write(w.try)
	w.bytes = nil
	switch {
	case err != nil:
		return 0, err
	case w.err == syscall.EAGAIN || w.err == syscall.EINTR:
		return 0, nil
	case w.err != nil:
		return 0, w.err
	}
	return w.n, nil
}

// acknowledgeQuickly has the kernel acknowledge at once what it gets next, which a client
// with Nagle's algorithm waits for. After a write there is no need: the answer carries
// the acknowledgement.
func (w *directWriter) acknowledgeQuickly() {
	if w.quick != nil {
		// Read returns the same error.
		_ = w.raw.Control(w.quick)
	}
}
