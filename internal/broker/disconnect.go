package broker

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// An End says why a connection ended.
type End struct {
	Lost bool   // the connection was lost or cut
	Code byte   // reason code, even if MQTT 3.1.1 cannot send it; 0 if Lost
	Why  string // details; may be empty
}

// Disconnect begins to close the connection and returns immediately. The queued packets and, to an
// MQTT 5 client, a DISCONNECT are sent first. code must be 0x80 or more.
func (c *Client) Disconnect(code byte) { c.disconnect(code, "") }

// Cut closes the connection without a DISCONNECT. The next Unlock closes the socket.
func (c *Client) Cut() {
	if c.closed {
		return
	}
	c.closed = true
	if !c.closing {
		c.end.Lost = true
	}
	c.leaveSession()
	c.resumeReads()
	c.b.toClose = append(c.b.toClose, c.raw)
	c.wake.Signal()
	c.b.changed = true
}

func (c *Client) isClosing() bool { return c.closing || c.closed }

// standAtEnd is [Broker.StandInLine] before the end of a connection, which is costly: it ends a session, or sets its timers,
// and publishes a will. It reports whether the connection has ended meanwhile.
func (c *Client) standAtEnd() bool {
	return c.b.StandInLine(func() bool { return true }) && c.isClosing()
}

// An ending is the end of a client's reads, or of its writes after an error.
type ending struct {
	*Client
	err  error // nil = the broker closes the connection
	read bool
}

// endings are handled in line by one goroutine, which is the one of the first. When thousands of clients go at once, two
// goroutines of each wake, and those who want little wait until all of them have run. So they only leave their ending. The
// goroutine takes the turns of all of them when it is its own: with one turn it would end one connection in each round of
// all who stand in line.
type endings struct {
	mu      sync.Mutex
	queue   []ending
	running bool // a goroutine handles the queue
}

// end leaves an ending, and handles the queue unless another goroutine does. The caller must not hold the lock, and
// must not use the client any more.
func (b *Broker) end(e ending) {
	q := &b.endings
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, e)
	if q.running {
		return
	}
	q.running = true
	for len(q.queue) > 0 {
		queue := q.queue
		q.queue = nil
		q.mu.Unlock()
		b.lockFor(muchWork)
		locked := time.Now()
		for _, e := range queue {
			e.handle()
			if time.Since(locked) > b.Hold() {
				b.pause(maxDirectWrites)
				locked = time.Now()
			}
		}
		b.Unlock()
		q.mu.Lock()
	}
	q.running = false
}

func (e ending) handle() {
	c, b := e.Client, e.b
	if !e.read {
		c.endWrite()
		c.end.Why = lostReason(e.err)
		c.Cut()
		return
	}
	if !c.isClosing() {
		b.log.Debug("connection lost", "client", c.ID, "error", e.err)
		c.end.Why = lostReason(e.err)
		c.Cut()
	}
	delete(b.clients, c)
	c.dischargeAll()
	c.ticket.Leave()
	b.changed = true
	b.toClose = append(b.toClose, c.raw)
}

// handleDisconnect handles a DISCONNECT (MQTT 5, 3.14).
func (c *Client) handleDisconnect(body []byte) *Error {
	code, expiry, err := decodeDisconnect(c.Version, body)
	if err != nil {
		return err
	}
	if c.standAtEnd() {
		return nil
	}
	s := c.session
	if expiry != nil {
		if s.expiry == 0 && *expiry != 0 {
			return violation("a session that ends with its connection cannot be given an expiry") // [MQTT-3.14.2-2]
		}
		s.expiry = *expiry
	}
	if code == Success {
		s.setWill(nil) // [MQTT-3.14.4-3]
	}
	c.beginClose(End{Code: code})
	return nil
}

// decodeDisconnect returns the reason code and the Session Expiry Interval, or a nil expiry if none
// was sent.
func decodeDisconnect(version byte, body []byte) (code byte, expiry *uint32, err *Error) {
	d := decoder{body: body}
	if version == version5 {
		var props properties
		code = d.reason(&props, disconnectProperties)
		if props.seen.has(propSessionExpiry) {
			expiry = new(props.number(propSessionExpiry))
		}
	}
	d.end()
	return code, expiry, d.err
}

// protocolError ends the connection because of an error by the client. An MQTT 5 client gets the
// error's code in CONNACK or DISCONNECT.
func (c *Client) protocolError(err *Error) {
	c.b.log.Info("protocol error", "client", c.ID, "code", err.Code, "error", err.Why)
	if c.standAtEnd() {
		return
	}
	if c.session == nil && c.Version == version5 {
		c.refuse(Verdict{Code: err.Code, Text: err.Why})
		return
	}
	c.disconnect(err.Code, err.Why)
}

