package broker

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/socket"
)

const (
	// connectTimeout is how long a client may take to log in (MQTT 5, 3.1.4).
	connectTimeout = 30 * time.Second

	// maxBeforeLogin is the largest packet, in bytes, that a client may send before it has
	// logged in. A CONNECT with a large will fits.
	maxBeforeLogin = 1 << 20

	// A read buffer starts with firstBuffer bytes and grows to readBuffer. It grows beyond that
	// only for a packet that is larger than half of the buffer.
	firstBuffer = 4 << 10
	readBuffer  = 128 << 10

	// A buffer of largeBuffer bytes grows to four times its size, so that the buffers which a large packet
	// has outgrown are smaller than the packet.
	largeBuffer = 64 << 20

	// maxRead is the maximum number of bytes that one system call reads. There is a limit because
	// the garbage collector waits until the call returns.
	maxRead = 256 << 10
)

// serveConn serves a new connection. path is the path of a WebSocket; empty = not a WebSocket.
func (b *Broker) serveConn(nc net.Conn, path string) {
	c := &Client{Identity: new(Identity), b: b, nc: nc, raw: nc, fast: socket.New(nc), lastRead: time.Now()}
	if t := admission.TLS(nc); t != nil {
		c.tls, c.raw = t, t.NetConn()
	} else {
		c.nc = admission.InLine(nc, c.fast, &b.line)
	}
	if path != "" {
		c.ws = &webSocket{webSocketConn: &webSocketConn{Conn: c.nc, goOn: c.readTimedOut}, path: path, origins: b.opts.Origins}
		c.nc, c.fast = c.ws, nil
	}
	c.wake.L = &b.mu
	c.ticket = b.gate.Enter(c.Remote(), c.evict)
	b.Lock()
	defer b.Unlock()
	if b.closed {
		c.ticket.Leave()
		_ = nc.Close()
		return
	}
	b.clients[c] = struct{}{}
	b.changed = true
	c.readDeadline(connectTimeout)
	b.running.Go(c.writeLoop)
	b.running.Go(c.readLoop)
}

// evict closes a connection that has not logged in, to make room for a new one.
func (c *Client) evict() {
	c.b.Lock()
	defer c.b.Unlock()
	if c.session == nil && !c.closed {
		c.end.Why = "too many connections without a login"
		c.Cut()
	}
}

// readLoop reads and handles the client's packets until the connection ends.
func (c *Client) readLoop() {
	err := c.readPackets()
	switch {
	case err == nil:
		c.discard(c.nc)
	case c.tls != nil && !c.tls.ConnectionState().HandshakeComplete && !errors.Is(err, os.ErrDeadlineExceeded):
		c.closeWrite() // the handshake ended with an alert
		c.discard(c.raw)
	}
	c.b.end(ending{c, err, true})
}

// readPackets handles packets until the connection ends. It returns an error if the connection was
// lost, or nil if the broker is closing it.
func (c *Client) readPackets() error {
	var from io.Reader = c.nc
	if c.fast != nil {
		from = c.fast
	}
	buf := make([]byte, firstBuffer)
	if c.tls != nil {
		if err := admission.Handshake(context.Background(), c.tls); err != nil {
			return err
		}
		c.certificates = admission.CertificateMemory(c.tls)
		if c.reserved = c.certificates; !c.chargeReads(len(buf)) {
			return nil
		}
	}
	filled := 0      // number of bytes in buf that were read but not handled
	answered := true // something was sent since the last read, or is about to be
	for {
		if c.stalled != nil {
			<-c.stalled
			c.stalled = nil
		}
		if !answered && c.fast != nil {
			c.fast.AcknowledgeQuickly()
		}
		n, err := from.Read(buf[filled:min(len(buf), filled+maxRead)])
		filled += n
		if err != nil && n == 0 {
			if errors.Is(err, os.ErrDeadlineExceeded) && c.readTimedOut() {
				continue
			}
			return err
		}
		var handled int
		var ok bool
		if handled, answered, ok = c.handlePackets(buf[:filled], n); !ok {
			return nil
		}
		buf, filled = resizeBuffer(buf, handled, filled)
		if !c.chargeReads(len(buf)) {
			return nil
		}
	}
}

