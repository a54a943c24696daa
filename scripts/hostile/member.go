package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// A member is a client of a soak. It has one session, and publishes on one connection at a time.
type member struct {
	fleet   *fleet
	id      string
	number  int
	address string
	rate    float64
	random  *rand.Rand // used only by the goroutine of live
	listens map[int]byte
	shares  bool
	last    *line

	mu           sync.Mutex
	current      *line // packets on earlier connections are ignored
	sequence     int
	nextID       uint16
	sent         []*publication  // not yet acknowledged, in the order of sending
	unreleased   map[uint16]bool // packet ids of received messages with QoS 2, before PUBREL
	acknowledged map[int]byte    // QoS of the client's acknowledged messages, by sequence
	seen         map[int]*record // by number of the publisher
	seenShared   map[int]*record
	violations   []string
}

// A publication is a message that was sent with QoS 1 or 2.
type publication struct {
	packet   *packets.Publish
	sequence int
	released bool // PUBREC was received
}

// A record is what a client received from one publisher.
type record struct {
	times   map[int]int // how often each sequence was received
	highest [3]int      // highest sequence, by the QoS with which the publisher sent
}

func (c *member) recordIn(all *map[int]*record, publisher int) *record {
	if *all == nil {
		*all = make(map[int]*record)
	}
	r := (*all)[publisher]
	if r == nil {
		r = &record{times: make(map[int]int)}
		(*all)[publisher] = r
	}
	return r
}

func (c *member) record(publisher int) *record { return c.recordIn(&c.seen, publisher) }
func (c *member) shared(publisher int) *record { return c.recordIn(&c.seenShared, publisher) }

func (c *member) violation(format string, args ...any) {
	c.violations = append(c.violations, c.id+": "+fmt.Sprintf(format, args...))
}

func (c *member) unfinished() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sent)
}

// live repeatedly connects, publishes, and ends the connection in a random way. It returns when
// stop is closed.
func (c *member) live(stop <-chan struct{}) {
	r := c.random
	var old *line
	for {
		l, err := c.connect(false)
		if err != nil {
			c.mu.Lock()
			c.violation("connect: %v", err)
			c.mu.Unlock()
			return
		}
		if old != nil {
			c.fleet.counts.takeOvers.Add(1)
			old.closed()
			old = nil
		}
		c.publishFor(l, between(r, 100*time.Millisecond, 6*time.Second), stop)
		select {
		case <-stop:
			l.disconnect()
			return
		default:
		}
		switch r.IntN(5) {
		case 0:
			l.disconnect()
		case 1, 2:
			c.fleet.counts.cuts.Add(1)
			l.cut(r)
		case 3:
			old = l // the next connection takes this one over
			continue
		case 4: // stop reading; then the next connection takes this one over
			c.fleet.counts.stalls.Add(1)
			l.stall(between(r, 100*time.Millisecond, 2*time.Second), stop)
			old = l
			continue
		}
		select {
		case <-stop:
			return
		case <-time.After(between(r, 0, 2*time.Second)):
		}
	}
}

// publishFor publishes to the client's own topic for d, or until l ends or stop is closed.
func (c *member) publishFor(l *line, d time.Duration, stop <-chan struct{}) {
	r := c.random
	for end := time.After(d); ; {
		select {
		case <-time.After(time.Duration(r.ExpFloat64() / c.rate * float64(time.Second))):
		case <-end:
			return
		case <-l.done:
			return
		case <-stop:
			return
		}
		const window = 50
		if c.unfinished() < window {
			l.publish(byte(r.IntN(3)), r)
		}
	}
}

// A line is one connection.
type line struct {
	c       *member
	conn    net.Conn
	done    chan struct{} // closed when the reader has ended
	stopped chan struct{} // closed to stop the reader
	pong    chan struct{} // closed by PINGRESP
	mu      sync.Mutex    // guards writes
	reason  string        // how the broker ended the connection; set before done is closed
}

