package broker

import (
	"container/list"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sscli/sscli/internal/shrinkmap"
)

// A session is the state that the broker keeps for a client (MQTT 5, 4.1).
type session struct {
	b      *Broker
	id     string
	user   string  // the session's user; no other user may use the session
	client *Client // nil = away

	who     *Identity // of the client that is connected or was connected last
	ofOwner int       // see Verdict.Memory
	rights  uint64    // Broker.rights when reauthorize began last

	expiry uint32 // in seconds; 0 = the session ends with the connection
	subs   shrinkmap.Map[string, *subscription]

	received shrinkmap.Map[uint16, struct{}] // packet identifiers of QoS 2 messages that wait for PUBREL
	inflight inflight
	pending  queue
	unasked  int  // at most so many messages at the front of pending need mayReceive
	pruning  bool // later, expired messages are removed from pending
	left     bool // messages that end with the connection are still in pending
	held     int  // estimated memory of the messages and identifiers in inflight and pending, in bytes
	places   int  // memory of inflight and pending themselves, in bytes

	will        *will
	willTimer   *Timer        // while the client is away
	expiryTimer *Timer        // while the client is away
	away        *list.Element // in Broker.away; nil = the client is connected
}

// neverExpires is the Session Expiry Interval of a session that never expires (MQTT 5, 3.1.2.11.2).
const neverExpires = math.MaxUint32

func (b *Broker) newSession(who *Identity) *session {
	s := &session{b: b, id: who.ID, user: who.Username, who: who, rights: b.rights}
	b.sessions[s.id] = s
	b.owned[s.user]++
	b.charge(s.cost())
	return s
}

// belongTo gives the session to a client that has logged in, for which the owner keeps memory bytes.
func (s *session) belongTo(who *Identity, memory int) {
	before := s.cost()
	s.b.disown(s)
	s.who, s.user, s.ofOwner = who, who.Username, memory
	s.b.owned[s.user]++
	s.b.charge(s.cost() - before)
}

// disown removes the session from the count of its user's sessions.
func (b *Broker) disown(s *session) {
	if b.owned[s.user]--; b.owned[s.user] == 0 {
		delete(b.owned, s.user)
	}
}

// resume prepares the session for a new connection. A delayed will is not published
// [MQTT-3.1.3-9], because the new CONNECT replaces it.
func (s *session) resume() {
	s.stopTimers()
	s.dropTransient()
	s.b.comeBack(s)
	s.inflight.again, s.unasked = s.inflight.lo, s.pending.len()
}

// dropTransient removes the messages that end with the connection from pending, once after the connection has ended.
func (s *session) dropTransient() {
	if s.left {
		s.left = false
		s.prune(func(d *delivery) bool { return !d.transient })
	}
}

func (s *session) stopTimers() {
	s.b.Cancel(s.expiryTimer)
	s.b.Cancel(s.willTimer)
	s.expiryTimer, s.willTimer = nil, nil
}

// leaveSession detaches a connection that ends from its session. It removes the session, or starts
// its expiry timer. It publishes the will, or starts the will's delay timer.
func (c *Client) leaveSession() {
	s, b := c.session, c.b
	b.changed = true
	if s == nil {
		return
	}
	c.session, s.client = nil, nil
	if c.takenOver != nil {
		close(c.takenOver)
	}
	b.stats.Clients--
	if b.opts.Disconnected != nil {
		b.opts.Disconnected(c)
	}
	if s.expiry == 0 {
		b.removeSession(s)
		return
	}
	if s.left = true; s.pending.len() > maxExamined {
		b.later(s.dropTransient)
	} else {
		s.dropTransient()
	}
	for place := s.inflight.lo; place < s.inflight.hi; place++ {
		if place < s.inflight.lo {
			continue // finish has removed it
		}
		if w := s.inflight.at(place); w.state == sent && w.transient {
			s.finish(place)
		}
	}
	after := func(seconds uint32, do func()) *Timer {
		return b.At(b.Now().Add(time.Duration(seconds)*time.Second), do)
	}
	b.leave(s)
	if s.expiry != neverExpires {
		s.expiryTimer = after(s.expiry, func() { b.removeSession(s) })
	}
	switch {
	case s.will == nil:
	case s.will.delay == 0:
		s.publishWill()
	default:
		s.willTimer = after(s.will.delay, s.publishWill)
	}
}

