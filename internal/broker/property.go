package broker

import (
	"encoding/binary"
	"fmt"
)

// The properties (MQTT 5, 2.2.2.2).
const (
	propPayloadFormat   = 0x01
	propMessageExpiry   = 0x02
	propContentType     = 0x03
	propResponseTopic   = 0x08
	propCorrelation     = 0x09
	propSubscriptionID  = 0x0B
	propSessionExpiry   = 0x11
	propAssignedID      = 0x12
	propServerKeepAlive = 0x13
	propAuthMethod      = 0x15
	propAuthData        = 0x16
	propRequestProblem  = 0x17
	propWillDelay       = 0x18
	propRequestResponse = 0x19
	propReasonString    = 0x1F
	propReceiveMaximum  = 0x21
	propTopicAliasMax   = 0x22
	propTopicAlias      = 0x23
	propUser            = 0x26
	propMaximumPacket   = 0x27

	maxProperty = propMaximumPacket
)

// An encoding says how the value of a property is encoded. The first three constants are the sizes
// of numbers in bytes.
type encoding byte

const (
	oneByte     encoding = 1
	twoBytes    encoding = 2
	fourBytes   encoding = 4
	varintValue encoding = 5
	binaryValue encoding = 6
	textValue   encoding = 7
	textPair    encoding = 8
)

// encodings holds the encoding of each property that a client may send.
var encodings = [maxProperty + 1]encoding{
	propPayloadFormat:   oneByte,
	propMessageExpiry:   fourBytes,
	propContentType:     textValue,
	propResponseTopic:   textValue,
	propCorrelation:     binaryValue,
	propSubscriptionID:  varintValue,
	propSessionExpiry:   fourBytes,
	propAuthMethod:      textValue,
	propAuthData:        binaryValue,
	propRequestProblem:  oneByte,
	propWillDelay:       fourBytes,
	propRequestResponse: oneByte,
	propReasonString:    textValue,
	propReceiveMaximum:  twoBytes,
	propTopicAliasMax:   twoBytes,
	propTopicAlias:      twoBytes,
	propUser:            textPair,
	propMaximumPacket:   fourBytes,
}

// checkProperty checks the first property in b and returns its size in bytes. b[0] must be a
// property in encodings.
func checkProperty(b []byte) (size int, err *Error) {
	kind, valid := b[0], true
	switch e := encodings[kind]; e {
	case textValue:
		if size = stringEnd(b, 1); size <= len(b) {
			valid = validText(b[3:size])
		}
	case binaryValue:
		size = stringEnd(b, 1)
	case textPair:
		name := stringEnd(b, 1)
		if size = stringEnd(b, name); size <= len(b) {
			valid = validText(b[3:name]) && validText(b[name+2:size])
		}
	case varintValue:
		d := decoder{body: b, at: 1}
		d.varint()
		size, err = d.at, d.err
	default:
		size = 1 + int(e)
	}
	switch {
	case err != nil:
		return 0, err
	case size > len(b):
		return 0, tooShort()
	case !valid:
		return 0, invalidText()
	case flags.has(kind) && b[1] > 1:
		return 0, violation(fmt.Sprintf("property 0x%02X is neither 0 nor 1", kind))
	case positive.has(kind) && numberOf(kind, b[1:size]) == 0:
		return 0, violation(fmt.Sprintf("property 0x%02X is 0", kind))
	}
	return size, nil
}

// stringEnd returns the end of the string or binary data that begins at b[at]. The result exceeds
// len(b) if b is too short.
func stringEnd(b []byte, at int) int {
	if at+2 > len(b) {
		return len(b) + 1
	}
	return at + 2 + int(binary.BigEndian.Uint16(b[at:]))
}

// A propertySet is a set of properties, with one bit for each.
type propertySet uint64

func (s propertySet) has(kind byte) bool { return s>>kind&1 != 0 }

// The properties that a client may send, by packet.
const (
	messageProperties = 1<<propPayloadFormat | 1<<propMessageExpiry | 1<<propContentType |
		1<<propResponseTopic | 1<<propCorrelation | 1<<propUser
	connectProperties = propertySet(1<<propSessionExpiry | 1<<propReceiveMaximum | 1<<propMaximumPacket | 1<<propTopicAliasMax |
		1<<propRequestResponse | 1<<propRequestProblem | 1<<propUser | 1<<propAuthMethod | 1<<propAuthData)
	willProperties        = propertySet(messageProperties | 1<<propWillDelay)
	publishProperties     = propertySet(messageProperties | 1<<propTopicAlias)
	ackProperties         = propertySet(1<<propReasonString | 1<<propUser)
	subscribeProperties   = propertySet(1<<propSubscriptionID | 1<<propUser)
	unsubscribeProperties = propertySet(1 << propUser)
	disconnectProperties  = propertySet(1<<propSessionExpiry | 1<<propReasonString | 1<<propUser)
	authProperties        = propertySet(1<<propAuthMethod | 1<<propAuthData | 1<<propReasonString | 1<<propUser)
)