// connect opens a connection, and resends the unacknowledged messages. If first is set, it starts a new
// session; otherwise it requires the old one.
func (c *member) connect(first bool) (*line, error) {
	conn, err := net.DialTimeout("tcp", c.address, patience)
	if err != nil {
		return nil, err
	}
	c.fleet.counts.connections.Add(1)
	l := &line{c: c, conn: conn, done: make(chan struct{}), stopped: make(chan struct{}), pong: make(chan struct{})}
	hello := connectPacket(connectOptions{id: c.id, resume: !first, expiry: 3600, receiveMaximum: uint16(1 + len(c.id)*7%40)})
	c.mu.Lock()
	c.current = l
	c.mu.Unlock()
	if err := l.write(hello); err != nil {
		return nil, err
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	in := bufio.NewReaderSize(conn, 16<<10)
	session, err := connected(in)
	if err != nil {
		return nil, err
	}
	if session == first {
		return nil, fmt.Errorf("CONNACK: session present: %v", session)
	}
	conn.SetReadDeadline(time.Time{})
	c.mu.Lock()
	for _, p := range c.sent { // in the order of sending: MQTT 5, 4.6
		if p.released {
			l.send(&packets.Pubrel{PacketID: p.packet.PacketID, Properties: &packets.Properties{}})
			continue
		}
		p.packet.Duplicate = true
		l.send(p.packet)
	}
	c.mu.Unlock()
	go l.read(in)
	return l, nil
}

func (l *line) write(packet []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn.SetWriteDeadline(time.Now().Add(patience))
	_, err := l.conn.Write(packet)
	return err
}

// send writes a packet. It ignores errors: the reader notices when the connection ends.
func (l *line) send(p io.WriterTo) { _ = l.write(encoded(p)) }

func soakTopic(number int) string { return fmt.Sprintf("soak/%d", number) }

// subscribe adds the session's subscriptions, and waits until the broker has them.
func (l *line) subscribe() error {
	p := &packets.Subscribe{PacketID: 1, Properties: &packets.Properties{}}
	for number, qos := range l.c.listens {
		p.Subscriptions = append(p.Subscriptions, packets.SubOptions{Topic: soakTopic(number), QoS: qos})
	}
	l.send(p)
	if l.c.shares { // an identifier distinguishes the messages of this subscription
		id := sharedIdentifier
		l.send(&packets.Subscribe{PacketID: 2, Properties: &packets.Properties{SubscriptionIdentifier: &id},
			Subscriptions: []packets.SubOptions{{Topic: "$share/group/soak/+", QoS: 2}}})
	}
	l.send(&packets.Pingreq{}) // the broker answers it after the SUBSCRIBEs
	select {
	case <-l.done:
		return errors.New("the connection ended while subscribing: " + l.reason)
	case <-l.pong:
		return nil
	case <-time.After(patience):
		return errors.New("the broker did not answer SUBSCRIBE and PINGREQ")
	}
}

const sharedIdentifier = 7

// publish sends a message whose payload begins with the publisher's number, sequence and QoS.
func (l *line) publish(qos byte, r *rand.Rand) {
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequence++
	payload := fmt.Sprintf("%d %d %d ", c.number, c.sequence, qos)
	if chance(r, 20) {
		payload += strings.Repeat("x", r.IntN(20_000))
	}
	p := &packets.Publish{Topic: soakTopic(c.number), QoS: qos, Retain: chance(r, 50), Payload: []byte(payload), Properties: &packets.Properties{}}
	if qos > 0 {
		for p.PacketID == 0 {
			c.nextID++
			if !slices.ContainsFunc(c.sent, func(other *publication) bool { return other.packet.PacketID == c.nextID }) {
				p.PacketID = c.nextID
			}
		}
		c.sent = append(c.sent, &publication{packet: p, sequence: c.sequence})
	}
	c.fleet.counts.published.Add(1)
	l.send(p)
}

// read answers packets until the connection ends.
func (l *line) read(in io.Reader) {
	defer close(l.done)
	for {
		packet, err := packets.ReadPacket(in)
		select {
		case <-l.stopped:
			return
		default:
		}
		if err != nil {
			l.reason = err.Error()
			return
		}
		if d, ok := packet.Content.(*packets.Disconnect); ok {
			l.reason = fmt.Sprintf("DISCONNECT 0x%02x", d.ReasonCode)
			if d.ReasonCode != packets.DisconnectSessionTakenOver {
				l.c.mu.Lock()
				l.c.violation("%s %s", l.reason, d.Properties.ReasonString)
				l.c.mu.Unlock()
			}
			return
		}
		l.handle(packet)
	}
}

func (l *line) handle(packet *packets.ControlPacket) {
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != l {
		return
	}
	none := &packets.Properties{}
	switch p := packet.Content.(type) {
	case *packets.Publish:
		switch p.QoS {
		case 0:
			c.note(p)
		case 1:
			c.note(p)
			l.send(&packets.Puback{PacketID: p.PacketID, Properties: none})
		case 2:
			if !c.unreleased[p.PacketID] {
				c.unreleased[p.PacketID] = true
				c.note(p)
			}
			l.send(&packets.Pubrec{PacketID: p.PacketID, Properties: none})
		}
	case *packets.Pubrel:
		delete(c.unreleased, p.PacketID)
		l.send(&packets.Pubcomp{PacketID: p.PacketID, Properties: none})
	case *packets.Puback:
		c.finish(p.PacketID, p.ReasonCode, 1)
	case *packets.Pubrec:
		if p.ReasonCode >= 0x80 {
			c.finish(p.PacketID, p.ReasonCode, 2)
			return
		}
		for _, s := range c.sent {
			if s.packet.PacketID == p.PacketID {
				s.released = true
			}
		}
		l.send(&packets.Pubrel{PacketID: p.PacketID, Properties: none})
	case *packets.Pubcomp:
		c.finish(p.PacketID, 0, 2)
	case *packets.Suback:
		for _, code := range p.Reasons {
			if code >= 0x80 {
				c.violation("SUBACK 0x%02x", code)
			}
		}
	case *packets.Pingresp:
		close(l.pong)
	}
}

// finish ends the exchange of a message that the client published. code is the reason code of the
// broker's acknowledgement.
func (c *member) finish(id uint16, code, qos byte) {
	i := slices.IndexFunc(c.sent, func(p *publication) bool { return p.packet.PacketID == id })
	if i < 0 {
		return // the message was acknowledged twice, on two connections
	}
	p := c.sent[i]
	c.sent = slices.Delete(c.sent, i, i+1)
	if code >= 0x80 {
		c.fleet.counts.refused.Add(1)
		return
	}
	if c.acknowledged == nil {
		c.acknowledged = make(map[int]byte)
	}
	c.acknowledged[p.sequence] = qos
	c.fleet.counts.acknowledged.Add(1)
}

// note checks a received message. For each publisher, topic and QoS, the first copies of messages
// must arrive in the order in which they were published (MQTT 5, 4.6).
func (c *member) note(p *packets.Publish) {
	var publisher, sequence int
	var qos byte
	if _, err := fmt.Sscanf(string(p.Payload), "%d %d %d ", &publisher, &sequence, &qos); err != nil {
		c.violation("a message that nobody sent: %.40q", p.Payload)
		return
	}
	c.fleet.counts.received.Add(1)
	r := c.record(publisher)
	isShared := p.Properties.SubscriptionIdentifier != nil && *p.Properties.SubscriptionIdentifier == sharedIdentifier
	if isShared {
		r = c.shared(publisher)
	}
	r.times[sequence]++
	if r.times[sequence] > 1 {
		c.fleet.counts.duplicates.Add(1)
		if p.QoS == 0 && qos != 1 { // a publisher may resend a message with QoS 1
			c.violation("message %d of %d, QoS %d, came twice at QoS 0", sequence, publisher, qos)
		}
		return
	}
	switch {
	case isShared:
		return // a message that another member left unacknowledged arrives late
	case p.QoS == 0 && qos == 1:
		// A message that was lost at QoS 0 arrives late if its publisher resends it on a new
		// connection.
		return
	}
	if highest := &r.highest[qos]; sequence < *highest {
		c.violation("message %d of %d, QoS %d, came after %d", sequence, publisher, qos, *highest)
	} else {
		*highest = sequence
	}
}

// disconnect sends DISCONNECT and keeps the session.
func (l *line) disconnect() {
	l.send(&packets.Disconnect{Properties: &packets.Properties{}})
	l.closed()
}

// closed waits until the broker has closed the connection. A timeout is a violation.
func (l *line) closed() {
	select {
	case <-l.done:
	case <-time.After(patience):
		l.c.mu.Lock()
		l.c.violation("the broker does not close a connection")
		l.c.mu.Unlock()
	}
	l.conn.Close()
	<-l.done
}

// cut breaks the connection with packets in flight in both directions: the broker may have
// received messages whose acknowledgements are lost.
func (l *line) cut(r *rand.Rand) {
	close(l.stopped)
	for range r.IntN(5) {
		l.publish(byte(r.IntN(3)), r)
	}
	if chance(r, 3) {
		l.conn.(*net.TCPConn).SetLinger(0) // packets in the send buffer are lost too
	}
	l.conn.Close()
	<-l.done
}

// stall blocks the reader for d, or until stop is closed.
func (l *line) stall(d time.Duration, stop <-chan struct{}) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	select {
	case <-time.After(d):
	case <-stop:
	}
}

// end ends the session.
func (l *line) end() {
	expiry := uint32(0)
	l.c.mu.Lock()
	l.send(&packets.Publish{Topic: soakTopic(l.c.number), Retain: true, Properties: &packets.Properties{}}) // removes the retained message
	l.c.mu.Unlock()
	l.send(&packets.Disconnect{Properties: &packets.Properties{SessionExpiryInterval: &expiry}})
	l.closed()
}
