package broker

import (
	"bytes"
	"iter"
	"math"
	"strings"
	"time"
)

// A Publish is a message for [Options].Handle. Its bytes are valid until Handle returns.
type Publish struct {
	ID            uint16 // packet identifier; 0 with QoS 0
	QoS           byte
	Retain        bool
	Payload       []byte
	ResponseTopic []byte // empty: none
	Correlation   []byte // Correlation Data; empty: none
	ContentType   []byte
	Expiry        time.Duration // Message Expiry Interval; 0: none

	user []byte // the properties, from the first User Property on
}

// User returns the User Properties in their order.
func (p *Publish) User() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for rest := p.user; len(rest) > 0; {
			if rest[0] != propUser { // they may come between others
				f := fields{body: rest}
				f.property(new(properties), publishProperties)
				rest = rest[f.at:]
				continue
			}
			name, value, n := userProperty(rest)
			if !yield(name, value) {
				return
			}
			rest = rest[n:]
		}
	}
}

// may reports whether the client may publish to a topic, or subscribe to a filter. Topics
// of the broker itself are not for publishing (MQTT 5, 4.7.2).
func (c *Client) may(topic string, write bool) bool {
	if write && strings.HasPrefix(topic, sysPrefix) {
		return false
	}
	return c.b.opts.Authorize == nil || c.b.opts.Authorize(c, topic, write)
}

// publish takes a PUBLISH (MQTT 5, 3.3).
func (c *Client) publish(first byte, body []byte) *Error {
	b, p := c.b, &c.in
	b.stats.MessagesReceived++
	var known []byte
	if n := len(b.opts.Topic); n > 0 && len(body) >= 2+n && string(body[2:2+n]) == b.opts.Topic {
		known = body[2 : 2+n]
	}
	if err := p.decode(c.Version, first, body, known); err != nil {
		return err
	}
	if p.props.seen.has(propTopicAlias) {
		if err := c.resolveAlias(p); err != nil {
			return err
		}
	}
	if hasWildcard(p.props.responseTopic) { // [MQTT-3.3.2-14]
		return violation("a response topic with wildcards")
	}
	s := c.session
	if p.qos == 2 {
		if _, again := s.received[p.id]; again { // [MQTT-4.3.3-10]
			c.ack(typePubrec, p.id, Success)
			return nil
		}
	}
	if p.qos > 0 && c.Version == version5 && c.unacked >= int(b.opts.ReceiveMaximum) {
		return &Error{receiveMaxExceeded, "more messages than the Receive Maximum are not acknowledged"} // MQTT 5, 3.3.4
	}
	if p.qos > 0 {
		c.unacked++
	}
	code := c.accept(p)
	switch {
	case c.session != s, p.qos == 0, p.qos == 1 && code == Later:
		return nil
	case p.qos == 1:
		c.Ack(p.id, code)
		return nil
	}
	if code == Later {
		code = Success
	}
	if code < UnspecifiedError {
		s.received[p.id] = struct{}{}
		b.charge(receivedOverhead)
	} else {
		c.unacked--
	}
	c.ack(typePubrec, p.id, code)
	return nil
}

// Ack sends the PUBACK of a message with QoS 1 for which the handler returned [Later].
func (c *Client) Ack(id uint16, code byte) {
	c.unacked--
	if c.session != nil {
		c.ack(typePuback, id, code)
	}
}

// resolveAlias finds or remembers the topic of a Topic Alias (MQTT 5, 3.3.2.3.4).
func (c *Client) resolveAlias(p *publishPacket) *Error {
	alias := p.props.topicAlias
	if alias == 0 || alias > c.b.opts.TopicAliasMaximum { // [MQTT-3.3.2-8], [MQTT-3.3.2-9]
		return &Error{topicAliasInvalid, "a topic alias that is 0, or larger than the Topic Alias Maximum"}
	}
	if len(p.topic) > 0 {
		if !bytes.Equal(c.topics[alias], p.topic) {
			if c.topics == nil {
				c.topics = make(map[uint16][]byte)
			}
			if !c.b.affords(len(p.topic)) {
				return &Error{QuotaExceeded, "the broker's memory for topic aliases is exhausted"}
			}
			c.remember(len(p.topic) - len(c.topics[alias]))
			c.topics[alias] = bytes.Clone(p.topic)
		}
		return nil
	}
	topic, ok := c.topics[alias]
	if !ok {
		return violation("a topic alias that was not defined")
	}
	p.topic = topic
	return nil
}