const (
	// flags are the properties whose value is 0 or 1.
	flags = propertySet(1<<propPayloadFormat | 1<<propRequestResponse | 1<<propRequestProblem)

	// positive are the properties whose value must not be 0 (MQTT 5, 3.1.2.11.3, 3.1.2.11.4,
	// 3.8.2.1.2).
	positive = propertySet(1<<propReceiveMaximum | 1<<propMaximumPacket | 1<<propSubscriptionID)

	// hopProperties are not copied to subscribers. Instead, subscribers get the remaining Message
	// Expiry Interval and the broker's own Topic Alias.
	hopProperties = propertySet(1<<propMessageExpiry | 1<<propTopicAlias | 1<<propWillDelay)
)

// properties are the properties of one packet. The zero value has none.
type properties struct {
	raw    []byte // as received
	seen   propertySet
	values [maxProperty + 1]span // positions of the values in raw; for User Property, of the first one
}

// A span is a part of properties.raw.
type span struct{ from, to uint32 }

// properties reads the properties of a packet into p, which refers to the packet's bytes.
func (d *decoder) properties(p *properties, allowed propertySet) {
	raw := d.take(d.varint())
	if err := p.decode(raw, allowed); err != nil {
		d.fail(err)
	}
}

// maxProperties is the maximum length of the properties of a packet, in bytes. There is a limit
// because the broker is locked while it decodes the properties.
const maxProperties = 256 << 10

func (p *properties) decode(raw []byte, allowed propertySet) *Error {
	p.raw, p.seen = raw, 0
	if len(raw) > maxProperties {
		return &Error{QuotaExceeded, "the properties are too long"}
	}
	for at := 0; at < len(raw); {
		kind := raw[at]
		if !allowed.has(kind) { // MQTT 5, 2.2.2.2
			return malformed(fmt.Sprintf("property 0x%02X is not for this packet", kind))
		}
		size, err := checkProperty(raw[at:])
		switch {
		case err != nil:
			return err
		case !p.seen.has(kind):
			p.seen |= 1 << kind
			p.values[kind] = span{uint32(at + 1), uint32(at + size)}
		case kind != propUser:
			return violation(fmt.Sprintf("property 0x%02X comes twice", kind))
		}
		at += size
	}
	return nil
}

// value returns the encoded value of a property, or nil if the property was not sent.
func (p *properties) value(kind byte) []byte {
	if !p.seen.has(kind) {
		return nil
	}
	return p.raw[p.values[kind].from:p.values[kind].to]
}

// bytes returns the value of a property with text or binary data, or nil if the property was not
// sent.
func (p *properties) bytes(kind byte) []byte {
	if value := p.value(kind); value != nil {
		return value[2:]
	}
	return nil
}

// number returns the value of a numeric property, or 0 if the property was not sent.
func (p *properties) number(kind byte) uint32 { return numberOf(kind, p.value(kind)) }

func numberOf(kind byte, value []byte) uint32 {
	if kind == propSubscriptionID {
		n, _ := binary.Uvarint(value)
		return uint32(n)
	}
	n := uint32(0)
	for _, b := range value {
		n = n<<8 | uint32(b)
	}
	return n
}

// passedOn appends the properties that are passed on to subscribers, unaltered and in their
// original order [MQTT-3.3.2-17].
func (p *properties) passedOn(dst []byte) []byte {
	for rest := p.raw; len(rest) > 0; {
		size, _ := checkProperty(rest)
		if !hopProperties.has(rest[0]) {
			dst = append(dst, rest[:size]...)
		}
		rest = rest[size:]
	}
	return dst
}

func appendProperties(dst, props []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(props))), props...)
}

// The functions below append a property to [Message].Properties.

// AppendContentType appends a Content Type of at most 65535 bytes.
func AppendContentType[S string | []byte](dst []byte, s S) []byte {
	return appendString(append(dst, propContentType), s)
}

// AppendCorrelation appends Correlation Data of at most 65535 bytes.
func AppendCorrelation[S string | []byte](dst []byte, s S) []byte {
	return appendString(append(dst, propCorrelation), s)
}

// AppendUser appends a User Property. Name and value are at most 65535 bytes each.
func AppendUser[N, V string | []byte](dst []byte, name N, value V) []byte {
	return appendString(appendString(append(dst, propUser), name), value)
}
