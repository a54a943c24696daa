package broker

import (
	"bytes"
	"iter"
	"math"
	"strings"
	"time"
)

// LargePayload is the size, in bytes, of the smallest payload that nobody copies: the packet's buffer is not
// reused. A copy needs fresh memory, and its first use takes up to 2 ms for each MiB, with the broker locked. A
// read buffer of this size holds one packet, at most a third of which is not the payload.
const LargePayload = 1 << 20

// A Publish is a client's PUBLISH (MQTT 5, 3.3), passed to [Options].Handle. The Publish and its
// byte slices are valid until Handle returns. A Payload of LargePayload bytes or more stays valid.
type Publish struct {
	ID            uint16 // packet identifier; 0 with QoS 0
	QoS           byte
	Retain        bool
	Topic         []byte
	Payload       []byte
	ResponseTopic []byte        // empty = none
	Correlation   []byte        // Correlation Data; empty = none
	Expiry        time.Duration // Message Expiry Interval; 0 = none, or 0 s

	props properties
	cache propertyCache
}

// User returns an iterator over the names and values of the User Properties, in packet order.
func (p *Publish) User() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		if !p.props.seen.has(propUser) {
			return
		}
		for rest := p.props.raw[p.props.values[propUser].from-1:]; len(rest) > 0; {
			if rest[0] != propUser { // skip other properties
				size, _ := checkProperty(rest)
				rest = rest[size:]
				continue
			}
			end := stringEnd(rest, 1)
			size := stringEnd(rest, end)
			if !yield(rest[3:end], rest[end+2:size]) {
				return
			}
			rest = rest[size:]
		}
	}
}

// forget drops the references to the packet, so that they do not keep a large read buffer in memory.
func (p *Publish) forget() {
	p.Topic, p.Payload, p.ResponseTopic, p.Correlation, p.props.raw = nil, nil, nil, nil, nil
}

// decode reads a PUBLISH into p and reuses p's memory. A PUBLISH without a topic must have a Topic
// Alias. valid is a topic that is known to be valid, so that decode need not check it; empty = none.
func (p *Publish) decode(version, first byte, body []byte, valid string) *Error {
	d := decoder{body: body}
	p.QoS, p.Retain = first>>1&3, first&1 != 0
	p.Topic, p.ID = d.binary(), 0
	if p.QoS > 0 {
		p.ID = d.packetID()
	}
	if version == version5 {
		if err := p.cache.decode(&p.props, d.take(d.varint())); err != nil {
			d.fail(err)
		}
	}
	p.Payload = body[d.at:]
	p.ResponseTopic, p.Correlation = p.props.bytes(propResponseTopic), p.props.bytes(propCorrelation)
	p.Expiry = time.Duration(p.props.number(propMessageExpiry)) * time.Second
	switch {
	case d.err != nil:
		return d.err
	case string(p.Topic) == valid && valid != "":
	case len(p.Topic) == 0 && !p.props.seen.has(propTopicAlias): // MQTT 5, 3.3.2.1
		return violation("neither a topic nor a topic alias")
	case !validText(p.Topic):
		return invalidText()
	case hasWildcard(p.Topic): // [MQTT-3.3.2-2]
		return &Error{TopicNameInvalid, "a topic with wildcards"}
	}
	return nil
}

// may reports whether a client may publish to a topic (write is true), or subscribe to a filter
// (write is false). Nobody may publish to the broker's own topics (MQTT 5, 4.7.2).
func (b *Broker) may(who *Identity, topic string, write bool) bool {
	if write && strings.HasPrefix(topic, sysPrefix) {
		return false
	}
	return b.opts.Authorize == nil || b.opts.Authorize(who, topic, write)
}