// accept gives a message to those whom it is for, and returns the reason code of its
// acknowledgement.
func (c *Client) accept(p *publishPacket) byte {
	b := c.b
	handled := b.opts.Topic != "" && string(p.topic) == b.opts.Topic
	if handled {
		if b.opts.Authorize != nil && !c.may(b.opts.Topic, true) {
			return NotAuthorized
		}
		return c.handle(p)
	}
	r := b.route(p.topic)
	if !c.may(r.topic, true) {
		b.log.Info("not authorized to publish", "client", c.ID, "topic", r.topic)
		return NotAuthorized
	}
	m := &c.live
	*m = message{topic: r.topic, payload: p.payload, qos: p.qos, retain: p.retain}
	if p.props.seen.has(propMessageExpiry) {
		m.expires, m.expiry, m.received = true, p.props.messageExpiry, b.now()
	}
	if m.props = p.props.raw; m.expires || p.props.seen.has(propTopicAlias) {
		c.props = p.props.passedOn(c.props[:0])
		m.props = c.props
	}
	if m.retain && !b.retain(m) {
		return QuotaExceeded
	}
	return b.spread(m, r, c.session).code()
}

func (c *Client) handle(p *publishPacket) byte {
	h := &c.handed
	*h = Publish{
		ID: p.id, QoS: p.qos, Retain: p.retain, Payload: p.payload, ResponseTopic: p.props.responseTopic,
		Correlation: p.props.correlation, ContentType: p.props.contentType,
		Expiry: time.Duration(p.props.messageExpiry) * time.Second,
	}
	if p.props.seen.has(propUser) {
		h.user = p.props.raw[p.props.userAt:]
	}
	if c.b.opts.Handle == nil {
		return Success
	}
	c.b.changed = true
	return c.b.opts.Handle(c, h)
}

// A Delivered tells what became of a message.
type Delivered struct {
	Matched  int // clients, and groups of a shared subscription, that are subscribed
	Sent     int // of those, to how many it was sent, or is kept for
	TooLarge int // for how many it was too large
	Refused  int // for how many there was no room
}

func (d *Delivered) count(o outcome) {
	d.Matched++
	switch o {
	case delivered:
		d.Sent++
	case tooLarge:
		d.TooLarge++
	case noRoom:
		d.Refused++
	}
}

// code is the reason code for the publisher.
func (d Delivered) code() byte {
	switch {
	case d.Refused > 0:
		return QuotaExceeded
	case d.Matched == 0:
		return NoMatchingSubscriber
	default:
		return Success
	}
}

// spread sends a message to all who are subscribed to its topic. origin is the session
// of the client that published it, or nil.
func (b *Broker) spread(m *message, r *route, origin *session) (sum Delivered) {
	if r.noLocal && origin != nil {
		r = b.routeWithoutLocal(m.topic, origin)
	}
	targets, groups := r.targets, r.groups // a client that is disconnected changes the route
	for i := range targets {
		t := &targets[i]
		sum.count(t.session.deliver(delivery{
			msg: m, ids: t.ids, qos: min(m.qos, t.qos), retain: m.retain && t.asPublished, // [MQTT-3.3.1-12], [MQTT-3.3.1-13]
		}))
	}
	for _, g := range groups {
		sum.count(b.deliverShared(g, m))
	}
	return sum
}

// A Message is what the broker's owner sends. Properties are encoded by
// [AppendContentType] and the like. Its bytes are the caller's again when the message
// was sent.
type Message struct {
	QoS        byte
	Properties []byte
	Payload    []byte
}

// Publish sends a message to all who are subscribed to its topic, as one of nobody's. It
// wants the lock.
func (b *Broker) Publish(topic []byte, m Message) Delivered {
	r := b.routes[string(topic)] // whose topic is valid
	if r == nil || r.generation != b.generation {
		if !validTopic(topic) {
			return Delivered{}
		}
		r = b.route(topic)
	}
	b.own = message{topic: r.topic, props: m.Properties, payload: m.Payload, qos: m.QoS}
	return b.spread(&b.own, r, nil)
}

// Send sends a message to the client, whether it is subscribed or not. It is not sent
// again in a later connection. Send returns false if the message is larger than the
// client takes.
func (c *Client) Send(topic string, m Message) bool {
	if len(topic) > math.MaxUint16 {
		return false
	}
	if c.session == nil {
		return true
	}
	b := c.b
	b.own = message{topic: topic, props: m.Properties, payload: m.Payload, qos: m.QoS}
	return c.session.deliver(delivery{msg: &b.own, qos: m.QoS, transient: true}) != tooLarge
}
