package mqtt

import (
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/client/internal/idtable"
)

// A Conn is an open MQTT 5 connection. It may be used by several goroutines.
type Conn struct {
	o       Options
	nc      net.Conn
	started time.Time
	wg      sync.WaitGroup
	wake    chan struct{} // out has something to write; capacity 1
	done    chan struct{} // closed by fail
	read    chan struct{} // closed when the reader has ended
	connack chan struct{} // closed when the login is granted; limits are set by then
	limits  Limits
	acked   chan struct{} // closed when closing, and every publish is acknowledged

	sent, received atomic.Int64  // when bytes were last sent and received, since started
	writing        atomic.Bool   // the writer is in a write
	inFlight       *atomic.Int64 // unacknowledged publishes; changed with mu held

	acksHeld int // owned by the reader: acknowledgements in out that the writer was not woken for

	mu      sync.Mutex
	err     error                          // why the connection is over
	out     []byte                         // encoded, not yet written
	acks    int                            // acknowledgements in out
	ping    bool                           // send a PINGREQ before out
	pinged  time.Time                      // when the newest PINGREQ was queued
	pings   [2]time.Time                   // when the last two that were answered were queued, the last one first
	closing bool                           // no more packets; the writer closes the connection when out is empty
	pending idtable.Table[uint16, pending] // by Packet Identifier
	quota   int                            // the largest number of unacknowledged publishes; 0 = not known yet
	waiting []chan struct{}                // the publishes that wait for room, in order; each has capacity 1
	early   struct {                       // the message of Options.Early, if it went out before CONNACK
		id   uint16
		size int // 0 = it did not
	}
	verdicts []chan<- error // for the unanswered AUTH packets, in order

	topic, responseTopic string // of the last publish, validated; the next one usually has the same
}

// pending is a packet that waits for its acknowledgement.
type pending struct {
	packet  byte     // packets.PUBACK or packets.SUBACK
	topic   string   // of a PUBLISH, for the error if the broker refuses it
	filters []string // of a SUBSCRIBE; the broker may refuse each of them
	done    func(error)
}

// Limits are the limits that the broker announced in CONNACK.
type Limits struct {
	ReceiveMaximum int           // unacknowledged publishes at one time
	MaxPacketSize  int           // bytes
	KeepAlive      time.Duration // 0 = none
}

// Why a connection ended. A lost connection ends with a *[LostError].
var (
	ErrClosed    = errors.New("the connection was closed")
	ErrKeepAlive = errors.New("no sign of life from the broker for one and a half keep-alive intervals")
	ErrSilent    = errors.New("no sign of life from the broker until a request timed out")
)

// A LostError means that a connection ended although the client did not close it. It wraps
// the cause: a *ReasonError for a DISCONNECT, in a *ReauthError if that answered an AUTH,
// ErrBrokerClosed, ErrKeepAlive, ErrSilent, a *MalformedError or a network error.
type LostError struct {
	Err error
}

func (e *LostError) Error() string { return "connection lost: " + e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// start starts the reader and the writer of a network connection.
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

// run runs one of the goroutines of the connection, which ends with the error of loop.
func (c *Conn) run(loop func() error) {
	c.wg.Go(func() {
		if err := loop(); err != nil {
			c.fail(err)
		}
	})
}

// fail ends the connection. Only the first reason is kept.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	unanswered := c.pending
	c.pending = idtable.Table[uint16, pending]{}
	close(c.done)
	c.mu.Unlock()
	if err != ErrClosed {
		// The alert that TLS sends before it closes would wait 5 s for a broker that does not read.
		if t, ok := c.nc.(interface{ NetConn() net.Conn }); ok {
			t.NetConn().Close() // as below
		}
	}
	c.nc.Close() // its error would add nothing to err
	for _, p := range unanswered.All() {
		p.done(err)
	}
}

// Limits returns the limits that the broker announced.
func (c *Conn) Limits() Limits { return c.limits }

// Done returns a channel that is closed when the connection has ended; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// LastReceived returns when bytes last came from the broker, or when the connection was
// made if none did.
func (c *Conn) LastReceived() time.Time {
	return c.started.Add(time.Duration(c.received.Load()))
}

// LastPing returns when the last PINGREQ but one was sent that the broker answered; zero if there
// is none. What the broker had to send before that time has come: a PINGRESP may overtake messages
// that the broker still holds, but not by the time between two pings.
func (c *Conn) LastPing() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pings[1]
}

// handlePingresp records that the newest PINGREQ was answered.
func (c *Conn) handlePingresp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pings[0] != c.pinged {
		c.pings = [2]time.Time{c.pinged, c.pings[0]}
	}
}

// Err returns why the connection ended: ErrClosed or a *LostError; nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// closeWithin limits the time to write DISCONNECT, and for the broker to read what was
// published before it.
const closeWithin = time.Second

// Close sends DISCONNECT, closes the connection and waits for its goroutines. Earlier
// publishes are sent, but may stay unacknowledged. The error is a *[LostError] if the
// connection had already ended.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.err == nil && !c.closing {
		// The only error is a packet too large, and then there is no other to send.
		_ = c.enqueue(packets.NewControlPacket(packets.DISCONNECT))
		c.closing = true
		c.Flush()
	}
	c.mu.Unlock()
	// Its only error is that the connection is closed already.
	_ = c.nc.SetDeadline(time.Now().Add(closeWithin))
	c.wg.Wait()
	if err := c.Err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// Abandon ends a connection on which the broker is silent: at once and without DISCONNECT, which
// would not arrive. Close must still be called.
func (c *Conn) Abandon() { c.fail(&LostError{ErrSilent}) }

// over returns why no more packets can be sent, or nil. It requires c.mu.
func (c *Conn) over() error {
	if c.err == nil && c.closing {
		return ErrClosed
	}
	return c.err
}

// keepAliveLoop pings often enough that neither side considers the other dead.
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

// sendPing sends a PINGREQ ahead of the packets in out.
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