// receive adds the packet identifier of a QoS 2 message from the client, which is new.
func (s *session) receive(id uint16) {
	s.received.Set(id, struct{}{})
	s.b.charge(receivedOverhead)
}

// forget removes the packet identifier of a QoS 2 message from the client. It returns false if the
// session does not have the identifier.
func (s *session) forget(id uint16) bool {
	_, ok := s.received.M[id]
	if ok {
		s.received.Delete(id)
		s.b.charge(-receivedOverhead)
	}
	return ok
}

// removeSession removes a session whose client is away.
func (b *Broker) removeSession(s *session) {
	s.stopTimers()
	b.comeBack(s)
	b.changed = true
	s.expiry = 0 // keep no more messages for the session
	if len(s.subs.M) <= maxStepTargets {
		for _, sub := range slices.Collect(maps.Values(s.subs.M)) {
			b.removeSubscription(sub)
		}
	} else {
		b.later(s.unsubscribe)
	}
	delete(b.sessions, s.id)
	b.disown(s)
	b.charge(-s.cost() - receivedOverhead*len(s.received.M))
	s.received = shrinkmap.Map[uint16, struct{}]{}
	s.publishWill() // [MQTT-3.1.2-8]: not later than the session's end
	if s.isLongToRedistribute() {
		b.later(func() {
			locked := time.Now()
			s.redistribute(&locked)
		})
	} else {
		s.redistribute(nil)
	}
}

// isLongToRedistribute reports whether redistribute must run in steps: if there are many messages, or members that may
// get them.
func (s *session) isLongToRedistribute() bool {
	n := s.pending.len() + s.inflight.len()
	for _, p := range []*places{&s.inflight.places, &s.pending.places} {
		for place := p.lo; place < p.hi && n <= maxStepTargets; place++ {
			if g := s.b.groups.get(p.at(place).group); g != nil {
				n += len(g.members)
			}
		}
	}
	return n > maxStepTargets
}

// unsubscribe removes the subscriptions of a removed session in steps.
func (s *session) unsubscribe() {
	var locked time.Time
	for _, sub := range slices.Collect(maps.Values(s.subs.M)) {
		s.b.yieldAfter(&locked)
		s.b.removeSubscription(sub)
	}
}

// redistribute sends the unfinished messages of shared subscriptions to other members (MQTT 5,
// 4.8.2): messages with QoS 1, and messages that were not sent yet. A message that was sent with
// QoS 2 must not be sent to another client [MQTT-4.8.2-5]. If locked is not nil, redistribute may unlock the broker,
// see yieldAfter.
func (s *session) redistribute(locked *time.Time) {
	w := &s.inflight
	for place := w.lo; place < w.hi; place++ {
		s.b.yieldAfter(locked)
		if w.at(place).state != sent {
			continue
		}
		if d := s.b.delivery(w.at(place)); d.group != nil && d.qos == 1 && d.msg != nil {
			s.b.deliverShared(d.group, d.msg, locked)
		}
	}
	for w.lo < w.hi {
		s.b.yieldAfter(locked)
		s.finish(w.lo)
	}
	for s.pending.len() > 0 {
		s.b.yieldAfter(locked)
		if d := s.dequeue(); d.group != nil {
			s.b.deliverShared(d.group, d.msg, locked)
		}
	}
	s.inflight, s.pending = inflight{}, queue{}
	s.chargePlaces()
}

// outcome is the result of one delivery.
type outcome int

const (
	delivered outcome = iota // sent or queued
	notKept                  // the client is away, and the message has QoS 0 or is transient, or the session has ended
	tooLarge                 // the message exceeds the client's Maximum Packet Size
	noRoom                   // the client is away, and its session is full
)