func (c *Client) handlePublish(first byte, body []byte) *Error {
	b, p := c.b, &c.publish
	b.stats.MessagesReceived++
	defer p.forget()
	if err := p.decode(c.Version, first, body, b.opts.Topic); err != nil {
		return err
	}
	if p.props.seen.has(propTopicAlias) {
		if err := c.resolveAlias(p); err != nil {
			return err
		}
	}
	s := c.session
	if p.QoS == 2 {
		if _, again := s.received.M[p.ID]; again { // [MQTT-4.3.3-10]
			c.ack(typePubrec, p.ID, Success)
			return nil
		}
	}
	if p.QoS > 0 {
		if c.Version == version5 && c.unacked >= int(b.opts.ReceiveMaximum) { // MQTT 5, 3.3.4
			return &Error{receiveMaxExceeded, "more unacknowledged messages than the Receive Maximum"}
		}
		c.unacked++
	}
	if p.QoS == 2 {
		// Before accept, which may unlock the broker: if the connection ends meanwhile, the client
		// sends the message again on its next connection.
		s.receive(p.ID)
	}
	code := c.accept(p)
	if p.QoS == 2 {
		if code == Later {
			code = Success
		}
		if code >= UnspecifiedError {
			s.forget(p.ID)
		}
	}
	switch {
	case c.session != s, p.QoS == 0, code == Later:
		return nil
	case p.QoS == 1:
		c.Ack(p.ID, code)
		return nil
	case code >= UnspecifiedError:
		c.unacked--
	}
	c.ack(typePubrec, p.ID, code)
	return nil
}

// Ack sends the PUBACK for a QoS 1 message for which the handler returned [Later]. It does nothing
// if the client has disconnected.
func (c *Client) Ack(id uint16, code byte) {
	c.unacked--
	if c.session != nil {
		c.ack(typePuback, id, code)
	}
}

// resolveAlias handles the Topic Alias of p (MQTT 5, 3.3.2.3.4). If p has a topic, resolveAlias
// assigns the alias to it. Otherwise it sets p.Topic to the alias's topic.
func (c *Client) resolveAlias(p *Publish) *Error {
	alias := uint16(p.props.number(propTopicAlias))
	if alias == 0 || alias > c.b.opts.TopicAliasMaximum { // [MQTT-3.3.2-8], [MQTT-3.3.2-9]
		return &Error{topicAliasInvalid, "a topic alias that is 0, or larger than the Topic Alias Maximum"}
	}
	topic, defined := c.topics[alias]
	switch {
	case len(p.Topic) == 0 && !defined:
		return violation("a topic alias that was not defined")
	case len(p.Topic) == 0:
		p.Topic = topic
	case !bytes.Equal(topic, p.Topic):
		if !c.b.affords(len(p.Topic)) {
			return &Error{QuotaExceeded, "the broker's memory for topic aliases is exhausted"}
		}
		if c.topics == nil {
			c.topics = make(map[uint16][]byte)
			c.chargeAlias(incomingAliasCost * int(c.b.opts.TopicAliasMaximum))
		}
		c.chargeAlias(len(p.Topic) - len(topic))
		c.topics[alias] = bytes.Clone(p.Topic)
	}
	return nil
}

// accept passes a message to the handler or sends it to the topic's subscribers. It returns the
// reason code for PUBACK or PUBREC, or Later. It may unlock the broker.
func (c *Client) accept(p *Publish) byte {
	b := c.b
	if b.opts.Topic != "" && string(p.Topic) == b.opts.Topic {
		switch {
		case !b.may(c.Identity, b.opts.Topic, true):
			return NotAuthorized
		case b.opts.Handle == nil:
			return Success
		}
		code := b.opts.Handle(c, p)
		b.changed = true
		return code
	}
	costly := b.Crowded() && b.IsCostly(p.Topic)
	var r *route
	if !costly {
		r = b.routeInSteps(p.Topic)
		costly = r.isCostly() && !b.inLine
	}
	if costly {
		b.yield()
		r = b.routeInSteps(p.Topic)
	}
	if c.session == nil { // the connection has ended while the broker was unlocked
		return Later
	}
	if !b.may(c.Identity, r.topic, true) {
		b.log.Info("not authorized to publish", "client", c.ID, "topic", r.topic)
		return NotAuthorized
	}
	m := &message{topic: r.topic, props: p.props.raw, payload: p.Payload, qos: p.QoS, retain: p.Retain}
	if len(p.Payload) >= LargePayload {
		m.payload, m.value = nil, p.Payload
	}
	if p.props.seen.has(propMessageExpiry) {
		m.expires = b.Now().Add(p.Expiry)
	}
	if p.props.seen&hopProperties != 0 {
		m.props = p.props.passedOn(nil)
	}
	if m.retain && !b.retain(m) {
		return QuotaExceeded
	}
	return b.fanOut(m, r, c.session, true).code()
}

