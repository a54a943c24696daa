package mqtt

import (
	"net"
	"sync/atomic"
	"syscall"
)

// busy is the number of unacknowledged publishes above which quick acknowledgements do not
// help: a busy connection always has something to send or to read.
const busy = 16

// A quickConn makes the kernel acknowledge received TCP segments at once, instead of up to
// 40 ms later. A broker that uses Nagle's algorithm, as Mosquitto does by default, delays
// every second small packet until that acknowledgement.
type quickConn struct {
	*net.TCPConn
	raw      syscall.RawConn
	inFlight *atomic.Int64
	more     bool // the last read filled its buffer, so the next one will not block
}

// quickAck makes a TCP connection acknowledge segments at once while inFlight is at most busy.
func quickAck(nc net.Conn, inFlight *atomic.Int64) net.Conn {
	tc, ok := nc.(*net.TCPConn)
	if !ok || inFlight == nil {
		return nc
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return nc
	}
	return &quickConn{TCPConn: tc, raw: raw, inFlight: inFlight}
}

// Read sets TCP_QUICKACK before it reads, unless the connection is busy: the kernel clears the option
// when we send.
func (q *quickConn) Read(b []byte) (int, error) {
	if !q.more && q.inFlight.Load() <= busy {
		// An error means that the connection has ended, which Read reports.
		_ = q.raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
		})
	}
	n, err := q.TCPConn.Read(b)
	q.more = n == len(b)
	return n, err
}
