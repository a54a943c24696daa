package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"runtime"
	"sync/atomic"
)

// maxHandshake is the maximum number of bytes that a client may send before its TLS handshake is complete. A chain of
// certificates has some 5 KiB, but package crypto/tls would read 256 KiB.
const maxHandshake = 32 << 10

var errHandshake = errors.New("the TLS handshake is longer than 32 KiB")

// ListenTLS returns a listener like [tls.NewListener], but limits how much a client may send before [Handshake] returns,
// and how many CPUs work on handshakes.
func ListenTLS(inner net.Listener, config *tls.Config) net.Listener {
	return tls.NewListener(limitedListener{inner, make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}, config)
}

type limitedListener struct {
	net.Listener
	turns chan struct{} // holds a value for each handshake that a CPU works on; capacity: half the CPUs
}

func (l limitedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: nc, turns: l.turns}
	c.left.Store(maxHandshake)
	return c, nil
}

// A limitedConn is the connection below TLS.
type limitedConn struct {
	net.Conn
	left   atomic.Int64 // how many more bytes may be read
	turns  chan struct{}
	inTurn bool // Handshake has a turn; only for its goroutine
}

func (c *limitedConn) Read(p []byte) (int, error) {
	defer c.yield()()
	n, err := c.Conn.Read(p)
	if c.left.Add(-int64(n)) < 0 {
		return 0, errHandshake
	}
	return n, err
}

// CloseWrite closes the connection if it has no CloseWrite.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

func (c *limitedConn) Write(p []byte) (int, error) {
	defer c.yield()()
	return c.Conn.Write(p)
}

// yield lets others work while a handshake waits for its client, until resume is called.
func (c *limitedConn) yield() (resume func()) {
	if !c.inTurn {
		return func() {}
	}
	<-c.turns
	return func() { c.turns <- struct{}{} }
}

// Handshake completes the TLS handshake of a connection of [ListenTLS], after which the client may send any number of
// bytes. It waits for its turn: a crowd of handshakes would otherwise keep all CPUs from other clients. For other
// connections it does nothing.
func Handshake(ctx context.Context, nc net.Conn) error {
	conn, ok := nc.(*tls.Conn)
	if !ok {
		return nil
	}
	c, ok := conn.NetConn().(*limitedConn)
	if !ok {
		return conn.HandshakeContext(ctx)
	}
	select {
	case c.turns <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.inTurn = true
	err := conn.HandshakeContext(ctx)
	c.inTurn = false
	<-c.turns
	if err == nil {
		c.left.Store(math.MaxInt64)
	}
	return err
}

// CertificateMemory returns the estimated memory of the client's certificates, in bytes. The connection keeps all that the
// client sent, also those that prove nothing.
func CertificateMemory(nc net.Conn) (size int) {
	const each, perByte = 1 << 10, 16
	if conn, ok := nc.(*tls.Conn); ok {
		for _, cert := range conn.ConnectionState().PeerCertificates {
			size += each + perByte*len(cert.Raw)
		}
	}
	return size
}
