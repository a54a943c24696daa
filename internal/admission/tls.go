package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync/atomic"
)

// maxHandshake is the maximum number of bytes that a client may send before its TLS handshake is complete. A chain of
// certificates has some 5 KiB, but package crypto/tls would read 256 KiB.
const maxHandshake = 32 << 10

var errHandshake = errors.New("the TLS handshake is longer than 32 KiB")

// ListenTLS returns a listener like [tls.NewListener], but limits how much a client may send before [Handshake] returns.
func ListenTLS(inner net.Listener, config *tls.Config) net.Listener {
	return tls.NewListener(limitedListener{inner}, config)
}

type limitedListener struct{ net.Listener }

func (l limitedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: nc}
	c.left.Store(maxHandshake)
	return c, nil
}

// A limitedConn is the connection below TLS.
type limitedConn struct {
	net.Conn
	left atomic.Int64 // how many more bytes may be read
}

func (c *limitedConn) Read(p []byte) (int, error) {
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

// Handshake completes the TLS handshake of a connection of [ListenTLS], after which the client may send any number of
// bytes. For other connections it does nothing.
func Handshake(ctx context.Context, nc net.Conn) error {
	conn, ok := nc.(*tls.Conn)
	if !ok {
		return nil
	}
	err := conn.HandshakeContext(ctx)
	if c, ok := conn.NetConn().(*limitedConn); ok && err == nil {
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
