package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/sscli/sscli/internal/socket"
)

// maxHandshake is the maximum number of bytes that a client may send before its TLS handshake is complete. A chain of
// certificates has some 5 KiB, but package crypto/tls would read 256 KiB.
const maxHandshake = 32 << 10

var errHandshake = errors.New("the TLS handshake is longer than 32 KiB")

// ListenTLS returns a listener like [tls.NewListener], but of connections of type [*TLSConn]. It limits how much a client
// may send before [Handshake] returns, and how many CPUs work on the handshakes of all listeners of a line.
func ListenTLS(inner net.Listener, config *tls.Config, line *Line) net.Listener {
	return tlsListener{inner, config, line}
}

type tlsListener struct {
	net.Listener
	config *tls.Config
	line   *Line
}

func (l tlsListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	below := &limitedConn{Conn: nc, fast: socket.New(nc), line: l.line, left: maxHandshake}
	return &TLSConn{tls.Server(below, l.config), below}, nil
}

// A TLSConn is the server's end of a TLS connection. When the client has sent much, or much is sent to the client, it
// stands in line while it decrypts or encrypts, but not while it waits for the client.
type TLSConn struct {
	*tls.Conn
	below *limitedConn
}

// TLS returns the TLS connection that nc is, or nil.
func TLS(nc net.Conn) *tls.Conn {
	switch c := nc.(type) {
	case *TLSConn:
		return c.Conn
	case *tls.Conn:
		return c
	}
	return nil
}

// Read reads all records that have arrived and have room in p: to handle many small records one by one takes much longer.
func (c *TLSConn) Read(p []byte) (n int, err error) {
	b := c.below
	b.mayStand = true
	n, err = c.Conn.Read(p)
	for b.arrivedOnly = true; n < len(p) && err == nil; {
		var more int
		more, err = c.Conn.Read(p[n:])
		n += more
	}
	b.arrivedOnly, b.mayStand = false, false
	b.leaveLine()
	if n > 0 {
		err = nil // the next Read returns it too
	}
	return n, err
}

// maxRecord is the number of bytes in the largest TLS record, which takes some 15 µs to encrypt and write.
const maxRecord = 16 << 10

// Write writes p. Before it waits for the client, it releases the lock of the TLS connection, which a read needs to
// answer some records.
func (c *TLSConn) Write(p []byte) (n int, err error) {
	if c.below.fast == nil || !c.below.complete.Load() {
		return c.Conn.Write(p)
	}
	for n < len(p) && err == nil {
		step := p[n:min(len(p), n+maxRecord)]
		if len(step) >= muchWork {
			c.below.line.Lock()
		}
		_, err = c.Conn.Write(step)
		if len(step) >= muchWork {
			c.below.line.Unlock()
		}
		if err == nil {
			err = c.below.flush()
		}
		if err == nil {
			n += len(step)
		}
	}
	return n, err
}

// A limitedConn is the connection below TLS. After the handshake, its Write does not block.
type limitedConn struct {
	net.Conn
	fast *socket.Conn // nil = not TCP: nothing stands in line
	line *Line

	// Only for the goroutine that reads or does the handshake.
	left        int  // how many more bytes may be read before the handshake is complete
	inTurn      bool // Handshake has a turn
	mayStand    bool // Read may lock the line
	inLine      bool // Read has locked the line
	arrivedOnly bool // Read reads nothing
	arrived     int  // bytes read since the socket was last empty

	complete atomic.Bool // the handshake is complete
	mu       sync.Mutex
	unsent   []byte // what the socket has not accepted
	flushing bool   // a goroutine is sending what was unsent before
}

// maxUnsent is the maximum number of bytes in unsent: a record, and answers to the client's records.
const maxUnsent = 2 * maxRecord

var errUnsent = errors.New("the client does not read the answers to its TLS records")

func (c *limitedConn) Read(p []byte) (n int, err error) {
	if c.arrivedOnly {
		return 0, os.ErrDeadlineExceeded // for package tls, a temporary error
	}
	c.leaveLine()
	defer c.yield()()
	if c.fast == nil {
		n, err = c.Conn.Read(p)
	} else {
		if n, err = c.fast.Read(p); c.fast.WasEmpty() {
			c.arrived = 0
		}
		if c.arrived += n; c.mayStand && c.arrived >= muchWork {
			c.line.Lock()
			c.inLine = true
		}
	}
	if c.left -= n; c.left < 0 && !c.complete.Load() {
		return 0, errHandshake
	}
	return n, err
}

func (c *limitedConn) leaveLine() {
	if c.inLine {
		c.inLine = false
		c.line.Unlock()
	}
}

func (c *limitedConn) Write(p []byte) (n int, err error) {
	if c.fast == nil || !c.complete.Load() {
		defer c.yield()()
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unsent) == 0 && !c.flushing {
		if n, err = c.fast.TryWrite(p); err != nil {
			return n, err
		}
	}
	if len(c.unsent)+len(p)-n > maxUnsent {
		return n, errUnsent
	}
	c.unsent = append(c.unsent, p[n:]...)
	return len(p), nil
}

// flush sends what is unsent, unless another goroutine is doing that.
func (c *limitedConn) flush() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for err == nil && len(c.unsent) > 0 && !c.flushing {
		p := c.unsent
		c.unsent, c.flushing = nil, true
		c.mu.Unlock()
		_, err = c.Conn.Write(p)
		c.mu.Lock()
		c.flushing = false
	}
	return err
}

// CloseWrite closes the connection if it has no CloseWrite.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// yield lets others work while a handshake waits for its client, until resume is called.
func (c *limitedConn) yield() (resume func()) {
	if !c.inTurn {
		return func() {}
	}
	turns := c.line.handshakeTurns()
	<-turns
	return func() { turns <- struct{}{} }
}

// Handshake completes the TLS handshake of a connection of [ListenTLS], after which the client may send any number of
// bytes. It waits for its turn: a crowd of handshakes would otherwise keep all CPUs from other clients. For other
// connections it does nothing.
func Handshake(ctx context.Context, nc net.Conn) error {
	conn := TLS(nc)
	if conn == nil {
		return nil
	}
	c, ok := conn.NetConn().(*limitedConn)
	if !ok {
		return conn.HandshakeContext(ctx)
	}
	turns := c.line.handshakeTurns()
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.inTurn = true
	err := conn.HandshakeContext(ctx)
	c.inTurn = false
	<-turns
	if err == nil {
		c.arrived = 0
		c.complete.Store(true)
	}
	return err
}

// CertificateMemory returns the estimated memory of the client's certificates, in bytes. The connection keeps all that the
// client sent, also those that prove nothing.
func CertificateMemory(nc net.Conn) (size int) {
	const each, perByte = 1 << 10, 16
	if conn := TLS(nc); conn != nil {
		for _, cert := range conn.ConnectionState().PeerCertificates {
			size += each + perByte*len(cert.Raw)
		}
	}
	return size
}
