package mqtt

import (
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/idtable"
)

// A Conn is an MQTT 5 connection. Several goroutines may use it.
type Conn struct {
	o       Options
	nc      net.Conn
	started time.Time
	wg      sync.WaitGroup
	wake    chan struct{} // tells the writer that out or ping is set; capacity 1
	done    chan struct{} // closed by fail
	read    chan struct{} // closed when the reader ends
	connack chan struct{} // closed when CONNACK has granted the login and limits is set
	limits  Limits
	acked   chan struct{} // closed once closing is set and pending is empty

	sent, received atomic.Int64  // when bytes were last sent, or began to be, and received; nanoseconds since started
	writing        atomic.Bool   // the writer is writing to nc
	inFlight       *atomic.Int64 // unacknowledged publishes; changed only with mu held

	acksHeld int // PUBACKs queued since drained last woke the writer; used only by the reader

	mu      sync.Mutex
	err     error                          // why the connection is over
	out     []byte                         // encoded packets that the writer has not taken
	large   large                          // the part of these packets that is not in out
	acks    int                            // PUBACKs in out
	ping    bool                           // send a PINGREQ before out
	pinged  time.Time                      // when the newest PINGREQ was queued
	pings   [2]time.Time                   // when the last two answered PINGREQs were queued; newest first
	closing bool                           // DISCONNECT is queued; accept no more packets
	pending idtable.Table[uint16, pending] // by Packet Identifier
	quota   int                            // maximum of inFlight; 0 before CONNACK
	waiting []chan struct{}                // publishes that wait for room, in order; capacity 1 each
	early   struct {                       // the message of Options.Early, if it was queued before CONNACK
		id   uint16
		size int // bytes; 0 = no such message
	}
	verdicts []chan<- error // where to send the broker's answers to our AUTH packets, in order

	topic, responseTopic string // the topics of the last publish, which need not be checked again
}

// A large is the Large of a message that waits for the writer. The zero value means that no such message waits.
type large struct {
	text string
	at   int // the offset in Conn.out where it belongs
}

// pending is a packet that waits for its acknowledgement.
type pending struct {
	packet  byte     // type of the expected acknowledgement: packets.PUBACK or packets.SUBACK
	topic   string   // a PUBLISH's topic, for the error if the broker refuses it
	filters []string // a SUBSCRIBE's topic filters; the broker grants or refuses each of them
	done    func(error)
}

// Limits are the limits that the broker announced in CONNACK.
type Limits struct {
	ReceiveMaximum int           // maximum number of unacknowledged publishes
	MaxPacketSize  int           // bytes
	KeepAlive      time.Duration // 0 = none
}

// Reasons why a connection ended. ErrKeepAlive and ErrSilent come wrapped in a *[LostError].
var (
	ErrClosed    = errors.New("the connection was closed")
	ErrKeepAlive = errors.New("no sign of life from the broker for one and a half keep-alive intervals")
	ErrSilent    = errors.New("no sign of life from the broker until a request timed out")
)

// A LostError means that a connection ended although the client did not close it. It wraps
// the cause: a *ReasonError if the broker sent DISCONNECT, a *ReauthError if the DISCONNECT
// answered an AUTH, ErrBrokerClosed, ErrKeepAlive, ErrSilent, a *MalformedError, or a network
// or WebSocket error.
type LostError struct {
	Err error
}

func (e *LostError) Error() string { return fmt.Sprintf("connection lost: %v", e.Err) }

func (e *LostError) Unwrap() error { return e.Err }

// start returns a Conn that uses nc, and starts its reader and writer.
func start(nc net.Conn, o Options) *Conn {
	c := &Conn{
		o:        o,
		nc:       nc,
		inFlight: o.inFlight,
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		read:     make(chan struct{}),
		acked:    make(chan struct{}),
		connack:  make(chan struct{}),
		started:  time.Now(),
		limits:   Limits{ReceiveMaximum: math.MaxUint16, MaxPacketSize: maxPacket, KeepAlive: o.keepAlive()},
	}
	c.run(c.readLoop)
	c.run(c.writeLoop)
	return c
}

// run runs loop in a goroutine of the connection. If loop returns an error, the connection ends
// with that error.
func (c *Conn) run(loop func() error) {
	c.wg.Go(func() {
		if err := loop(); err != nil {
			c.fail(err)
		}
	})
}

