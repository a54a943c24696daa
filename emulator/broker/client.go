package broker

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A Client is one connection of a client. Its methods want the lock.
type Client struct {
	// ID, Username and Version are fixed when the client is connected, but for the user
	// name, which an AUTH may change.
	ID       string
	Username string
	Version  byte // of MQTT: 5, or 4 for 3.1.1

	// Value is the owner's.
	Value any

	b    *Broker
	nc   net.Conn
	fast *directWriter // nil: not a plain TCP connection

	session    *session // nil: before CONNECT was accepted, and after the end
	login      *Login   // nil: before CONNECT
	connect    *connectPacket
	challenged bool          // AUTH 0x18 was sent, and an AUTH is to come
	keepAlive  time.Duration // 0: none
	lastRead   time.Time     // when the last whole packet was read

	// What goes to the client; see outbox.go.
	out       []byte
	waiting   int // packets in out
	connack   int // how much of out is a CONNACK
	flight    []byte
	unwritten []byte // the rest of flight
	spare     []byte // for out
	queued    int    // bytes of out and flight, about
	writing   bool
	turn      bool      // of the writer
	dirty     bool      // in Broker.dirty
	ending    bool      // what is in the outbox is sent, and nothing more
	left      time.Time // when that was done: the client has a moment to close its side
	cutOff    bool
	ended     End
	ready     sync.Cond

	// Flow (MQTT 5, 4.9).
	quota   int // how many more deliveries with QoS 1 and 2 may be sent
	mayHave int // the client's Receive Maximum
	unacked int // messages of this connection without PUBACK, PUBCOMP or a PUBREC that refuses

	maxPacket   int // of packets to the client; 0: none
	aliasMax    uint16
	nextAlias   uint16
	aliases     map[string]uint16
	aliasTopics []string          // by alias
	topics      map[uint16][]byte // by the client's alias

	// What else is charged for the connection; see budget.go.
	buffered int // memory of packets that are read
	aliased  int // topics of both sides' aliases

	in     publishPacket
	live   message
	handed Publish
	props  []byte
}

// Connected reports whether the client has a session and can be sent messages.
func (c *Client) Connected() bool { return c.session != nil }

// SessionLasts reports whether the session outlives the connection.
func (c *Client) SessionLasts() bool { return c.session != nil && c.session.expiry > 0 }

// An End is why a connection ended.
type End struct {
	ByClient bool   // the client sent DISCONNECT
	Lost     bool   // there was no DISCONNECT
	Code     byte   // the reason code of DISCONNECT, of either side
	Why      string // more of the reason, in words; may be empty
}

// Ended returns why the connection ended. Before that it is the zero End.
func (c *Client) Ended() End { return c.ended }

// LastRead returns when the last whole packet of the client was read, on the real clock.
func (c *Client) LastRead() time.Time { return c.lastRead }

