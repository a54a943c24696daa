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
)

// A Conn is an open MQTT 5 connection. It may be used by several goroutines.
type Conn struct {
	o       Options
	nc      net.Conn
	started time.Time
	wg      sync.WaitGroup
	wake    chan struct{} // something is in out; capacity 1
	done    chan struct{} // closed by fail
	read    chan struct{} // closed when the reader has ended
	connack chan struct{} // closed when the login was granted; limits and quota are set then
	limits  Limits
	quota   chan struct{} // holds one for each publish without PUBACK
	settled chan struct{} // closed when we leave and no publish is without PUBACK

	sent, received atomic.Int64 // when bytes last were, since started
	writing        atomic.Bool
	inFlight       *atomic.Int64 // publishes without PUBACK

	acksHeld int // by the reader: acknowledgements in out of which the writer does not know

	mu      sync.Mutex
	err     error         // why the connection is over
	out     []byte        // encoded, not yet written
	acks    int           // acknowledgements in out
	ping    bool          // a PINGREQ is to go before out
	room    chan struct{} // closed, and another made, when out has been taken; nil = nobody waits
	closing bool          // nothing more goes out; the writer closes when out is empty
	pending map[uint16]pending
	lastID  uint16
	early   struct { // the message of Options.Early, if it went out before CONNACK
		id   uint16
		size int // 0 = none did
	}
	verdicts []chan<- error // of AUTH packets without an answer, in their order
}

// outFull is how many bytes may wait for the writer before publishes do. A broker that
// reads slowly, or not at all, is not to cost more memory.
const outFull = 1 << 20

// pending is a packet that waits for its acknowledgement.
type pending struct {
	packet string   // "PUBACK", then it holds one of quota, or "SUBACK"
	topics []string // what may be refused
	done   func(error)
}

// Limits are what the broker announced in CONNACK.
type Limits struct {
	ReceiveMaximum int           // publishes without PUBACK at one time
	MaxPacketSize  int           // bytes
	KeepAlive      time.Duration // 0 = none
}

// How a connection ends. A connection that is lost ends with a *[LostError].
var (
	ErrClosed    = errors.New("the connection was closed")
	ErrKeepAlive = errors.New("no sign of life from the broker for one and a half keep-alive intervals")
)

// ErrNoSubscribers is what the PUBACK of a message that nobody subscribed to may
// say (0x10). The message was accepted.
var ErrNoSubscribers = errors.New("nobody subscribed to the topic")

// A LostError is a connection that ended although nobody closed it. Its chain
// holds the cause: a *ReasonError for a DISCONNECT, in a *ReauthError if that
// answered an AUTH, ErrBrokerClosed, ErrKeepAlive, a *MalformedError or a network error.
type LostError struct {
	Err error
}