// fail ends the connection with err, unless it has already ended.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	unanswered := c.pending
	c.pending = idtable.Table[uint16, pending]{}
	c.mu.Unlock()
	if err != ErrClosed {
		// Close the network connection before c.done, so that it has ended when Options.Dial is
		// called to make the next one. With TLS, close only the TCP connection: closing TLS sends
		// an alert, which takes up to 5 s if the broker does not read.
		tcp := c.nc
		if t, ok := tcp.(interface{ NetConn() net.Conn }); ok {
			tcp = t.NetConn()
		}
		tcp.Close() // its error would add nothing to err
	}
	close(c.done)
	c.nc.Close() // its error would add nothing to err
	for _, p := range unanswered.All() {
		p.done(err)
	}
}

// Limits returns the limits that the broker announced.
func (c *Conn) Limits() Limits { return c.limits }

// Done returns a channel that is closed when the connection has ended; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// LastReceived returns when bytes from the broker last arrived, or when the connection was made if
// none have arrived.
func (c *Conn) LastReceived() time.Time {
	return c.started.Add(time.Duration(c.received.Load()))
}

// sendPatience is how long the broker may take for a piece of a large packet.
const sendPatience = 10 * time.Second

// IsSending reports whether the connection is in the middle of writing, and the broker takes what is written.
func (c *Conn) IsSending() bool {
	return c.writing.Load() && time.Since(c.started)-time.Duration(c.sent.Load()) < sendPatience
}

// LastPing returns when the second-newest answered PINGREQ was queued, or zero if the broker has
// answered fewer than two PINGREQs. Messages that the broker had to send before that time have
// arrived: a PINGRESP may overtake messages in the broker, but by less than the time between two
// pings.
func (c *Conn) LastPing() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pings[1]
}

// handlePingresp records that the broker answered the newest PINGREQ.
func (c *Conn) handlePingresp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pings[0] != c.pinged {
		c.pings = [2]time.Time{c.pinged, c.pings[0]}
	}
}

// Err returns why the connection ended, ErrClosed or a *[LostError], or nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// closeWithin limits the time to write DISCONNECT and to wait for the acknowledgements of
// earlier publishes.
const closeWithin = time.Second

// Close sends DISCONNECT, closes the connection and waits for its goroutines. Earlier
// publishes are sent, but may stay unacknowledged. The error is a *[LostError] if the
// connection was lost before Close could finish.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.err == nil && !c.closing {
		// enqueue fails only if DISCONNECT exceeds the broker's Maximum Packet Size; then close
		// without DISCONNECT.
		_ = c.enqueue(packets.NewControlPacket(packets.DISCONNECT))
		c.closing = true
		c.Flush()
	}
	c.mu.Unlock()
	if c.nc.SetDeadline(time.Now().Add(closeWithin)) != nil { // it is already closed, or knows no deadlines, as an SSH channel
		defer time.AfterFunc(closeWithin, func() { c.nc.Close() }).Stop()
	}
	c.wg.Wait()
	if err := c.Err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// Abandon ends the connection immediately with ErrSilent. It sends no DISCONNECT, because a silent
// broker would not read it. The caller must still call Close.
func (c *Conn) Abandon() { c.fail(&LostError{ErrSilent}) }

// over returns why no more packets can be sent, or nil if they can. The caller holds c.mu.
func (c *Conn) over() error {
	if c.err == nil && c.closing {
		return ErrClosed
	}
	return c.err
}

// keepAliveLoop sends a PINGREQ if nothing was sent, or nothing was received, for half a keep-alive
// interval. It returns a LostError with ErrKeepAlive if nothing arrives for one and a half
// intervals.
func (c *Conn) keepAliveLoop() error {
	interval := c.limits.KeepAlive
	tick := time.NewTicker(interval / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.done:
			return nil
		}
		now := time.Since(c.started)
		received, sent := time.Duration(c.received.Load()), time.Duration(c.sent.Load())
		alive := received
		if c.writing.Load() {
			alive = max(alive, sent) // a broker that reads part of a large packet is alive too
		}
		if now-alive >= interval+interval/2 {
			return &LostError{ErrKeepAlive}
		}
		if now-received >= interval/2 || now-sent >= interval/2 {
			c.sendPing()
		}
	}
}

// sendPing queues a PINGREQ ahead of the packets in out.
func (c *Conn) sendPing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over() != nil || c.ping {
		return
	}
	c.ping, c.pinged = true, time.Now()
	if c.o.Tap != nil {
		c.o.Tap(newEvent(packets.NewControlPacket(packets.PINGREQ), 2, true))
	}
	c.Flush()
}
