package mqtt

import (
	"net"
	"sync/atomic"

	"github.com/sscli/sscli/internal/socket"
)

// busy is the number of unacknowledged publishes above which quick acknowledgements do not
// help: a busy connection always has something to send or to read.
const busy = 16

// A quickConn makes the kernel acknowledge received TCP segments immediately instead of up to
// 40 ms later, if the system supports it. A broker that uses Nagle's algorithm, as Mosquitto does
// by default, delays every second small packet until that acknowledgement.
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
	n, err := q.TCPConn.Read(b)
	q.more = n == len(b)
	return n, err
}
