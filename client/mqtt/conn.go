package mqtt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/client/slots"
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
	settled chan struct{} // closed when closing, and every publish is acknowledged

	sent, received atomic.Int64 // when bytes were last sent and received, since started
	writing        atomic.Bool
	inFlight       *atomic.Int64 // unacknowledged publishes

	acksHeld int // owned by the reader: acknowledgements in out that the writer was not woken for

	mu      sync.Mutex
	err     error                        // why the connection is over
	out     []byte                       // encoded, not yet written
	acks    int                          // acknowledgements in out
	ping    bool                         // send a PINGREQ before out
	room    chan struct{}                // closed and replaced when the writer takes out; nil = nobody waits
	closing bool                         // no more packets; the writer closes the connection when out is empty
	pending slots.Table[uint16, pending] // by Packet Identifier
	topics  [2]string                    // the topic and response topic of the last publish, which need no second check
	quota   int                          // how many publishes may be unacknowledged; 0 = not known yet
	unacked int                          // publishes that are unacknowledged, or have a place among these
	queue   []chan struct{}              // closed when the publish that waits for a place has it; in the order of the publishes
	early   struct {                     // the message of Options.Early, if it went out before CONNACK
		id   uint16
		size int // 0 = it did not
	}
	verdicts []chan<- error // for the unanswered AUTH packets, in order
}

// outFull is the number of bytes in out from which publishes wait, so that a broker that
// reads slowly, or not at all, does not cost more memory.
const outFull = 1 << 20

// pending is a packet that waits for its acknowledgement.
type pending struct {
	packet  byte     // packets.PUBACK, which has a place among the unacked, or packets.SUBACK
	topic   string   // of a publish, which may be refused
	filters []string // of a SUBSCRIBE; each may be refused
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
)

// ErrNoSubscribers means that the broker accepted a message and reported that nobody
// subscribes to its topic (PUBACK 0x10).
var ErrNoSubscribers = errors.New("nobody subscribed to the topic")

// A LostError means that a connection ended although the client did not close it. It wraps
// the cause: a *ReasonError for a DISCONNECT, in a *ReauthError if that answered an AUTH,
// ErrBrokerClosed, ErrKeepAlive, a *MalformedError or a network error.
type LostError struct {
	Err error
}

func (e *LostError) Error() string { return "connection lost: " + e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// Limits returns the limits that the broker announced.
func (c *Conn) Limits() Limits { return c.limits }

// Done returns a channel that is closed when the connection has ended; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// LastReceived returns when bytes last came from the broker, or when the connection was
// made if none did.
func (c *Conn) LastReceived() time.Time {
	return c.started.Add(time.Duration(c.received.Load()))
}

// Err returns why the connection ended: ErrClosed or a *LostError; nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// closeWithin limits the time to write DISCONNECT, and for the broker to take what was
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
		c.signal()
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

// Publish sends a message with QoS 1. It waits only for room: in the broker's Receive
// Maximum, and in the buffer if the broker reads slowly. It returns once the message is
// queued for the writer, and does not keep its memory. After an error the message was not
// sent and acked is not called; the error is a *TooLargeError, the end of ctx, or how the
// connection ended.
//
// acked is called exactly once and must not block. Its argument is nil if the broker
// accepted the message, ErrNoSubscribers if it accepted it and nobody will get it, a
// *ReasonError if it refused it, or how the connection ended before the PUBACK came.
func (c *Conn) Publish(ctx context.Context, m Message, acked func(error)) error {
	if err := c.takePlace(ctx); err != nil {
		return err
	}
	if err := c.lockWithRoom(ctx); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leavePlace()
		return err
	}
	defer c.mu.Unlock()
	if _, _, err := c.publish(&m, acked); err != nil {
		c.leavePlace()
		return err
	}
	c.signal()
	return nil
}

// takePlace waits for a place among the unacknowledged publishes.
func (c *Conn) takePlace(ctx context.Context) error {
	c.mu.Lock()
	if c.unacked < c.quota {
		c.unacked++
		c.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	c.queue = append(c.queue, turn)
	c.mu.Unlock()
	c.Flush() // or the acknowledgements that make room may never come
	var err error
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.done:
		err = c.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.queue, turn); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	} else {
		c.leavePlace() // which it was given in the meantime
	}
	return err
}

