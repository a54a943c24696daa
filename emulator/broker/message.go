package broker

import (
	"encoding/binary"
	"time"
)

// A message is on its way to its subscribers.
type message struct {
	topic   string
	props   []byte // that are passed on
	payload []byte
	qos     byte
	retain  bool
	holders int      // deliveries that were charged for it
	kept    *message // that outlives the packet that this one is a part of; itself perhaps

	received   time.Time // when the Message Expiry Interval began
	expiry     uint32    // seconds
	expires    bool
	retainedAs uint64 // the order of retained messages
}

// messageOverhead is what a message costs beside its bytes, about.
const messageOverhead = 200

func (m *message) cost() int {
	return messageOverhead + len(m.topic) + len(m.props) + len(m.payload)
}

// keep returns a copy of the message that outlives the packet. All sessions share it.
func (m *message) keep() *message {
	if m.kept == nil {
		k := *m
		bytes := make([]byte, 0, len(m.props)+len(m.payload))
		bytes = append(append(bytes, m.props...), m.payload...)
		k.props, k.payload = bytes[:len(m.props):len(m.props)], bytes[len(m.props):]
		k.kept, k.holders = &k, 0
		m.kept = &k
	}
	return m.kept
}

// remaining returns the rest of the Message Expiry Interval [MQTT-3.3.2-6], and whether
// there is one.
func (m *message) remaining(now time.Time) (seconds uint32, ok bool) {
	passed := uint64(max(0, now.Sub(m.received)) / time.Second)
	if passed >= uint64(m.expiry) {
		return 0, false
	}
	return m.expiry - uint32(passed), true
}

// ends is when the Message Expiry Interval has passed.
func (m *message) ends() time.Time { return m.received.Add(time.Duration(m.expiry) * time.Second) }

// over reports whether the Message Expiry Interval has passed.
func (m *message) over(now time.Time) bool {
	if !m.expires {
		return false
	}
	_, left := m.remaining(now)
	return !left
}

// A delivery is a message on its way to one session.
type delivery struct {
	msg       *message
	ids       []int  // subscription identifiers
	group     *group // nil: not of a shared subscription
	qos       byte
	retain    bool
	transient bool // ends with the connection
	state     byte // in a window
}

// The states of a delivery that was sent with QoS 1 or 2.
const (
	finished = iota
	sent
	released // PUBREC came, PUBREL was sent
)

func appendString[S string | []byte](dst []byte, s S) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

// varintLength is how long a Variable Byte Integer is.
func varintLength(n int) int {
	digits := 1
	for ; n >= 0x80; n >>= 7 {
		digits++
	}
	return digits
}

// measure returns the lengths of a PUBLISH's properties and of the whole after its fixed
// header.
func (c *Client) measure(d *delivery, topic string, alias uint16) (props, size int) {
	size = 2 + len(topic) + len(d.msg.payload)
	if d.qos > 0 {
		size += 2
	}
	if c.Version != version5 {
		return 0, size
	}
	props = len(d.msg.props)
	for _, n := range d.ids {
		props += 1 + varintLength(n)
	}
	if d.msg.expires {
		props += expiryLength
	}
	if alias > 0 {
		props += aliasLength
	}
	return props, size + varintLength(props) + props
}

// takes reports whether the client takes a packet of that remaining length.
func (c *Client) takes(size int) bool {
	return size <= maxRemaining && (c.maxPacket == 0 || 1+varintLength(size)+size <= c.maxPacket)
}

// fits reports whether the client takes a message. If it was given aliases it may say yes
// to one that turns out to be too large.
func (c *Client) fits(d *delivery) bool {
	topic := d.msg.topic
	if c.aliasMax > 0 {
		topic = ""
	}
	_, size := c.measure(d, topic, c.aliasMax)
	return c.takes(size)
}

// appendPublish appends a delivery as it goes to the client, or returns false if it is
// larger than the client takes [MQTT-3.1.2-24].
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
	props, size := c.measure(d, topic, alias)
	total := 1 + varintLength(size) + size
	if !c.takes(size) {
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
	out := append(c.begin(total), first)
	out = binary.AppendUvarint(out, uint64(size))
	out = appendString(out, topic)
	if d.qos > 0 {
		out = binary.BigEndian.AppendUint16(out, id)
	}
	if c.Version == version5 {
		out = binary.AppendUvarint(out, uint64(props))
		if m.expires {
			left, _ := m.remaining(c.b.now()) // perhaps 0: what was sent before is sent again
			out = binary.BigEndian.AppendUint32(append(out, propMessageExpiry), left)
		}
		if alias > 0 {
			out = binary.BigEndian.AppendUint16(append(out, propTopicAlias), alias)
		}
		for _, n := range d.ids {
			out = binary.AppendUvarint(append(out, propSubscriptionID), uint64(n))
		}
		out = append(out, m.props...)
	}
	c.out = append(out, m.payload...)
	c.b.stats.MessagesSent++
	return true
}

// assignAlias gives a topic the alias that was given to another longest ago.
func (c *Client) assignAlias(topic string, alias uint16) {
	if c.aliases == nil {
		c.aliases = make(map[string]uint16)
		c.aliasTopics = make([]string, c.aliasMax)
	}
	old := c.aliasTopics[alias-1]
	delete(c.aliases, old)
	c.remember(len(topic) - len(old))
	c.aliases[topic], c.aliasTopics[alias-1] = alias, topic
	c.nextAlias = alias % c.aliasMax
}

// The properties of a [Message], appended to its Properties.

// AppendContentType appends a Content Type.
func AppendContentType[S string | []byte](dst []byte, s S) []byte {
	return appendString(append(dst, propContentType), s)
}

// AppendResponseTopic appends a Response Topic.
func AppendResponseTopic[S string | []byte](dst []byte, s S) []byte {
	return appendString(append(dst, propResponseTopic), s)
}

// AppendCorrelation appends Correlation Data.
func AppendCorrelation[S string | []byte](dst []byte, s S) []byte {
	return appendString(append(dst, propCorrelation), s)
}

// AppendUser appends a User Property.
func AppendUser[N, V string | []byte](dst []byte, name N, value V) []byte {
	return appendString(appendString(append(dst, propUser), name), value)
}
