package broker

import (
	"math"
	"slices"
	"time"
)

// A session is what the broker keeps of a client (MQTT 5, 4.1).
type session struct {
	b      *Broker
	id     string
	client *Client // nil: away
	expiry uint32  // in seconds; 0: the session ends with the connection
	subs   map[string]*subscription

	received map[uint16]struct{} // ids of messages with QoS 2 that are not released
	window   window
	pending  backlog
	held     int // bytes of the messages in both, about

	will    *will
	willDue *Timer // of a client that is away
	ends    *Timer
}

// neverExpires is a Session Expiry Interval (MQTT 5, 3.1.2.11.2).
const neverExpires = math.MaxUint32

func (b *Broker) newSession(id string) *session {
	s := &session{b: b, id: id, subs: make(map[string]*subscription), received: make(map[uint16]struct{})}
	b.sessions[id] = s
	b.charge(sessionOverhead + len(id))
	return s
}

// wake ends the absence of the session's client. A will that waited is not sent
// [MQTT-3.1.3-9]: the connection brings its own, or none.
func (s *session) wake() {
	s.b.Cancel(s.ends)
	s.b.Cancel(s.willDue)
	s.ends, s.willDue = nil, nil
	s.window.again = s.window.lo
}

// detach ends the client's time with its session.
func (c *Client) detach() {
	s, b := c.session, c.b
	b.changed = true
	if s == nil {
		return
	}
	c.session, s.client = nil, nil
	b.stats.Clients--
	if b.opts.Disconnected != nil {
		b.opts.Disconnected(c)
	}
	s.prune(func(d *delivery) bool { return !d.transient })
	for place := s.window.lo; place < s.window.hi; place++ {
		if d := s.window.at(place); d.state == sent && d.transient {
			s.finish(place)
		}
	}
	if s.expiry == 0 {
		b.endSession(s)
		return
	}
	if s.expiry != neverExpires {
		s.ends = b.At(b.now().Add(time.Duration(s.expiry)*time.Second), func() { b.endSession(s) })
	}
	if s.will == nil {
		return
	}
	if s.will.delay == 0 {
		s.sendWill()
		return
	}
	s.willDue = b.At(b.now().Add(time.Duration(s.will.delay)*time.Second), s.sendWill)
}

// endSession forgets a session whose client is away.
func (b *Broker) endSession(s *session) {
	b.Cancel(s.ends)
	b.Cancel(s.willDue)
	b.changed = true
	for _, sub := range s.subs {
		b.removeSubscription(sub)
	}
	delete(b.sessions, s.id)
	b.charge(-sessionOverhead - len(s.id) - receivedOverhead*len(s.received))
	s.sendWill() // [MQTT-3.1.2-8]: at the latest now
	s.passOn()
}

// passOn gives the messages of shared subscriptions that the session did not finish to
// other members (MQTT 5, 4.8.2): those with QoS 1, and those that were not sent yet. What
// was sent with QoS 2 must not go to anybody else [MQTT-4.8.2-5].
func (s *session) passOn() {
	for place := s.window.lo; place < s.window.hi; place++ {
		if d := s.window.at(place); d.state == sent && d.group != nil && d.qos == 1 && d.msg != nil {
			s.b.deliverShared(d.group, d.msg)
		}
	}
	for s.window.lo < s.window.hi {
		s.finish(s.window.lo)
	}
	for s.pending.len() > 0 {
		if d := s.dequeue(); d.group != nil {
			s.b.deliverShared(d.group, d.msg)
		}
	}
}

// outcome is what became of one delivery.
type outcome int

const (
	delivered outcome = iota // sent, or waiting to be
	notKept                  // QoS 0, or a session that does not last, without its client
	tooLarge                 // for the client
	noRoom                   // in the session of a client that is away
)

// deliver sends a message to a session's client, or keeps it.
func (s *session) deliver(d *delivery) outcome {
	c := s.client
	switch {
	case c == nil && (d.qos == 0 || d.transient || s.expiry == 0):
		return notKept
	case c == nil:
		return s.keep(d)
	case d.qos == 0:
		if !c.room() {
			return notKept
		}
		if !c.appendPublish(d, 0, false) {
			return tooLarge
		}
		return delivered
	case c.quota > 0 && s.pending.len() == 0 && s.window.again == s.window.hi && !s.window.full():
		if !c.room() {
			return s.deliver(d) // the client is away now
		}
		return s.launch(d)
	case !c.fits(d):
		return tooLarge
	case !c.room():
		return s.deliver(d)
	}
	s.enqueue(*d)
	return delivered
}

// keep is for a client that is away.
func (s *session) keep(d *delivery) outcome {
	o := &s.b.opts
	full := func() bool {
		return s.pending.len()+s.window.busy >= o.Queue || s.held >= o.QueueBytes ||
			!s.b.affords(deliveryOverhead+d.msg.cost())
	}
	if now := s.b.now(); full() && s.pending.mayBeOver(now) {
		s.prune(func(d *delivery) bool { return !d.msg.over(now) })
	}
	if full() {
		s.b.log.Warn("the session is full", "client", s.id)
		return noRoom
	}
	s.enqueue(*d)
	return delivered
}