// Remote returns the address of the client.
func (c *Client) Remote() string {
	if a := c.nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// Disconnect ends the connection with a DISCONNECT, after what was queued. The code is
// 0x80 or more.
func (c *Client) Disconnect(code byte) { c.end(code, "") }

// Cut closes the connection without a word.
func (c *Client) Cut() { c.cut() }

// connection serves a new connection.
func (b *Broker) connection(nc net.Conn) {
	c := &Client{b: b, nc: nc, fast: newDirectWriter(nc), lastRead: time.Now()}
	c.ready.L = &b.mu
	b.Lock()
	defer b.Unlock()
	if b.closed {
		_ = nc.Close()
		return
	}
	b.clients[c] = struct{}{}
	b.changed = true
	b.running.Go(c.writeLoop)
	b.running.Go(c.readLoop)
}

const (
	// connectTimeout is how long a connection may last without CONNECT (MQTT 5, 3.1.4).
	connectTimeout = 30 * time.Second

	// maxBeforeLogin bounds what a client that has not logged in can make the broker keep,
	// in bytes. A CONNECT with a large will fits.
	maxBeforeLogin = 1 << 20

	firstBuffer = 4 << 10

	// readBuffer is the largest buffer for packets that are not larger than it.
	readBuffer = 64 << 10
)

// readLoop is the client's reader.
func (c *Client) readLoop() {
	b := c.b
	var reason error
	defer func() {
		b.Lock()
		if !c.ending && !c.cutOff {
			b.log.Debug("connection lost", "client", c.ID, "error", reason)
			c.ended.Why = whyLost(reason)
			c.cut()
		}
		delete(b.clients, c)
		c.settle()
		b.changed = true
		b.Unlock()
		// An error would only repeat that the connection is gone.
		_ = innermost(c.nc).Close()
	}()
	b.mu.Lock()
	c.readDeadline(connectTimeout)
	b.mu.Unlock()
	buf := make([]byte, firstBuffer)
	to := 0        // the end of what was read and not processed
	quick := false // nothing was sent since the last read
	for {
		if quick && c.fast != nil {
			c.fast.acknowledgeQuickly()
		}
		n, err := c.nc.Read(buf[to:])
		to += n
		if err != nil && n == 0 {
			if errors.Is(err, os.ErrDeadlineExceeded) && c.silent() {
				continue
			}
			reason = err
			return
		}
		var used int
		var ok bool
		used, quick, ok = c.packets(buf[:to], n)
		if !ok {
			c.discard()
			return
		}
		buf, to = makeRoom(buf, used, to)
		if !c.buffer(len(buf)) {
			buf = nil
			c.discard()
			return
		}
	}
}

// makeRoom returns a buffer that begins with what was not processed, for the next read.
// After a read that filled it, it is larger: up to readBuffer for many packets, and beyond
// that for one that is larger. It grows with the bytes that came, not with those that
// were announced.
func makeRoom(buf []byte, from, to int) (next []byte, rest int) {
	size := len(buf)
	switch filled := to == size; {
	case filled && (size < readBuffer || from < size/2):
		size *= 2
	case from == to && size > readBuffer:
		size = readBuffer
	}
	if size == len(buf) {
		return buf, copy(buf, buf[from:to])
	}
	next = make([]byte, size)
	return next, copy(next, buf[from:to])
}

// readDeadline limits the next reads. It wants the lock, so that it does not take back
// the limit of goodbye.
func (c *Client) readDeadline(d time.Duration) {
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
	}
	// Read returns the same error.
	_ = c.nc.SetReadDeadline(t)
}

// silent is called when a read took longer than its limit. It reports whether the
// connection goes on. A client is given one and a half times its Keep Alive
// [MQTT-3.1.2-22].
func (c *Client) silent() bool {
	c.b.Lock()
	defer c.b.Unlock()
	switch {
	case c.cutOff, !c.left.IsZero():
		return false
	case c.ending:
		return true // until goodbye sets another limit
	case c.session == nil:
		return false
	case c.keepAlive == 0:
		c.readDeadline(0)
		return true
	}
	if left := c.keepAlive + c.keepAlive/2 - time.Since(c.lastRead); left > 0 {
		c.readDeadline(left)
		return true
	}
	c.end(keepAliveTimeout, "")
	return true
}

// discard reads until the client closes its side, or the limit of goodbye. A client that
// goes on sending has not come to the DISCONNECT yet, and gets more time.
func (c *Client) discard() {
	buf := make([]byte, firstBuffer)
	for {
		if _, err := c.nc.Read(buf); err != nil {
			return
		}
		c.b.mu.Lock()
		if !c.left.IsZero() && !c.b.closed {
			// Read returns the same error.
			_ = c.nc.SetReadDeadline(time.Now().Add(min(linger, lingerMost-time.Since(c.left))))
		}
		c.b.mu.Unlock()
	}
}

// packets processes the whole packets in p, of which n bytes are new, and returns how
// many bytes those are, and whether nothing was answered. It returns false when the
// connection is at its end.
func (c *Client) packets(p []byte, n int) (used int, quick, ok bool) {
	b := c.b
	b.Lock()
	defer func() {
		quick = !c.dirty && !c.writing
		b.Unlock()
	}()
	now := time.Now()
	b.batch = now
	b.stats.BytesReceived += uint64(n)
	for !c.ending && !c.cutOff {
		if used == len(p) {
			return used, false, true
		}
		body, size, err := frame(p[used:])
		if err == nil {
			err = checkFlags(p[used])
		}
		if err == nil && size > 0 {
			err = c.checkSize(size)
		}
		if err != nil {
			c.wrong(err)
			return used, false, false
		}
		if size == 0 || size > len(p)-used {
			return used, false, true
		}
		if c.Version == version5 && size > 1+varintLength(len(body))+len(body) { // [MQTT-1.5.5-1]
			c.wrong(malformed("a length of more digits than it needs"))
			return used, false, false
		}
		c.lastRead = now
		if err := c.process(p[used], body); err != nil {
			c.wrong(err)
			return used, false, false
		}
		used += size
	}
	return used, false, false
}

