package broker

import (
	"encoding/binary"
	"time"
	"unsafe"
)

// A message is a published message. Its byte slices may refer to the publisher's packet.
type message struct {
	topic   string
	props   []byte // encoded properties that are passed to subscribers
	payload []byte
	value   []byte // follows payload, see Message.Value
	end     string // follows value
	qos     byte
	retain  bool
	expires time.Time // zero = never

	kept     *message // the copy that sessions share, see keep; nil = none was made
	slot     slot     // while deliveries in inflight or pending hold the message
	sequence uint64   // order of retained messages
}

// messageOverhead is the estimated memory of a message besides its bytes.
const messageOverhead = 25 * word

func (m *message) cost() int {
	return messageOverhead + len(m.topic) + len(m.props) + m.size()
}

// size returns the size of the payload with its value and end, in bytes.
func (m *message) size() int { return len(m.payload) + len(m.value) + len(m.end) }

// keep returns a copy that does not refer to the publisher's packet, except with value. All sessions share
// this copy.
func (m *message) keep() *message {
	if m.kept == nil {
		k := *m
		bytes := make([]byte, 0, len(m.props)+len(m.payload))
		bytes = append(append(bytes, m.props...), m.payload...)
		k.props, k.payload = bytes[:len(m.props):len(m.props)], bytes[len(m.props):]
		k.kept, k.slot = &k, none
		m.kept = &k
	}
	return m.kept
}

// expired reports whether the Message Expiry Interval has passed [MQTT-3.3.2-5].
func (m *message) expired(now time.Time) bool { return !m.expires.IsZero() && !now.Before(m.expires) }

// remaining returns the rest of the Message Expiry Interval in seconds, rounded up [MQTT-3.3.2-6].
func (m *message) remaining(now time.Time) uint32 {
	return uint32(max(0, m.expires.Sub(now)+time.Second-1) / time.Second)
}

// A delivery is a message on its way to one session.
type delivery struct {
	msg       *message        // nil = sent, and not needed again
	ids       *identifierList // subscription identifiers; nil = none
	group     *group          // nil = not for a shared subscription
	qos       byte
	retain    bool
	transient bool // discarded when the connection ends
}

// An identifierList holds the Subscription Identifiers of all subscriptions that match a message. The
// deliveries of a route share it. It does not change.
type identifierList struct {
	ids  []uint32
	slot slot // while deliveries in inflight or pending hold the list
}

// cost returns the estimated memory of the list, in bytes.
func (l *identifierList) cost() int {
	if l == nil {
		return 0
	}
	return int(unsafe.Sizeof(*l)) + 4*cap(l.ids)
}

// publishSize returns the Remaining Length of a PUBLISH with the given topic. own is the length of
// the properties that appendOwnProperties appends.
func (c *Client) publishSize(d *delivery, topic string, own int) int {
	size := 2 + len(topic) + d.msg.size()
	if d.qos > 0 {
		size += 2
	}
	if c.Version == version5 {
		props := own + len(d.msg.props)
		size += varintLength(props) + props
	}
	return size
}

// appendOwnProperties appends the properties of a PUBLISH that differ between clients. alias is the
// Topic Alias; 0 = none.
func (c *Client) appendOwnProperties(dst []byte, d *delivery, alias uint16) []byte {
	if c.Version != version5 {
		return dst
	}
	if !d.msg.expires.IsZero() { // a message that is sent again may have 0 seconds left
		dst = binary.BigEndian.AppendUint32(append(dst, propMessageExpiry), d.msg.remaining(c.b.Now()))
	}
	if alias > 0 {
		dst = binary.BigEndian.AppendUint16(append(dst, propTopicAlias), alias)
	}
	if d.ids != nil {
		for _, id := range d.ids.ids {
			dst = binary.AppendUvarint(append(dst, propSubscriptionID), uint64(id))
		}
	}
	return dst
}

// accepts reports whether a packet is within the client's Maximum Packet Size [MQTT-3.1.2-24]. size
// is the packet's Remaining Length.
func (c *Client) accepts(size int) bool {
	return size <= maxRemaining && (c.maxPacket == 0 || 1+varintLength(size)+size <= c.maxPacket)
}

// fits reports whether the client accepts a PUBLISH of the delivery's size. If the client allows
// Topic Aliases, fits assumes that an alias replaces the topic.
func (c *Client) fits(d *delivery) bool {
	topic := d.msg.topic
	if c.aliasMax > 0 {
		topic = ""
	}
	var scratch [32]byte
	return c.accepts(c.publishSize(d, topic, len(c.appendOwnProperties(scratch[:0], d, c.aliasMax))))
}

// appendPublish queues a PUBLISH. It returns false if the client does not accept its size.
func (c *Client) appendPublish(d *delivery, id uint16, dup bool) bool {
	m, topic := d.msg, d.msg.topic
	alias, known := uint16(0), false
	if c.aliasMax > 0 {
		if alias, known = c.aliases[topic]; known {
			topic = ""
		} else if c.b.affords(0) {
			alias = c.nextAlias%c.aliasMax + 1
		}
	}
	var scratch [32]byte
	own := c.appendOwnProperties(scratch[:0], d, alias)
	size := c.publishSize(d, topic, len(own))
	if !c.accepts(size) {
		return false
	}
	if alias > 0 && !known {
		c.assignAlias(topic, alias)
	}
	first := byte(typePublish<<4) | d.qos<<1
	if dup {
		first |= 8
	}
	if d.retain {
		first |= 1
	}
	out := append(c.reserve(1+varintLength(size)+size-len(m.value)-len(m.end)), first)
	out = binary.AppendUvarint(out, uint64(size))
	out = appendString(out, topic)
	if d.qos > 0 {
		out = binary.BigEndian.AppendUint16(out, id)
	}
	if c.Version == version5 {
		out = binary.AppendUvarint(out, uint64(len(own)+len(m.props)))
		out = append(append(out, own...), m.props...)
	}
	c.out = append(out, m.payload...)
	if len(m.value) > 0 {
		c.share(m.value, m.end)
	}
	c.b.stats.MessagesSent++
	return true
}

// assignAlias assigns an alias to a topic. A topic that had the alias before loses it.
func (c *Client) assignAlias(topic string, alias uint16) {
	if c.aliases == nil {
		c.aliases = make(map[string]uint16)
		c.aliasTopics = make([]string, c.aliasMax)
		c.chargeAlias(outgoingAliasCost * int(c.aliasMax))
	}
	old := c.aliasTopics[alias-1]
	delete(c.aliases, old)
	c.chargeAlias(len(topic) - len(old))
	c.aliases[topic], c.aliasTopics[alias-1] = alias, topic
	c.nextAlias = alias % c.aliasMax
}
