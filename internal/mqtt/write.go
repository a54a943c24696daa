package mqtt

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

const (
	// outFull is the number of bytes in Conn.out that makes publishes wait, as any Conn.long does. It limits the
	// memory that a connection uses if the broker reads slowly or not at all.
	outFull = 1 << 20

	// outWorthWriting is the number of bytes in Conn.out that makes Queue wake the writer, so that
	// the broker works while more messages are queued.
	outWorthWriting = 32 << 10
)

// ErrNoSubscribers means that the broker accepted a message but nobody subscribes to its
// topic (PUBACK 0x10).
var ErrNoSubscribers = errors.New("nobody subscribed to the topic")

// ErrFull means that a message was not queued because too many publishes are unacknowledged
// or too many bytes are unsent.
var ErrFull = errors.New("too much is unacknowledged or unsent")

// Publish queues a message with QoS 1 for the writer. It waits while the broker's Receive
// Maximum is used up or the write buffer is full. The caller may reuse the message's memory
// when Publish returns. If Publish returns an error, the message is not sent and acked is not
// called. The error is a *TooLargeError, the cause of ctx, the reason why the connection
// ended, or a description of an invalid message.
//
// Otherwise acked is called exactly once. It must not block. Its argument is nil if the
// broker accepted the message, ErrNoSubscribers if the broker accepted it but nobody
// subscribes to the topic, a *ReasonError if the broker refused it, or the reason why the
// connection ended before the PUBACK arrived.
func (c *Conn) Publish(ctx context.Context, m Message, acked func(error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		return err
	}
	if err := c.awaitRoom(ctx); err != nil {
		return err
	}
	_, _, err := c.publish(&m, acked)
	c.Flush()
	return err
}

// Queue is like [Conn.Publish], but it never waits, and the message may stay in the buffer
// until Flush, so that several messages share a write. The error is ErrFull if Publish would
// have to wait.
func (c *Conn) Queue(m *Message, acked func(error)) error {
	worthWriting, err := c.queue(m, acked)
	if worthWriting {
		c.Flush()
		runtime.Gosched() // on one core, the writer would otherwise not run until the caller blocks
	}
	return err
}

// queue does the work of Queue, and reports whether out has enough bytes to be worth a write.
func (c *Conn) queue(m *Message, acked func(error)) (worthWriting bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		return false, err
	}
	if c.full() || len(c.waiting) > 0 {
		return false, ErrFull
	}
	_, _, err = c.publish(m, acked)
	return len(c.out) >= outWorthWriting || c.large.text != "", err
}

// Flush wakes the writer to send all queued packets. It does not wait.
func (c *Conn) Flush() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// full reports whether publishes have to wait. The caller holds c.mu.
func (c *Conn) full() bool {
	return int(c.inFlight.Load()) >= c.quota || len(c.out) >= outFull || c.large.text != ""
}

