package mqtt

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/sscli/sscli/internal/socket"
)

// busy is the number of unacknowledged publishes above which quick acknowledgements do not
// help: a busy connection always has something to send or to read.
const busy = 16

// A quickConn makes the kernel acknowledge received TCP segments immediately instead of up to
// 40 ms later, if the system supports it. A broker that uses Nagle's algorithm, as Mosquitto does
// by default, delays every second small packet until that acknowledgement.
//
// It reads and writes with package socket: a program that wakes up for single small packets, such as a
// process that waits for a lock, then spends less CPU time on each.
type quickConn struct {
	*net.TCPConn
	socket   *socket.Conn
	inFlight *atomic.Int64
	more     bool // the last read filled its buffer, so the next read probably will not block
}

// newQuickConn returns nc as a quickConn, or nc itself if it is not a TCP connection, inFlight is
// nil, or socket does not support this system. The connection is busy if inFlight exceeds busy.
func newQuickConn(nc net.Conn, inFlight *atomic.Int64) net.Conn {
	s := socket.New(nc)
	if s == nil || inFlight == nil {
		return nc
	}
	return &quickConn{TCPConn: nc.(*net.TCPConn), socket: s, inFlight: inFlight}
}

// Read asks for quick acknowledgements before it reads, because the kernel clears TCP_QUICKACK when
// we send. It does not ask if the connection is busy or more data is probably waiting.
func (q *quickConn) Read(b []byte) (int, error) {
	if !q.more && q.inFlight.Load() <= busy {
		q.socket.AcknowledgeQuickly()
	}
	n, err := q.socket.Read(b)
	q.more = n == len(b)
	return n, q.named("read", err)
}

// Write must not be called concurrently.
func (q *quickConn) Write(b []byte) (int, error) {
	n, err := q.socket.TryWrite(b)
	if err != nil || n == len(b) {
		return n, q.named("write", err)
	}
	more, err := q.TCPConn.Write(b[n:])
	return n + more, err
}

// named returns an error of the socket in the form that package net gives it, with both addresses.
func (q *quickConn) named(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if known, ok := errors.AsType[*net.OpError](err); ok {
		err = known.Err
	} else if number, ok := errors.AsType[syscall.Errno](err); ok {
		err = os.NewSyscallError(op, number)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: q.LocalAddr(), Addr: q.RemoteAddr(), Err: err}
}