// ErrFull means that a message was not queued because there is no room for it.
var ErrFull = errors.New("too much is unacknowledged or unsent")

// Queue is [Conn.Publish] for one of several messages: the message may wait for Flush, to
// share a write with others. Queue itself does not wait: without room the error is ErrFull.
func (c *Conn) Queue(m *Message, acked func(error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		return err
	}
	if c.unacked >= c.quota || len(c.out) >= outFull {
		return ErrFull
	}
	if _, _, err := c.publish(m, acked); err != nil {
		return err
	}
	c.unacked++
	if len(c.out) >= enough {
		c.signal() // the writer can begin
	}
	return nil
}

// enough is the number of bytes in out that are worth a write.
const enough = 16 << 10

// Flush sends what was queued. It does not wait.
func (c *Conn) Flush() { c.signal() }

// lockWithRoom waits for room in out and locks c.mu. After an error c.mu is unlocked.
func (c *Conn) lockWithRoom(ctx context.Context) error {
	for {
		c.mu.Lock()
		if err := c.over(); err != nil {
			c.mu.Unlock()
			return err
		}
		if len(c.out) < outFull {
			return nil
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.done:
			return c.Err()
		}
	}
}

// Subscribe subscribes with QoS 1 and waits for the SUBACK. The error is a *ReasonError if
// the broker refused, the end of ctx, or how the connection ended.
func (c *Conn) Subscribe(ctx context.Context, filters ...string) error {
	granted := make(chan error, 1)
	cp, err := c.subscribe(filters, granted)
	if err != nil {
		return err
	}
	if err := c.send(cp); err != nil {
		c.mu.Lock()
		c.pending.Take(cp.PacketID())
		c.mu.Unlock()
		return err
	}
	select {
	case err := <-granted:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send queues packets for one write.
func (c *Conn) send(cps ...*packets.ControlPacket) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		return err
	}
	if err := c.enqueueAll(cps); err != nil {
		return err
	}
	c.signal()
	return nil
}

// The caller of over, leavePlace, publish, register, enqueue, signal and settle holds c.mu.

// leavePlace gives the place of a publish to the next one that waits.
func (c *Conn) leavePlace() {
	if len(c.queue) == 0 {
		c.unacked--
		return
	}
	close(c.queue[0])
	c.queue = slices.Delete(c.queue, 0, 1)
}

// publish checks and queues a message and returns its Packet Identifier and size.
func (c *Conn) publish(m *Message, acked func(error)) (id uint16, size int, err error) {
	if err := c.check(m); err != nil {
		return 0, 0, err
	}
	id = c.register(pending{packet: packets.PUBACK, topic: m.Topic, done: acked})
	before := len(c.out)
	if c.out, err = appendPublish(c.out, m, id, c.limits.MaxPacketSize); err != nil {
		c.pending.Take(id)
		return 0, 0, err
	}
	c.inFlight.Add(1)
	size = len(c.out) - before
	if c.o.Tap != nil {
		c.o.Tap(publishEvent(m, id, size))
	}
	return id, size, nil
}

// check checks a message; most have the topics of the one before.
func (c *Conn) check(m *Message) error {
	if topics := [2]string{m.Topic, m.ResponseTopic}; topics != c.topics {
		if err := m.checkTopics(); err != nil {
			return err
		}
		c.topics = topics
	}
	return m.checkRest()
}

func (c *Conn) over() error {
	if c.err == nil && c.closing {
		return ErrClosed
	}
	return c.err
}

// register returns a free Packet Identifier. There always is one, because quota and the
// few subscriptions need less than 65535.
func (c *Conn) register(p pending) uint16 { return c.pending.Add(p) }