// A Message is sent by [Broker.Publish] to a topic's subscribers, or by [Client.Send] to one
// client. Both copy Properties and Payload, so the caller may reuse these slices after the call. They do not copy
// Value, which must never change after the call.
type Message struct {
	QoS        byte
	Properties []byte // see [AppendContentType], [AppendCorrelation] and [AppendUser]
	Payload    []byte // the beginning of the payload if there is a Value, otherwise all of it
	Value      []byte // the large part of the payload; empty = none
	End        string // the part of the payload that follows Value; few bytes
}

// Publish sends a message to all subscribers of a topic. If more than 512 clients are subscribed,
// including all members of shared subscriptions, Publish sends the message later, on another
// goroutine, and counts all matches as sent. If the memory budget has no room to keep a copy until
// then, Publish drops the message and counts all matches as refused. An invalid topic has no
// matches. Publish requires the lock.
func (b *Broker) Publish(topic []byte, m Message) Delivered {
	b.changed = true
	r := b.lastRoute // successive replies usually have the same topic
	if r == nil || r.topic != string(topic) || r.generation != b.generation {
		if !validTopic(topic) {
			return Delivered{}
		}
		r = b.route(topic)
		b.lastRoute = r
	}
	own, nested := b.takeOwn()
	defer b.endOwn(nested)
	*own = message{topic: r.topic, props: m.Properties, payload: m.Payload, value: m.Value, end: m.End, qos: m.QoS}
	if r.isCostly() {
		n := len(r.targets) + len(r.groups)
		if !b.affords(own.cost()) {
			return Delivered{Matched: n, Refused: n}
		}
		b.publishUnawaited(own.keep(), nil)
		return Delivered{Matched: n, Sent: n}
	}
	return b.fanOut(own, r, nil, false)
}

// takeOwn returns memory for the message of a Publish or Send: b.own, unless an outer call uses it.
// Calls nest if sending a message disconnects a client and Options.Disconnected sends another
// message.
func (b *Broker) takeOwn() (m *message, nested bool) {
	if b.ownInUse {
		return new(message), true
	}
	b.ownInUse = true
	return &b.own, false
}

func (b *Broker) endOwn(nested bool) {
	if b.ownInUse = nested; !nested && b.own.value != nil {
		b.own = message{} // it would keep the value in memory
	}
}

// Send sends a message to the client, whether it is subscribed or not. If the connection ends
// before the message is sent, the message is lost. Send returns false only if the topic is longer
// than 65535 bytes or the message exceeds the client's Maximum Packet Size. It requires the lock.
func (c *Client) Send(topic string, m Message) bool {
	if len(topic) > math.MaxUint16 {
		return false
	}
	if c.session == nil {
		return true
	}
	b := c.b
	b.changed = true
	own, nested := b.takeOwn()
	defer b.endOwn(nested)
	*own = message{topic: topic, props: m.Properties, payload: m.Payload, value: m.Value, end: m.End, qos: m.QoS}
	return c.session.deliver(&delivery{msg: own, qos: m.QoS, transient: true}) != tooLarge
}