func (c *Client) checkSize(size int) *Error {
	if limit := int(c.b.opts.MaxPacketSize); limit > 0 && size > limit {
		return &Error{packetTooLarge, "the packet is larger than the Maximum Packet Size"} // MQTT 5, 3.2.2.3.6
	}
	if c.session == nil && size > maxBeforeLogin {
		return &Error{packetTooLarge, "the packet is too large for one before CONNACK"}
	}
	return nil
}

// wrong ends the connection for what the client did.
func (c *Client) wrong(err *Error) {
	c.b.log.Info("protocol error", "client", c.ID, "code", err.Code, "error", err.Why)
	if c.session == nil && c.Version == version5 {
		c.refuse(Verdict{Code: err.Code, Text: err.Why})
		return
	}
	c.end(err.Code, err.Why)
}

// process handles one packet.
func (c *Client) process(first byte, body []byte) *Error {
	kind := first >> 4
	if c.session == nil {
		switch {
		case kind == typeConnect && c.login == nil:
			return c.hello(body)
		case kind == typeAuth && c.challenged:
			return c.authPacket(body)
		default:
			return violation("another packet than CONNECT before CONNACK") // [MQTT-3.1.0-1], [MQTT-3.1.2-30]
		}
	}
	switch kind {
	case typePublish:
		return c.publish(first, body)
	case typePuback, typePubrec, typePubrel, typePubcomp:
		return c.acknowledgement(kind, body)
	case typeSubscribe:
		return c.subscribe(body)
	case typeUnsubscribe:
		return c.unsubscribe(body)
	case typePingreq:
		if len(body) > 0 {
			return malformed("PINGREQ has a body")
		}
		c.packet(typePingresp<<4, nil) // [MQTT-3.12.4-1]
		return nil
	case typeDisconnect:
		return c.goodbyeOf(body)
	case typeAuth:
		return c.authPacket(body)
	default:
		return violation("a second CONNECT") // [MQTT-3.1.0-2]
	}
}

// goodbyeOf takes a DISCONNECT of the client (MQTT 5, 3.14).
func (c *Client) goodbyeOf(body []byte) *Error {
	p, err := decodeDisconnect(c.Version, body)
	if err != nil {
		return err
	}
	s := c.session
	if p.hasExpiry {
		if s.expiry == 0 && p.expiry != 0 {
			return violation("a session that was to end with the connection cannot be kept") // [MQTT-3.14.2-2]
		}
		s.expiry = p.expiry
	}
	if p.code == Success {
		s.setWill(nil) // [MQTT-3.14.4-3]
	}
	c.ending, c.ended = true, End{ByClient: true, Code: p.code}
	c.detach()
	c.limit()
	c.touch()
	return nil
}

// whyLost is why a connection ended that the client ended without DISCONNECT.
func whyLost(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, io.EOF):
		return "closed by the client"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // without the addresses
	}
	return err.Error()
}

// end ends the connection: after what is in the outbox comes a DISCONNECT, if the client
// knows that (MQTT 5, 4.13), and was told that it is connected [MQTT-3.14.0-1].
func (c *Client) end(code byte, why string) {
	if c.ending || c.cutOff {
		return
	}
	if c.session != nil && c.Version == version5 {
		c.disconnectPacket(code, why)
	}
	c.ending, c.ended = true, End{Code: code, Why: why}
	c.detach()
	c.limit()
	c.touch()
}

// limit gives the outbox of a connection that ends its last time. Reads have no limit
// until that is over.
func (c *Client) limit() {
	c.readDeadline(0)
	// An error would only repeat that the connection is closed.
	_ = c.nc.SetWriteDeadline(time.Now().Add(drain))
}

func (c *Client) cut() {
	if c.cutOff {
		return
	}
	c.cutOff = true
	if !c.ending {
		c.ended.Lost = true
	}
	c.detach()
	_ = innermost(c.nc).Close()
	c.ready.Signal()
	c.b.changed = true
}

// goodbye closes our side, and gives the client a moment to close its side. Errors are
// ignored: the connection is closed next in any case.
func (c *Client) goodbye() {
	nc := c.nc
	if w, ok := nc.(*webSocket); ok {
		w.sayClose()
		nc = w.Conn
	}
	if t, ok := nc.(*tls.Conn); ok {
		_ = t.CloseWrite()
		nc = t.NetConn()
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.left = time.Now()
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		_ = nc.Close()
		return
	}
	_ = nc.SetReadDeadline(time.Now().Add(linger))
}

// innermost is the connection below TLS and WebSocket, whose Close says nothing and does
// not block.
func innermost(nc net.Conn) net.Conn {
	if w, ok := nc.(*webSocket); ok {
		nc = w.Conn
	}
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	return nc
}