func (c *Conn) enqueueAll(cps []*packets.ControlPacket) error {
	for _, cp := range cps {
		if err := c.enqueue(cp); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) enqueue(cp *packets.ControlPacket) error {
	before := len(c.out)
	out, err := appendPacket(c.out, cp, c.limits.MaxPacketSize)
	if err != nil {
		return err
	}
	c.out = out
	if c.o.Tap != nil {
		c.o.Tap(newEvent(cp, len(out)-before, true))
	}
	return nil
}

// settle tells drain that every publish is acknowledged.
func (c *Conn) settle() {
	if !c.closing || c.pending.Len() > 0 {
		return
	}
	select {
	case <-c.settled:
	default:
		close(c.settled)
	}
}

func (c *Conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

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
	waiting := c.pending
	c.pending = slots.Table[uint16, pending]{}
	close(c.done)
	c.mu.Unlock()
	c.nc.Close() // its error would add nothing to err
	for _, p := range waiting.All() {
		p.done(err)
	}
}

func (c *Conn) writeLoop() error {
	var buf []byte
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return nil
		}
		c.mu.Lock()
		buf, c.out = c.out, buf[:0]
		ping := c.ping
		c.acks, c.ping = 0, false
		if c.room != nil {
			close(c.room)
			c.room = nil
		}
		last := c.closing
		c.mu.Unlock()
		if ping {
			buf = slices.Insert(buf, 0, packets.PINGREQ<<4, 0)
		}
		if err := c.write(buf); err != nil {
			return c.writeError(err)
		}
		if last {
			c.drain()
			return ErrClosed
		}
		if cap(buf) > keepBody {
			buf = nil
		}
	}
}

// write writes all of buf, and records each part that the broker takes as a sign of life: a
// large packet on a slow line takes longer than a keep-alive interval.
func (c *Conn) write(buf []byte) error {
	const piece = 256 << 10
	c.writing.Store(true)
	defer c.writing.Store(false)
	for len(buf) > 0 {
		n, err := c.nc.Write(buf[:min(len(buf), piece)])
		if err != nil {
			return err
		}
		buf = buf[n:]
		c.sent.Store(int64(time.Since(c.started)))
	}
	return nil
}

// drain comes after a DISCONNECT. A PUBACK that arrives at a closed socket causes a reset,
// which discards what is still being sent. So drain waits for the outstanding PUBACKs, or
// for the broker to close the connection, as long as Close allows.
func (c *Conn) drain() {
	c.mu.Lock()
	c.settle()
	c.mu.Unlock()
	select {
	case <-c.settled:
		return
	default:
	}
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		select {
		case <-c.read:
		case <-c.settled:
		}
	}
}

// writeError prefers the broker's last packet to a write error: a broker that refuses
// sends its reason and closes, and our next write may notice the close first.
func (c *Conn) writeError(err error) error {
	const grace = 100 * time.Millisecond
	if c.nc.SetReadDeadline(time.Now().Add(grace)) == nil {
		<-c.read
	}
	return &LostError{err}
}

func (c *Conn) readLoop() error {
	defer close(c.read) // after fail has the reason
	err := c.readPackets()
	c.drained()
	if err != nil {
		c.fail(err)
	}
	return nil
}

// drained comes after the messages of one read.
func (c *Conn) drained() {
	if c.o.OnDrained != nil {
		c.o.OnDrained()
	}
}

func (c *Conn) readPackets() error {
	limit := maxRemaining
	if n := c.o.MaxPacketSize; n > 0 {
		limit = int(min(n, maxRemaining))
	}
	r := packetReader{r: bufio.NewReaderSize(lifeSigns{c}, readBuffer), limit: limit}
	for granted := false; ; {
		in, err := r.next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // the deadline of Close or writeError; the writer knows the reason
		}
		if err != nil {
			if _, malformed := errors.AsType[*MalformedError](err); !malformed && c.leaving() {
				return nil // the broker closes after our DISCONNECT; the writer knows whether it was sent
			}
			return &LostError{brokerClosed(err)}
		}
		if c.o.Tap != nil {
			c.o.Tap(in.event())
		}
		if !granted && in.kind != packets.CONNACK && in.kind != packets.DISCONNECT && in.kind != packets.AUTH {
			return &LostError{&MalformedError{in.name() + " before CONNACK"}}
		}
		switch in.kind {
		case packets.PUBLISH:
			err = c.message(&in.publish)
		case packets.PUBACK:
			err = c.published(in.puback)
		default:
			var final error
			if granted, final, err = c.control(in.other, granted); final != nil {
				return final
			}
		}
		if err != nil {
			return &LostError{err}
		}
	}
}