func (e *LostError) Error() string { return "connection lost: " + e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// Limits returns what the broker announced.
func (c *Conn) Limits() Limits { return c.limits }

// Done is closed when the connection is over; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// LastReceived is when something last came from the broker, or the connection was
// made.
func (c *Conn) LastReceived() time.Time {
	return c.started.Add(time.Duration(c.received.Load()))
}

// Err returns why the connection is over, or nil: ErrClosed or a *LostError.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// closeWithin bounds the wait for a DISCONNECT to be written and for the broker
// to take what was published before it.
const closeWithin = time.Second

// Close says goodbye, closes the connection and waits for its goroutines. What
// was published before is sent, but its acknowledgement is not insisted on. The
// error is how the connection ended if that was not by Close.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.err == nil && !c.closing {
		// The only error, a packet too large, leaves nothing to say.
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

// Publish sends a message with QoS 1. It waits only for room, in the broker's Receive
// Maximum and before a broker that reads slowly: it returns once the message is on its way, or with an error, and then the message was not sent
// and acked is not called: a *TooLargeError, the end of ctx, or how the
// connection ended. acked is called exactly once, must not block, and gets nil
// for a PUBACK that grants, ErrNoSubscribers for one that grants and adds that
// nobody will get the message, a *ReasonError for one that refuses, or how the
// connection ended before one came.
func (c *Conn) Publish(ctx context.Context, m Message, acked func(error)) error {
	if err := m.check(); err != nil {
		return err
	}
	select {
	case c.quota <- struct{}{}:
	default:
		select {
		case c.quota <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.done:
			return c.Err()
		}
	}
	if err := c.lockWithRoom(ctx); err != nil {
		<-c.quota
		return err
	}
	defer c.mu.Unlock()
	if _, _, err := c.publish(m, acked); err != nil {
		<-c.quota
		return err
	}
	c.signal()
	return nil
}

// lockWithRoom locks c.mu when there is room in out. An error leaves it unlocked.
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

// Subscribe subscribes with QoS 1 and waits for the SUBACK. The error is a
// *ReasonError for a refusal, the end of ctx, or how the connection ended.
func (c *Conn) Subscribe(ctx context.Context, filters ...string) error {
	granted := make(chan error, 1)
	cp, err := c.subscribe(filters, granted)
	if err != nil {
		return err
	}
	if err := c.send(cp); err != nil {
		c.mu.Lock()
		delete(c.pending, cp.PacketID())
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

// send puts packets into one write.
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

// over, publish, register, enqueue, signal and settle want c.mu.

// publish puts a message that was checked into out and returns its identifier and size.
func (c *Conn) publish(m Message, acked func(error)) (id uint16, size int, err error) {
	id = c.register(pending{packet: "PUBACK", topics: []string{m.Topic}, done: acked})
	before := len(c.out)
	if c.out, err = appendPublish(c.out, &m, id, c.limits.MaxPacketSize); err != nil {
		delete(c.pending, id)
		return 0, 0, err
	}
	c.inFlight.Add(1)
	size = len(c.out) - before
	if c.o.Tap != nil {
		c.o.Tap(publishEvent(m, id, size))
	}
	return id, size, nil
}

func (c *Conn) over() error {
	if c.err == nil && c.closing {
		return ErrClosed
	}
	return c.err
}

// register returns a free Packet Identifier. There always is one: quota and the
// few subscriptions leave room among 65535.
func (c *Conn) register(p pending) uint16 {
	for {
		c.lastID++
		if _, used := c.pending[c.lastID]; c.lastID != 0 && !used {
			c.pending[c.lastID] = p
			return c.lastID
		}
	}
}

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

// settle tells drain that every publish has its PUBACK.
func (c *Conn) settle() {
	if !c.closing || len(c.pending) > 0 {
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

// fail ends the connection; the first reason is the one that stays.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	waiting := c.pending
	c.pending = make(map[uint16]pending)
	close(c.done)
	c.mu.Unlock()
	c.nc.Close() // its error could only repeat what err says
	for _, p := range waiting {
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

// write writes all of buf, and notes after each piece that the broker takes it: a
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

// drain follows a DISCONNECT. While publishes are outstanding, their PUBACKs may
// come in, and to a closed socket that means a reset, which throws away what is
// still on its way out. So it waits for them, or for the broker to close, as long as
// Close allows.
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

// writeError gives way to what the broker said last: a broker that refuses
// writes its reason and closes, and our next write may notice that first.
func (c *Conn) writeError(err error) error {
	const grace = 100 * time.Millisecond
	if c.nc.SetReadDeadline(time.Now().Add(grace)) == nil {
		<-c.read
	}
	return &LostError{err}
}

func (c *Conn) readLoop() error {
	defer close(c.read) // after the reason is known
	if err := c.readPackets(); err != nil {
		c.fail(err)
	}
	return nil
}

func (c *Conn) readPackets() error {
	limit := maxRemaining
	if n := c.o.MaxPacketSize; n > 0 {
		limit = int(min(n, maxRemaining))
	}
	r := packetReader{r: bufio.NewReaderSize(lifeSigns{c}, 16<<10), limit: limit}
	for granted := false; ; {
		in, err := r.next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // set by Close or writeError; the writer knows the reason
		}
		if err != nil {
			if _, malformed := errors.AsType[*MalformedError](err); !malformed && c.leaving() {
				return nil // a broker closes when it has read our DISCONNECT; the writer knows whether it got that far
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
			err = c.acknowledged(in.puback.id, "PUBACK", []byte{in.puback.code}, in.puback.reason)
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

// control takes any other packet. It returns whether the login is granted now, and
// either the end of a connection that was never granted or what is wrong.
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
		return granted, nil, c.acknowledged(p.PacketID, "SUBACK", p.Reasons, p.Properties.ReasonString)
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

// lifeSigns reads from the broker and notes when bytes came. It is the bytes that
// count: a large packet on a slow line takes longer than a keep-alive interval.
type lifeSigns struct {
	c *Conn
}

func (l lifeSigns) Read(b []byte) (int, error) {
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
	c.quota = make(chan struct{}, min(limits.ReceiveMaximum, 1<<16-1-spare))
	var tooLarge func(error)
	if p, ok := c.pending[c.early.id]; ok && c.early.size > 0 {
		// It went out before the limits were known.
		if c.early.size <= limits.MaxPacketSize {
			c.quota <- struct{}{} // the first, for which there is room
		} else {
			delete(c.pending, c.early.id)
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

func (c *Conn) message(p *publication) error {
	switch {
	case p.QoS > 1:
		return &MalformedError{"a PUBLISH with QoS 2, which nobody subscribed to"}
	case p.QoS == 1 && p.id == 0:
		return &MalformedError{"a PUBLISH with packet identifier 0"}
	case p.Topic == "":
		return &MalformedError{"a PUBLISH with a topic alias, which was not granted"}
	}
	if p.QoS == 1 {
		// Before it is handed over: whoever waits for it may close the connection.
		if err := c.acknowledge(p.id); err != nil {
			return err
		}
	}
	if c.o.OnMessage != nil {
		c.o.OnMessage(p.Message)
	}
	return nil
}

// acknowledge puts a PUBACK into out. The writer is woken when all that came in one
// read has been handed over, so that it leaves in one write.
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

// release wakes the writer for the acknowledgements of what came in the last read.
func (c *Conn) release() {
	const many = 32
	if c.acksHeld > 0 && !c.o.HoldAcks || c.acksHeld > many {
		c.acksHeld = 0
		c.signal()
	}
}

// acknowledged hands the outcome to whoever waits for it. An acknowledgement
// that nobody waits for is ignored: brokers repeat themselves.
func (c *Conn) acknowledged(id uint16, packet string, codes []byte, reason string) error {
	c.mu.Lock()
	p, ok := c.pending[id]
	if ok && (packet != p.packet || len(codes) != len(p.topics)) {
		c.mu.Unlock()
		return &MalformedError{fmt.Sprintf("%s with %d reason codes where a %s with %d was due", packet, len(codes), p.packet, len(p.topics))}
	}
	delete(c.pending, id)
	c.settle()
	c.mu.Unlock()
	if !ok {
		return nil
	}
	if packet == "PUBACK" {
		c.inFlight.Add(-1)
		<-c.quota
	}
	for i, code := range codes {
		if code >= 0x80 {
			p.done(&ReasonError{Packet: packet, Code: code, Text: reason, Topic: p.topics[i]})
			return nil
		}
		if packet == "SUBACK" && code == 0 {
			p.done(errQoS0)
			return nil
		}
	}
	if packet == "PUBACK" && codes[0] == reasonNoSubscribers {
		p.done(ErrNoSubscribers)
		return nil
	}
	p.done(nil)
	return nil
}

// keepAliveLoop asks for a sign of life often enough that neither side can take
// the other for dead.
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
			life = max(life, sent) // what it takes of a long packet is a sign, too
		}
		if now-life >= interval+interval/2 {
			return &LostError{ErrKeepAlive}
		}
		if now-received >= interval/2 || now-sent >= interval/2 {
			if c.askForLife() != nil {
				return nil // over already
			}
		}
	}
}

// askForLife sends a PINGREQ, before all that waits for the writer.
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
