package mqtt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

func (c *Conn) readLoop() error {
	defer close(c.read) // after fail has recorded the reason
	err := c.readPackets()
	c.drained()
	if err != nil {
		c.fail(err)
	}
	return nil
}

// drained calls OnDrained, if set, and then sends the queued PUBACKs, unless they may wait. The reader
// calls drained when it has passed on all messages of one read.
func (c *Conn) drained() {
	const maxHeld = 32
	idle := c.o.OnDrained != nil && c.o.OnDrained()
	if c.acksHeld > 0 && !idle || c.acksHeld > maxHeld {
		c.acksHeld = 0
		c.Flush()
	}
}

// An activityReader reads from the broker and records when bytes arrive. It counts bytes rather
// than packets as signs of life, because a large packet on a slow line can take longer than a
// keep-alive interval.
type activityReader struct {
	c *Conn
}

func (r activityReader) Read(b []byte) (int, error) {
	r.c.drained()
	n, err := r.c.nc.Read(b)
	if n > 0 {
		r.c.received.Store(int64(time.Since(r.c.started)))
	}
	return n, err
}

// readPackets reads packets until the connection ends. It returns the reason, or nil if the writer
// reports the reason.
func (c *Conn) readPackets() error {
	limit := maxRemaining
	if n := c.o.MaxPacketSize; n > 0 {
		limit = int(min(n, maxRemaining))
	}
	r := packetReader{r: bufio.NewReaderSize(activityReader{c}, readBuffer), limit: limit}
	for loggedIn := false; ; {
		in, err := r.next()
		if err == io.EOF && c.isClosing() {
			return nil // as below; comparing types of errors costs each command 0.1 ms
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // Close or writeError set the deadline
		}
		if err != nil {
			if _, malformed := errors.AsType[*MalformedError](err); !malformed && c.isClosing() {
				return nil // the broker closes the connection after our DISCONNECT
			}
			return &LostError{brokerClosed(err)}
		}
		if c.o.Tap != nil {
			c.o.Tap(in.event())
		}
		switch in.kind {
		case packets.CONNACK:
			if loggedIn {
				return &LostError{&MalformedError{Why: "a second CONNACK"}}
			}
			p := in.other.Content.(*packets.Connack)
			if p.ReasonCode >= 0x80 {
				return &ReasonError{Packet: "CONNACK", Code: p.ReasonCode, Text: p.Properties.ReasonString, Reference: p.Properties.ServerReference}
			}
			loggedIn = true
			err = c.handleConnack(p)
		case packets.AUTH:
			p := in.other.Content.(*packets.Auth)
			if !loggedIn {
				return c.authChallenge(p)
			}
			err = c.handleAuth(p)
		case packets.DISCONNECT:
			err = c.disconnectReason(in.other.Content.(*packets.Disconnect))
		default:
			if !loggedIn {
				return &LostError{&MalformedError{Why: in.name() + " before CONNACK"}}
			}
			err = c.handle(in)
		}
		if err != nil {
			return &LostError{err}
		}
	}
}

// handle handles a packet that the broker may send after the login is granted.
func (c *Conn) handle(in *incoming) error {
	switch in.kind {
	case packets.PUBLISH:
		return c.handlePublish(&in.publish)
	case packets.PUBACK:
		return c.handlePuback(in.puback)
	case packets.SUBACK:
		return c.handleSuback(in.other.Content.(*packets.Suback))
	case packets.PINGRESP:
		c.handlePingresp()
		return nil
	}
	return &MalformedError{Why: in.name() + " is not for a client that did not ask for it"}
}

func (c *Conn) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

func (c *Conn) handlePublish(p *Publication) error {
	switch {
	case p.QoS > 1:
		return &MalformedError{Why: "a PUBLISH with QoS 2, which nobody subscribed to"}
	case p.QoS == 1 && p.id == 0:
		return &MalformedError{Why: "a PUBLISH with packet identifier 0"}
	case len(p.Topic) == 0:
		return &MalformedError{Why: "a PUBLISH with a topic alias, which was not granted"}
	}
	if p.QoS == 1 {
		// Acknowledge first, because the callback may cause the connection to be closed.
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

// acknowledge queues a PUBACK. drained wakes the writer after all messages of one read have
// been handed over, so that their PUBACKs go out in one write.
func (c *Conn) acknowledge(id uint16) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		if errors.Is(err, ErrClosed) {
			return nil
		}
		return err
	}
	limit := math.MaxUint16
	if c.o.ReceiveMaximum > 0 {
		limit = int(c.o.ReceiveMaximum)
	}
	if c.acks++; c.acks > limit {
		return &MalformedError{Why: fmt.Sprintf("more than %d messages without PUBACK", limit)}
	}
	before := len(c.out)
	c.out = appendPuback(c.out, id)
	c.acksHeld++
	if c.o.Tap != nil {
		c.o.Tap(Event{Time: time.Now(), Sent: true, Type: "PUBACK", ID: id, Size: len(c.out) - before, Codes: []byte{0}, Detail: reasonDetail("PUBACK", 0, nil)})
	}
	return nil
}

// handlePuback passes the broker's answer to the publish that waits for it.
func (c *Conn) handlePuback(ack puback) error {
	p, err := c.removePending(ack.id, packets.PUBACK, 1)
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

// handleSuback passes the broker's answer to the SUBSCRIBE that waits for it.
func (c *Conn) handleSuback(ack *packets.Suback) error {
	p, err := c.removePending(ack.PacketID, packets.SUBACK, len(ack.Reasons))
	if err != nil || p.done == nil {
		return err
	}
	for i, code := range ack.Reasons {
		if code >= 0x80 {
			p.done(&ReasonError{Packet: "SUBACK", Code: code, Text: ack.Properties.ReasonString, Topic: p.filters[i]})
			return nil
		}
		if code == 0 {
			p.done(ErrQoS0)
			return nil
		}
	}
	p.done(nil)
	return nil
}

// removePending removes and returns the pending packet that an acknowledgement answers. ack is the
// acknowledgement's packet type, and codes is its number of reason codes; the error says that the
// pending packet expects another type or number. If no packet has this id, both results are zero,
// because brokers may repeat acknowledgements.
func (c *Conn) removePending(id uint16, ack byte, codes int) (pending, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pending.Get(id)
	if !ok {
		return pending{}, nil
	}
	if want := max(len(p.filters), 1); ack != p.packet || codes != want {
		return pending{}, &MalformedError{Why: fmt.Sprintf("%s with %d reason codes where a %s with %d was due", packetName(ack), codes, packetName(p.packet), want)}
	}
	c.pending.Remove(id)
	if ack == packets.PUBACK {
		c.inFlight.Add(-1)
		c.wakeWaiting()
	}
	c.checkAcked()
	return p, nil
}
