package broker

import (
	"math/bits"
	"time"
)

// All memory that the broker keeps for clients is charged to one budget, Limits.MaxBytes. The
// limits on single kinds of objects, such as MaxSessions, apply too. Charges are estimates: the
// capacity of a buffer, the length of a string, and a fixed overhead for a structure, map or
// goroutine.
const (
	word                 = bits.UintSize / 8 // size of a pointer in bytes
	connectionOverhead   = 12 << 10          // per client that has logged in, with the first read buffer
	tlsOverhead          = 32 << 10          // per TLS connection, with the buffer for a record of 16 KiB
	webSocketOverhead    = 12 << 10
	sessionOverhead      = 82 * word // with the map of its subscriptions
	subscriptionOverhead = 25 * word
	groupOverhead        = 38 * word
	receivedOverhead     = 11 // per identifier in session.received
	timerOverhead        = 19 * word
	outgoingAliasCost    = 10 * word // per Topic Alias of the broker, in addition to its topic
	incomingAliasCost    = 8 * word  // per Topic Alias of the client, in addition to its topic
)

// charge adds n bytes to the memory in use; n may be negative.
func (b *Broker) charge(n int) {
	if n != 0 {
		b.kept.Add(int64(n))
	}
}

func (b *Broker) affords(n int) bool { return int(b.kept.Load())+n <= b.opts.MaxBytes }

// Reserve charges memory that the broker's owner keeps for clients, in bytes; a negative number
// releases it. If the budget has too little left, Reserve charges nothing and returns false. The
// caller need not hold the lock.
func (b *Broker) Reserve(bytes int) bool {
	if kept := b.kept.Add(int64(bytes)); bytes > 0 && kept > int64(b.opts.MaxBytes) {
		b.kept.Add(-int64(bytes))
		return false
	}
	return true
}

// Release releases memory that Reserve charged, and calls do. What do sends may use the whole reserve, because many
// messages may be due at once for one client. Release requires the lock.
func (b *Broker) Release(bytes int, do func()) {
	b.charge(-bytes)
	b.releasing = true
	do()
	b.releasing = false
}

// cost returns the estimated memory of a session without subscriptions and messages, in bytes.
func (s *session) cost() int { return sessionOverhead + len(s.id) + len(s.user) + s.ofOwner }

// chargePlaces charges the memory of inflight and pending themselves, after one of them has changed.
func (s *session) chargePlaces() {
	if places := s.inflight.cost() + s.pending.cost(); places != s.places {
		s.b.charge(places - s.places)
		s.places = places
	}
}

func (s *session) enqueue(d delivery) {
	d.msg = d.msg.keep()
	s.pending.push(s.hold(&d), d.msg.expires)
	s.chargePlaces()
}

func (s *session) dequeue() delivery {
	w := s.pending.pop()
	d := s.b.delivery(&w)
	s.release(&w)
	s.chargePlaces()
	return d
}

// prune removes from pending the deliveries for which wanted returns false.
func (s *session) prune(wanted func(*delivery) bool) {
	q := &s.pending
	q.soonest = time.Time{}
	for n := q.len(); n > 0; n-- {
		w := q.pop()
		if d := s.b.delivery(&w); wanted(&d) {
			q.push(w, d.msg.expires)
		} else {
			s.release(&w)
		}
	}
	s.chargePlaces()
}

// finish removes a delivery from inflight. It reports whether the delivery was sent on this
// connection.
func (s *session) finish(place uint64) (sent bool) {
	s.release(s.inflight.at(place))
	sent = s.inflight.finish(place)
	s.chargePlaces()
	return sent
}

// setWill replaces the session's will; nil = none.
func (s *session) setWill(w *will) {
	if s.will != nil {
		s.b.charge(-s.will.msg.cost())
	}
	if s.will = w; w != nil {
		s.b.charge(w.msg.cost())
	}
}

// outstanding returns the estimated memory of everything that waits to be sent to the client or
// acknowledged by it, in bytes.
func (c *Client) outstanding() int {
	n := c.queued
	if s := c.session; s != nil {
		n += s.held + s.places
	}
	return n
}

// overShare reports whether to refuse memory to a client. bytes is the size of the memory that the
// client already occupies, and more is the size of the memory that it requests. The client is
// refused if the requested memory does not fit in the budget and the client would exceed its share
// of a reserve: a quarter of the budget, at most maxReserve, divided equally among all connections. Clients within
// their share may continue, so all together can exceed the budget by the reserve.
func (c *Client) overShare(bytes, more int) bool {
	if c.b.releasing {
		return !c.b.affords(more - c.b.reserve())
	}
	return !c.b.affords(more) && bytes+more > c.b.reserve()/max(1, len(c.b.clients))
}

// reserve returns the memory by which clients within their share may exceed the budget, in bytes.
func (b *Broker) reserve() int { return min(b.opts.MaxBytes/4, maxReserve) }

// maxReserve and maxResume bound, in bytes, by how much clients may exceed the budget.
const (
	maxReserve = 20 << 20
	maxResume  = 8 << 20
)

// chargeBuffers charges n bytes of the outbox's buffers, including their unused capacity; n may be
// negative.
func (c *Client) chargeBuffers(n int) {
	n = max(n, -c.charged) // disconnect does not charge DISCONNECT
	c.charged += n
	c.b.charge(n)
}

// chargeReads charges a read buffer of size bytes, except for the first firstBuffer bytes, which
// connectionOverhead includes. If memory is exhausted, it ends the connection and returns false. It
// locks the broker.
func (c *Client) chargeReads(size int) bool {
	extra := max(0, size-firstBuffer)
	if extra == c.buffered && c.reserved == 0 {
		return true
	}
	c.b.Lock()
	defer c.b.Unlock()
	if c.session == nil {
		c.reserved = extra
		if !c.ticket.Reserve(2*extra + c.certificates) { // handleConnect makes a copy
			c.protocolError(&Error{QuotaExceeded, "the broker's memory for clients without a login is exhausted"})
			return false
		}
		return true
	}
	c.b.charge(extra - c.buffered)
	grown := extra > c.buffered
	c.buffered = extra
	if grown && c.overShare(extra, 0) {
		c.protocolError(&Error{QuotaExceeded, "the broker's memory for packets is exhausted"})
		return false
	}
	return true
}

// fixedCost returns the estimated memory of a connection with an empty outbox and its first read
// buffer.
func (c *Client) fixedCost() int {
	cost := connectionOverhead
	if c.tls != nil {
		cost += tlsOverhead + c.certificates
	}
	if c.ws != nil {
		cost += webSocketOverhead
	}
	return cost
}

// chargeAlias charges n bytes for the topics of Topic Aliases. n is negative if a shorter topic replaces
// a longer one.
func (c *Client) chargeAlias(n int) {
	c.aliased += n
	c.b.charge(n)
}

func (c *Client) dischargeAll() {
	if c.closed { // nobody writes the rest of the outbox
		for _, p := range append(c.parts, part{bytes: c.out}) {
			c.free(p.bytes)
		}
		c.parts, c.out = nil, nil
	}
	c.b.charge(-c.charged - c.buffered - c.aliased - c.overhead)
	c.charged, c.queued, c.buffered, c.aliased, c.overhead = 0, 0, 0, 0, 0
}