// resizeBuffer returns a buffer for the next read, which begins with a copy of buf[from:to], and the
// length of this copy. If the last read filled buf, the new buffer is larger: up to readBuffer for
// many packets, and beyond for one large packet. The buffer grows with the bytes that arrived, not
// with announced lengths.
func resizeBuffer(buf []byte, from, to int) (next []byte, filled int) {
	size := len(buf)
	switch full := to == size; {
	case full && (size < readBuffer || from < size/2):
		size *= 2
		if size > largeBuffer {
			size *= 2
		}
		if from < to && size > readBuffer { // not more than the packet needs
			if _, packet, _ := splitPacket(buf[from:to]); packet > 0 {
				size = min(size, max(packet, readBuffer))
			}
		}
	case from == to && size > readBuffer:
		size = readBuffer
	}
	next = buf
	if size != len(buf) {
		next = make([]byte, size)
	}
	return next, socket.Copy(next, buf[from:to])
}

// readDeadline makes reads time out after d; 0 = never. It requires the lock, so that it does not
// override the deadline that closeWrite sets.
func (c *Client) readDeadline(d time.Duration) {
	var t time.Time
	if d != 0 {
		t = time.Now().Add(d)
	}
	// Ignore an error: the next read returns it too.
	_ = c.nc.SetReadDeadline(t)
}

// readTimedOut reports whether the connection stays open after a read timed out.
// A client may be silent for one and a half times its Keep Alive [MQTT-3.1.2-22].
func (c *Client) readTimedOut() bool {
	c.b.Lock()
	defer c.b.Unlock()
	switch {
	case c.closed, !c.halfClosed.IsZero():
		return false
	case c.closing:
		return true // closeWrite sets another deadline
	case c.session == nil:
		return false
	case c.takenOver != nil:
		if c.idleReads++; c.idleReads > 2 { // takeOver interrupted the first read
			c.disconnect(sessionTakenOver, "")
			return true
		}
		c.readDeadline(takeOverPause)
		return true
	case c.keepAlive == 0:
		c.readDeadline(0)
		return true
	}
	if left := c.keepAlive + c.keepAlive/2 - time.Since(c.lastRead); left > 0 {
		c.readDeadline(left)
		return true
	}
	if !c.standAtEnd() {
		c.disconnect(keepAliveTimeout, "")
	}
	return true
}

// handlePackets handles the complete packets in p, whose last n bytes are new. handled is the
// length of these packets. answered reports whether anything was sent or is about to be. ok is
// false if the connection is ending.
func (c *Client) handlePackets(p []byte, n int) (handled int, answered, ok bool) {
	b := c.b
	work := len(p) // what was read before belongs to the first packet
	if len(p) > n || n >= muchWork {
		if body, _, err := splitPacket(p); err == nil && body == nil {
			work = 0 // the first packet is incomplete, so there is nothing to handle yet
		}
	}
	b.lockFor(work)
	yielded := false
	defer func() {
		answered = c.dirty || c.busy || yielded
		b.Unlock()
	}()
	now := time.Now()
	locked := now
	b.readTime = now.Add(b.timers.forward)
	b.stats.BytesReceived += uint64(n)
	if c.takenOver != nil {
		c.idleReads = 1
		c.readDeadline(takeOverPause)
	}
	// worked counts the packets since the clock was read, which happens for each packet if others wait for the lock, and
	// otherwise for each eighth. To read the clock takes longer than handling a PUBACK, which does not count.
	worked := 0
	for !c.isClosing() {
		if handled == len(p) {
			return handled, false, true
		}
		if worked >= 8 || worked > 0 && b.waiting.Load() > 0 {
			worked = 0
			if b.yieldAfter(&locked) {
				yielded = true
				continue // c may be closing
			}
		}
		if p[handled]>>4 != typePuback {
			worked++
		}
		body, size, err := c.nextPacket(p[handled:])
		if err == nil && body == nil {
			return handled, false, true
		}
		if err == nil {
			c.lastRead = now
			err = c.handle(p[handled], body)
		}
		if err != nil {
			c.protocolError(err)
			return handled, false, false
		}
		handled += size
	}
	return handled, false, false
}

// nextPacket returns the body and the size of the first packet in p. body is nil if p does not
// hold the whole packet.
func (c *Client) nextPacket(p []byte) (body []byte, size int, err *Error) {
	if err := checkFlags(p[0]); err != nil {
		return nil, 0, err
	}
	body, size, err = splitPacket(p)
	limit := int(c.b.opts.MaxPacketSize)
	switch {
	case err != nil:
	case limit > 0 && size > limit: // MQTT 5, 3.2.2.3.6
		err = &Error{packetTooLarge, "the packet is larger than the Maximum Packet Size"}
	case c.session == nil && size > maxBeforeLogin:
		err = &Error{packetTooLarge, "the packet is too large for one before CONNACK"}
	case c.Version == version5 && body != nil && size > 1+varintLength(len(body))+len(body): // [MQTT-1.5.5-1]
		err = malformed("a length with more digits than it needs")
	}
	return body, size, err
}