// launch sends a message with QoS 1 or 2. What the message says is needed again only if
// the session outlives the connection, or other members of a group may get it.
func (s *session) launch(d *delivery) outcome {
	c := s.client
	if !c.appendPublish(d, identifier(s.window.hi), false) {
		return tooLarge
	}
	flying, _ := s.window.add(d)
	if s.expiry == 0 && d.group == nil {
		flying.transient = true
	}
	if flying.transient {
		flying.msg = nil
	} else {
		flying.msg = d.msg.keep()
	}
	s.charge(flying)
	c.quota--
	return delivered
}

// pump sends what the client may have: first what was sent in an earlier connection and
// not finished, in its order [MQTT-4.4.0-1], then what waits.
func (s *session) pump() {
	w := &s.window
	for c := s.client; c != nil && c.session == s; {
		switch {
		case w.again < w.hi:
			place := w.again
			d := w.at(place)
			switch {
			case d.state == finished:
			case d.state == released:
				c.ack(typePubrel, identifier(place), Success)
			case c.quota == 0:
				return
			case !c.room():
				return
			case c.appendPublish(d, identifier(place), true):
				c.quota--
			default: // larger than this connection takes
				s.finish(place)
			}
			w.again = max(place+1, w.lo)
		case s.pending.len() > 0 && c.quota > 0 && !w.full():
			d := s.dequeue()
			if d.msg.over(s.b.now()) { // [MQTT-3.3.2-5]
				continue
			}
			s.launch(&d)
		default:
			return
		}
	}
}

// acknowledgement takes PUBACK, PUBREC, PUBREL or PUBCOMP (MQTT 5, 4.3).
func (c *Client) acknowledgement(kind byte, body []byte) *Error {
	p, err := decodeAck(c.Version, body)
	if err == nil {
		err = checkAckCode(kind, p.code)
	}
	if err != nil {
		return err
	}
	s := c.session
	if kind == typePubrel {
		code := byte(packetIDNotFound)
		if _, ok := s.received[p.id]; ok {
			code = Success
			delete(s.received, p.id)
			s.b.charge(-receivedOverhead)
			c.unacked = max(0, c.unacked-1) // the message may have come in an earlier connection
		}
		c.ack(typePubcomp, p.id, code) // [MQTT-4.3.3-11]
		return nil
	}
	place, found := s.window.find(p.id)
	if !found {
		if kind == typePubrec {
			c.ack(typePubrel, p.id, packetIDNotFound)
		}
		return nil // a repetition
	}
	d := s.window.at(place)
	switch {
	case (kind == typePuback) != (d.qos == 1), kind == typePubcomp && d.state != released:
		return violation("an acknowledgement that does not fit the QoS of the message")
	case kind == typePubrec && p.code < UnspecifiedError:
		d.state = released // [MQTT-4.3.3-4]
		s.letGo(d)
		c.ack(typePubrel, p.id, Success)
		return nil
	}
	if s.finish(place) && c.quota < c.mayHave {
		c.quota++
	}
	s.pump()
	return nil
}

// deliverShared sends a message to one member of a shared subscription: to one that can
// take it at once, or else to one that is connected, or else to one whose session keeps
// it. The members take turns.
func (b *Broker) deliverShared(g *group, m *message) outcome {
	last := notKept
	for _, wanted := range []func(*subscription) bool{
		func(sub *subscription) bool {
			c := sub.session.client
			return c != nil && (min(m.qos, sub.qos) == 0 || c.quota > 0 && sub.session.pending.len() == 0)
		},
		func(sub *subscription) bool { return sub.session.client != nil },
		func(sub *subscription) bool { return sub.session.client == nil },
	} {
		for range len(g.members) {
			if len(g.members) == 0 {
				return last
			}
			sub := g.members[g.turn%len(g.members)]
			g.turn = (g.turn + 1) % len(g.members)
			if !wanted(sub) {
				continue
			}
			d := delivery{msg: m, group: g, qos: min(m.qos, sub.qos), retain: m.retain && sub.asPublished}
			if sub.id != 0 {
				d.ids = []int{sub.id}
			}
			if last = sub.session.deliver(&d); last == delivered {
				return delivered
			}
		}
	}
	return last
}

// removeSubscription ends a subscription, but for the messages that wait already.
func (b *Broker) removeSubscription(sub *subscription) {
	n := sub.at
	isThis := func(other *subscription) bool { return other == sub }
	if g := sub.group; g != nil {
		g.members = slices.DeleteFunc(g.members, isThis)
		if len(g.members) == 0 {
			n.groups = slices.DeleteFunc(n.groups, func(other *group) bool { return other == g })
		}
	} else {
		n.subs = slices.DeleteFunc(n.subs, isThis)
	}
	delete(sub.session.subs, sub.filter)
	n.prune()
	b.charge(-sub.cost())
	b.generation++
	b.stats.Subscriptions--
	b.countSys(sub.filter, -1)
}