// control handles any other packet. It reports whether the login is granted now. It
// returns the error with which a connection ended before that, or what is wrong.
func (c *Conn) control(cp *packets.ControlPacket, granted bool) (now bool, final, err error) {
	switch p := cp.Content.(type) {
	case *packets.Connack:
		if granted {
			return granted, nil, &MalformedError{"a second CONNACK"}
		}
		if p.ReasonCode >= 0x80 {
			return false, &ReasonError{Packet: "CONNACK", Code: p.ReasonCode, Text: p.Properties.ReasonString}, nil
		}
		if p.ReasonCode != 0 {
			return false, nil, &MalformedError{fmt.Sprintf("reason code 0x%02X in CONNACK", p.ReasonCode)}
		}
		return true, nil, c.granted(p.Properties)
	case *packets.Suback:
		return granted, nil, c.subscribed(p)
	case *packets.Pingresp:
		return granted, nil, nil
	case *packets.Disconnect:
		return granted, nil, c.disconnected(&ReasonError{Packet: "DISCONNECT", Code: p.ReasonCode, Text: p.Properties.ReasonString})
	case *packets.Auth:
		if !granted {
			return false, c.challenged(p), nil
		}
		return granted, nil, c.authenticated(p)
	default:
		return granted, nil, &MalformedError{cp.PacketType() + " is not for a client that did not ask for it"}
	}
}

func (c *Conn) leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// lifeSigns reads from the broker and records when bytes came. Bytes count, not packets: a
// large packet on a slow line takes longer than a keep-alive interval.
type lifeSigns struct {
	c *Conn
}

func (l lifeSigns) Read(b []byte) (int, error) {
	l.c.drained()
	l.c.release()
	n, err := l.c.nc.Read(b)
	if n > 0 {
		l.c.received.Store(int64(time.Since(l.c.started)))
	}
	return n, err
}

func (c *Conn) granted(props *packets.Properties) error {
	if q := props.MaximumQOS; q != nil && *q == 0 {
		return errQoS0
	}
	limits := c.limits
	if v := props.ReceiveMaximum; v != nil {
		if *v == 0 {
			return &MalformedError{"receive maximum 0 in CONNACK"}
		}
		limits.ReceiveMaximum = int(*v)
	}
	if v := props.MaximumPacketSize; v != nil {
		if *v == 0 {
			return &MalformedError{"maximum packet size 0 in CONNACK"}
		}
		limits.MaxPacketSize = int(min(*v, maxPacket))
	}
	if v := props.ServerKeepAlive; v != nil {
		limits.KeepAlive = time.Duration(*v) * time.Second
	}
	// Subscriptions share the packet identifiers with publishes.
	const spare = 100
	c.mu.Lock()
	c.limits = limits
	c.quota = min(limits.ReceiveMaximum, 1<<16-1-spare)
	var tooLarge func(error)
	if p, ok := c.pending.Get(c.early.id); ok && c.early.size > 0 {
		// The early message was sent before the limits were known.
		if c.early.size <= limits.MaxPacketSize {
			c.unacked++ // the first, so there is room
		} else {
			c.pending.Take(c.early.id)
			c.inFlight.Add(-1)
			tooLarge = p.done
		}
	}
	c.mu.Unlock()
	if tooLarge != nil {
		tooLarge(&TooLargeError{Size: c.early.size, Max: limits.MaxPacketSize})
	}
	close(c.connack)
	return nil
}

var errQoS0 = errors.New("the broker grants QoS 0 only, the store wants QoS 1")

func (c *Conn) message(p *Publication) error {
	switch {
	case p.QoS > 1:
		return &MalformedError{"a PUBLISH with QoS 2, which nobody subscribed to"}
	case p.QoS == 1 && p.id == 0:
		return &MalformedError{"a PUBLISH with packet identifier 0"}
	case len(p.Topic) == 0:
		return &MalformedError{"a PUBLISH with a topic alias, which was not granted"}
	}
	if p.QoS == 1 {
		// Acknowledge first: the receiver of the message may close the connection.
		if err := c.acknowledge(p.id); err != nil {
			return err
		}
	}
	switch {
	case c.o.OnPublication != nil:
		c.o.OnPublication(p)
	case c.o.OnMessage != nil:
		c.o.OnMessage(p.Message())
	}
	return nil
}