// disconnect ends the connection after the queued packets. To an MQTT 5 client that has been
// accepted in CONNACK, it also sends a DISCONNECT (MQTT 5, 4.13, [MQTT-3.14.0-1]).
func (c *Client) disconnect(code byte, why string) {
	if c.isClosing() {
		return
	}
	if c.session != nil && c.Version == version5 {
		body := []byte{code}
		if props := c.reasonString(why); len(props) > 0 {
			body = appendProperties(body, props)
		}
		c.out = appendPacket(c.out, typeDisconnect<<4, body) // even if the outbox is full
		c.b.stats.BytesSent += uint64(len(body) + 2)
	}
	c.beginClose(End{Code: code, Why: why})
}

// reasonString returns a Reason String property, or nil if text is empty or too long for the
// client's Maximum Packet Size.
func (c *Client) reasonString(text string) []byte {
	if text == "" || c.maxPacket > 0 && len(text)+20 >= c.maxPacket {
		return nil
	}
	return appendString([]byte{propReasonString}, text)
}

const (
	// takeOverPause is the timeout of a read on a connection that is being taken over. The
	// connection ends after two such reads without data.
	takeOverPause = 2 * time.Millisecond

	// maxTakeOver is the longest time that a connection may continue after it was taken over. It is long, because what
	// a client sent last must not be lost on a machine that stands still.
	maxTakeOver = 5 * time.Second
)

// takeOver ends the connection because the same client has connected again. The broker first
// handles the packets that the client sent on the old connection, such as a DISCONNECT. takeOver
// unlocks the broker while it waits.
func (c *Client) takeOver() {
	if c.takenOver == nil {
		c.takenOver = make(chan struct{})
		c.readDeadline(-1)
	}
	c.b.Unlock()
	select {
	case <-c.takenOver:
	case <-time.After(maxTakeOver):
	}
	c.b.Lock()
	c.disconnect(sessionTakenOver, "")
}

// drainTimeout is how long a closing connection has to send its outbox, and how long a write that
// began before may still take.
const drainTimeout = time.Second

// beginClose makes writeLoop send the outbox and close the connection. Reads do not time out until
// closeWrite sets a deadline.
func (c *Client) beginClose(end End) {
	c.closing, c.end = true, end
	c.leaveSession()
	c.resumeReads()
	c.readDeadline(0)
	c.limitWrites(drainTimeout)
	c.markDirty()
}

func (c *Client) limitWrites(d time.Duration) {
	// Ignore an error: the next write returns it too.
	_ = c.nc.SetWriteDeadline(time.Now().Add(d))
}

// After the broker has closed its side of a connection, it waits for the client to close the other
// side. If it closed the socket immediately, a client that was still sending would get a reset,
// which can overtake the DISCONNECT.
const (
	linger    = 200 * time.Millisecond // how long a client may be silent
	maxLinger = 5 * time.Second        // how long a client may continue to send
)

// closeWrite closes the broker's side of the connection, or the socket if that fails. It ignores
// errors of the WebSocket and of TLS, because the socket is closed soon in any case.
func (c *Client) closeWrite() {
	if c.ws != nil {
		c.ws.close(websocket.CloseNormalClosure)
	}
	if c.tls != nil {
		_ = c.tls.CloseWrite()
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.halfClosed = time.Now()
	half, ok := c.raw.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		_ = c.raw.Close()
		return
	}
	_ = c.raw.SetReadDeadline(time.Now().Add(linger))
}

// discard reads from nc until the client closes its side or the read deadline passes. If the
// client continues to send, discard extends the deadline, because the client may not have read the
// DISCONNECT or the TLS alert yet.
func (c *Client) discard(nc net.Conn) {
	buf := make([]byte, firstBuffer)
	for {
		if _, err := nc.Read(buf); err != nil {
			return
		}
		c.b.mu.Lock()
		if !c.halfClosed.IsZero() && !c.b.closed {
			// Ignore an error: the next read returns it too.
			_ = c.nc.SetReadDeadline(time.Now().Add(min(linger, maxLinger-time.Since(c.halfClosed))))
		}
		c.b.mu.Unlock()
	}
}

func lostReason(err error) string {
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

func appendPacket(dst []byte, first byte, body []byte) []byte {
	dst = binary.AppendUvarint(append(dst, first), uint64(len(body)))
	return append(dst, body...)
}