// awaitRoom waits until there is room for a publish and no earlier publish waits. The caller holds
// c.mu, which awaitRoom releases while it waits.
func (c *Conn) awaitRoom(ctx context.Context) (err error) {
	if !c.full() && len(c.waiting) == 0 {
		return nil
	}
	turn := make(chan struct{}, 1)
	c.waiting = append(c.waiting, turn)
	for err == nil && (c.full() || c.waiting[0] != turn) {
		c.mu.Unlock()
		c.Flush() // there is room only after queued packets are sent and acknowledged
		select {
		case <-turn:
		case <-c.done:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		c.mu.Lock()
		if err == nil {
			err = c.over()
		}
	}
	i := slices.Index(c.waiting, turn)
	c.waiting = slices.Delete(c.waiting, i, i+1)
	c.wakeWaiting()
	return err
}

// wakeWaiting wakes the first publish that waits for room, if there is room. The caller
// holds c.mu.
func (c *Conn) wakeWaiting() {
	if len(c.waiting) == 0 || c.full() {
		return
	}
	select {
	case c.waiting[0] <- struct{}{}:
	default:
	}
}

// publish checks and queues a message and returns its Packet Identifier and its encoded size. The
// caller holds c.mu.
func (c *Conn) publish(m *Message, acked func(error)) (id uint16, size int, err error) {
	if m.Topic != c.topic || m.ResponseTopic != c.responseTopic {
		if err := m.checkTopics(); err != nil {
			return 0, 0, err
		}
		c.topic, c.responseTopic = m.Topic, m.ResponseTopic
	}
	if err := m.checkSizes(); err != nil {
		return 0, 0, err
	}
	// A Packet Identifier is always free: quota leaves enough of them for the subscriptions.
	id = c.pending.Add(pending{packet: packets.PUBACK, topic: m.Topic, done: acked})
	before := len(c.out)
	if c.out, err = appendPublish(c.out, m, id, c.limits.MaxPacketSize); err != nil {
		c.pending.Remove(id)
		return 0, 0, err
	}
	c.inFlight.Add(1)
	size = len(c.out) - before + len(m.Large)
	if m.Large != "" {
		c.large = large{m.Large, len(c.out) - (len(m.Payload) - m.LargeAt)}
	}
	if c.o.Tap != nil {
		c.o.Tap(publishEvent(m, id, size))
	}
	return id, size, nil
}

// Subscribe subscribes with QoS 1 and waits for the SUBACK. The error is a *ReasonError if the
// broker refused, a *TooLargeError, the cause of ctx, the reason why the connection ended, or a
// plain error if a filter is too long or the broker granted only QoS 0.
func (c *Conn) Subscribe(ctx context.Context, filters ...string) error {
	granted := make(chan error, 1)
	cp, err := c.newSubscribe(filters, granted)
	if err != nil {
		return err
	}
	if err := c.send(cp); err != nil {
		c.mu.Lock()
		c.pending.Remove(cp.PacketID())
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

// newSubscribe returns a SUBSCRIBE and adds it to c.pending. The broker's answer, or the reason why
// the connection ended, is sent to granted.
func (c *Conn) newSubscribe(filters []string, granted chan<- error) (*packets.ControlPacket, error) {
	cp := packets.NewControlPacket(packets.SUBSCRIBE)
	p := cp.Content.(*packets.Subscribe)
	for _, f := range filters {
		if err := checkLength("topic filter", len(f)); err != nil {
			return nil, err
		}
		p.Subscriptions = append(p.Subscriptions, packets.SubOptions{Topic: f, QoS: 1})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.PacketID = c.pending.Add(pending{packet: packets.SUBACK, filters: filters, done: func(err error) { granted <- err }})
	return cp, nil
}

// send queues packets so that they go out in one write, and wakes the writer.
func (c *Conn) send(cps ...*packets.ControlPacket) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		return err
	}
	if err := c.enqueue(cps...); err != nil {
		return err
	}
	c.Flush()
	return nil
}

// enqueue appends packets to out. The caller holds c.mu.
func (c *Conn) enqueue(cps ...*packets.ControlPacket) error {
	for _, cp := range cps {
		before := len(c.out)
		out, err := appendPacket(c.out, cp, c.limits.MaxPacketSize)
		if err != nil {
			return err
		}
		c.out = out
		if c.o.Tap != nil {
			c.o.Tap(newEvent(cp, len(out)-before, true))
		}
	}
	return nil
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
		l := c.large
		buf, c.out, c.large = c.out, buf[:0], large{}
		if c.ping {
			buf = slices.Insert(buf, 0, packets.PINGREQ<<4, 0)
			l.at += 2
		}
		c.acks, c.ping = 0, false
		c.wakeWaiting()
		last := c.closing
		c.mu.Unlock()
		if err := c.writeWith(buf, l); err != nil {
			return c.writeError(err)
		}
		if last {
			c.drain()
			return ErrClosed
		}
		if cap(buf) > ReusedSize {
			buf = nil
		}
	}
}

// piece is the largest number of bytes in a write.
const piece = 256 << 10

// writeWith writes buf with l inserted. It copies l in pieces, so that a long text takes no memory twice.
func (c *Conn) writeWith(buf []byte, l large) error {
	if l.text == "" {
		return c.write(buf)
	}
	err := c.write(buf[:l.at])
	part := make([]byte, piece)
	for text := l.text; err == nil && text != ""; {
		n := copy(part, text)
		err, text = c.write(part[:n]), text[n:]
	}
	if err == nil {
		err = c.write(buf[l.at:])
	}
	return err
}

// write writes buf in pieces and updates c.sent after each piece, because a large packet on a
// slow line can take longer than a keep-alive interval.
func (c *Conn) write(buf []byte) error {
	c.sent.Store(int64(time.Since(c.started))) // before writing, so that IsSending is true at once
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

// writeError returns the error of a failed write, after the reader has had the time to read the
// broker's last packet. If that packet gives a reason, the connection ends with that reason. A
// broker that refuses the client sends a reason and closes the connection, and our next write may
// fail before the reader sees the reason. A write that failed because Close limited it has no reason
// to wait for.
func (c *Conn) writeError(err error) error {
	const grace = 2 * time.Second
	if !errors.Is(err, os.ErrDeadlineExceeded) && c.nc.SetReadDeadline(time.Now().Add(grace)) == nil {
		<-c.read
	}
	return &LostError{err}
}

// drain waits, after DISCONNECT, for the outstanding acknowledgements or for the broker to
// close the connection; the deadline that Close sets limits the wait. Without drain, a PUBACK
// that arrives at the closed socket would cause a reset, which discards unsent data.
func (c *Conn) drain() {
	c.mu.Lock()
	c.checkAcked()
	c.mu.Unlock()
	select {
	case <-c.acked:
		return
	default:
	}
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		select {
		case <-c.read:
		case <-c.acked:
		}
	}
}

// checkAcked closes c.acked if the connection is closing and no packet waits for an
// acknowledgement. The caller holds c.mu.
func (c *Conn) checkAcked() {
	if !c.closing || c.pending.Len() > 0 {
		return
	}
	select {
	case <-c.acked:
	default:
		close(c.acked)
	}
}