// acknowledge queues a PUBACK. The writer is woken once all messages of one read have been
// handed over, so that their PUBACKs go out in one write.
func (c *Conn) acknowledge(id uint16) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		if errors.Is(err, ErrClosed) {
			return nil
		}
		return err
	}
	most := math.MaxUint16
	if c.o.ReceiveMaximum > 0 {
		most = int(c.o.ReceiveMaximum)
	}
	if c.acks++; c.acks > most {
		return &MalformedError{fmt.Sprintf("more than %d messages without PUBACK", most)}
	}
	before := len(c.out)
	c.out = appendPuback(c.out, id)
	c.acksHeld++
	if c.o.Tap != nil {
		c.o.Tap(pubackEvent(id, len(c.out)-before))
	}
	return nil
}

// release wakes the writer for the acknowledgements of the last read.
func (c *Conn) release() {
	const many = 32
	if c.acksHeld > 0 && !c.o.HoldAcks || c.acksHeld > many {
		c.acksHeld = 0
		c.signal()
	}
}

// published passes the outcome to the waiting publish.
func (c *Conn) published(ack puback) error {
	p, err := c.acknowledged(ack.id, packets.PUBACK, 1)
	if err != nil || p.done == nil {
		return err
	}
	switch {
	case ack.code >= 0x80:
		p.done(&ReasonError{Packet: "PUBACK", Code: ack.code, Text: ack.reason, Topic: p.topic})
	case ack.code == reasonNoSubscribers:
		p.done(ErrNoSubscribers)
	default:
		p.done(nil)
	}
	return nil
}

// subscribed passes the outcome to the waiting SUBSCRIBE.
func (c *Conn) subscribed(ack *packets.Suback) error {
	p, err := c.acknowledged(ack.PacketID, packets.SUBACK, len(ack.Reasons))
	if err != nil || p.done == nil {
		return err
	}
	for i, code := range ack.Reasons {
		if code >= 0x80 {
			p.done(&ReasonError{Packet: "SUBACK", Code: code, Text: ack.Properties.ReasonString, Topic: p.filters[i]})
			return nil
		}
		if code == 0 {
			p.done(errQoS0)
			return nil
		}
	}
	p.done(nil)
	return nil
}

// acknowledged returns what waits for an acknowledgement with so many reason codes. It
// returns no error and nothing if nothing waits for it, because brokers repeat themselves.
func (c *Conn) acknowledged(id uint16, packet byte, codes int) (pending, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pending.Get(id)
	if !ok {
		return pending{}, nil
	}
	if want := max(len(p.filters), 1); packet != p.packet || codes != want {
		return pending{}, &MalformedError{fmt.Sprintf("%s with %d reason codes where a %s with %d was due", packetName(packet), codes, packetName(p.packet), want)}
	}
	c.pending.Take(id)
	if packet == packets.PUBACK {
		c.inFlight.Add(-1)
		c.leavePlace()
	}
	c.settle()
	return p, nil
}

// keepAliveLoop pings often enough that neither side takes the other for dead.
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
		life := received
		if c.writing.Load() {
			life = max(life, sent) // reading part of a large packet is a sign of life too
		}
		if now-life >= interval+interval/2 {
			return &LostError{ErrKeepAlive}
		}
		if now-received >= interval/2 || now-sent >= interval/2 {
			if c.askForLife() != nil {
				return nil // already ended
			}
		}
	}
}

// askForLife sends a PINGREQ ahead of the packets in out.
func (c *Conn) askForLife() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		return err
	}
	if c.ping {
		return nil
	}
	c.ping = true
	if c.o.Tap != nil {
		c.o.Tap(newEvent(packets.NewControlPacket(packets.PINGREQ), 2, true))
	}
	c.signal()
	return nil
}
