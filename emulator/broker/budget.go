package broker

// What clients make the broker keep is charged to one budget, Options.MaxBytes, beside the
// limits of each kind. It is about right: strings and buffers by their length, structures and
// maps by a flat rate.
const (
	sessionOverhead      = 1000
	subscriptionOverhead = 200
	levelOverhead        = 350 // of a level of a filter or retained topic
	deliveryOverhead     = 64
	receivedOverhead     = 16 // an identifier in session.received
)

// charge adds to what is kept; n may be negative.
func (b *Broker) charge(n int) { b.kept += n }

// affords reports whether n more bytes may be kept.
func (b *Broker) affords(n int) bool { return b.kept+n <= b.opts.MaxBytes }

// charge charges a delivery that waits or is under way. The message itself counts once,
// however many sessions keep it.
func (s *session) charge(d *delivery) {
	s.b.charge(deliveryOverhead)
	if d.msg != nil {
		if d.msg.holders == 0 {
			s.b.charge(d.msg.cost())
		}
		d.msg.holders++
		s.held += d.msg.cost()
	}
}

// discharge takes back what charge did.
func (s *session) discharge(d *delivery) {
	s.b.charge(-deliveryOverhead)
	s.letGo(d)
}

// letGo takes back what charge did for the message alone, which the delivery no longer needs.
func (s *session) letGo(d *delivery) {
	if d.msg == nil {
		return
	}
	s.held -= d.msg.cost()
	if d.msg.holders--; d.msg.holders == 0 {
		s.b.charge(-d.msg.cost())
	}
	d.msg = nil
}

// enqueue has a delivery wait.
func (s *session) enqueue(d delivery) {
	d.msg = d.msg.keep()
	s.charge(&d)
	s.pending.push(d)
}

// dequeue takes the delivery that waits longest.
func (s *session) dequeue() delivery {
	d := s.pending.pop()
	charged := d
	s.discharge(&charged)
	return d
}

// prune removes the waiting deliveries that are not wanted.
func (s *session) prune(wanted func(*delivery) bool) {
	s.pending.filter(func(d *delivery) bool {
		if wanted(d) {
			return true
		}
		charged := *d
		s.discharge(&charged)
		return false
	})
}

// finish forgets a delivery that was sent. It reports whether it had been sent in this
// connection.
func (s *session) finish(place uint64) bool {
	s.discharge(s.window.at(place))
	return s.window.finish(place)
}

// setWill replaces the session's will; nil: none.
func (s *session) setWill(w *will) {
	if s.will != nil {
		s.b.charge(-s.will.msg.cost())
	}
	if s.will = w; w != nil {
		s.b.charge(w.msg.cost())
	}
}

// holds is what the broker keeps in memory for the client's connection, and waits for it to
// acknowledge or read.
func (c *Client) holds() int {
	n := c.queued
	if s := c.session; s != nil {
		n += s.held + deliveryOverhead*(s.pending.len()+s.window.busy)
	}
	return n
}

// greedy reports whether the budget is exhausted and the client has more of it than its share.
// Others go on.
func (c *Client) greedy(bytes int) bool {
	return !c.b.affords(0) && bytes > c.b.opts.MaxBytes/max(1, len(c.b.clients))
}

// queue charges n bytes of the outbox; n may be negative.
func (c *Client) queue(n int) {
	n = max(n, -c.queued) // not all that is small was counted
	c.queued += n
	c.b.charge(n)
}

// buffer charges the memory of packets that are read, beyond what every connection has. It
// reports whether the connection may go on.
func (c *Client) buffer(size int) bool {
	extra := max(0, size-readBuffer)
	if extra == c.buffered {
		return true
	}
	c.b.Lock()
	defer c.b.Unlock()
	c.b.charge(extra - c.buffered)
	grown := extra > c.buffered
	c.buffered = extra
	if grown && c.greedy(extra) {
		c.wrong(&Error{QuotaExceeded, "the broker's memory for packets is exhausted"})
		return false
	}
	return true
}

// remember charges topics that aliases stand for.
func (c *Client) remember(n int) {
	c.aliased += n
	c.b.charge(n)
}

// settle takes back all that was charged for the connection.
func (c *Client) settle() {
	c.b.charge(-c.queued - c.buffered - c.aliased)
	c.queued, c.buffered, c.aliased = 0, 0, 0
}