// deliver sends a message to the session's client, or keeps it.
func (s *session) deliver(d *delivery) outcome {
	c := s.client
	if c == nil {
		return s.keep(d)
	}
	now := d.qos == 0 || c.quota > 0 && s.pending.len() == 0 && s.inflight.again == s.inflight.hi && !s.inflight.full()
	room := waitingSize + d.ids.cost()
	if now {
		room += d.msg.cost()
	}
	switch {
	case !now && !c.fits(d):
		return tooLarge
	case !c.ensureRoom(room):
		return s.deliver(d) // ensureRoom disconnected the client
	case !now:
		s.enqueue(*d)
		return delivered
	case d.qos > 0:
		return s.send(d)
	case !c.appendPublish(d, 0, false):
		return tooLarge
	}
	return delivered
}

// keep queues a message for a client that is away.
func (s *session) keep(d *delivery) outcome {
	if d.qos == 0 || d.transient || s.expiry == 0 {
		return notKept
	}
	o := &s.b.opts
	full := func() bool {
		return s.pending.len()+s.inflight.count >= o.Queue || s.held >= o.QueueBytes ||
			!s.b.affords(waitingSize+d.ids.cost()+d.msg.cost())
	}
	if full() {
		s.removeExpired(full)
	}
	if full() {
		s.b.log.Warn("the session is full", "client", s.id)
		return noRoom
	}
	s.enqueue(*d)
	return delivered
}

// first returns the message that dequeue removes next.
func (s *session) first() *message { return s.b.messages.get(s.pending.first().msg) }

// maxExamined is the number of messages of one session that may be examined in one step. One takes some 70 ns.
const maxExamined = 512

// removeExpired removes expired messages from pending. If there are many messages, it first removes only the oldest ones,
// while full returns true, and the rest later.
func (s *session) removeExpired(full func() bool) {
	now := s.b.Now()
	if s.pruning || !s.pending.mayHaveExpired(now) {
		return
	}
	prune := func() {
		now := s.b.Now()
		s.prune(func(d *delivery) bool { return !d.msg.expired(now) })
	}
	if s.pending.len() <= maxExamined {
		prune()
		return
	}
	for i := 0; i < maxExamined && full() && s.first().expired(now); i++ {
		s.dequeue()
	}
	if full() {
		s.pruning = true
		s.b.later(func() {
			s.pruning = false
			prune()
		})
	}
}

// send sends a message with QoS 1 or 2. It keeps the message only if the session outlives the
// connection, or if another member of a shared subscription may get it.
func (s *session) send(d *delivery) outcome {
	c := s.client
	if !c.appendPublish(d, identifier(s.inflight.hi), false) {
		return tooLarge
	}
	kept := *d
	kept.transient = d.transient || s.expiry == 0 && d.group == nil
	if kept.transient {
		kept.msg, kept.ids = nil, nil
	} else {
		kept.msg = d.msg.keep()
	}
	s.inflight.add(s.hold(&kept))
	s.chargePlaces()
	c.quota--
	return delivered
}

// sendPending sends as many messages as the client's Receive Maximum permits. Unfinished messages
// of an earlier connection come first, in their original order [MQTT-4.4.0-1], then the messages in
// pending. If memory is exhausted, the messages in pending wait until the outbox was written.
func (s *session) sendPending() {
	w, locked := &s.inflight, time.Time{}
	for c := s.client; c != nil && c.session == s; s.b.yieldAfter(&locked) { // c may leave the session
		switch {
		case w.again < w.hi:
			place := w.again
			state, d := w.at(place).state, s.b.delivery(w.at(place))
			switch {
			case state == finished:
			case state == released:
				c.ack(typePubrel, identifier(place), Success)
			case !s.mayReceive(&d):
				s.finish(place)
			case c.quota == 0, !c.ensureRoom(d.msg.cost()):
				return
			case c.appendPublish(&d, identifier(place), true):
				c.quota--
			default: // the message is larger than this connection accepts
				s.finish(place)
			}
			w.again = max(place+1, w.lo)
		case s.pending.len() > 0 && c.quota > 0 && !w.full():
			if c.paused = c.mustPause(s.first().cost()); c.paused {
				return
			}
			asked := s.unasked == 0
			s.unasked = max(0, s.unasked-1)
			if d := s.dequeue(); !d.msg.expired(s.b.Now()) && (asked || s.mayReceive(&d)) {
				s.send(&d)
			}
		default:
			return
		}
	}
}
