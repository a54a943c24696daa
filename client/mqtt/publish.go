package mqtt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// PUBLISH and PUBACK are nearly all that a busy connection carries, so they are encoded and
// decoded here. paho's decoder takes 17 KB and some sixty allocations for one PUBLISH; this
// one takes three. paho remains the reference: FuzzPublish and FuzzPuback check that both
// accept the same bytes and read the same from them, except
//
//   - properties that reach beyond the packet, which paho reads as the rest of it;
//   - a Subscription Identifier that is truncated or has more than four digits, which paho
//     accepts.

// publication is a received PUBLISH.
type publication struct {
	Message
	id        uint16
	duplicate bool
}

// puback is a received PUBACK.
type puback struct {
	id     uint16
	code   byte
	reason string // Reason String
}

// The properties of PUBLISH and PUBACK (MQTT 5, 2.2.2.2).
const (
	propPayloadFormat  = packets.PropPayloadFormat
	propMessageExpiry  = packets.PropMessageExpiry
	propContentType    = packets.PropContentType
	propResponseTopic  = packets.PropResponseTopic
	propCorrelation    = packets.PropCorrelationData
	propSubscriptionID = packets.PropSubscriptionIdentifier
	propTopicAlias     = packets.PropTopicAlias
	propReasonString   = packets.PropReasonString
	propUser           = packets.PropUser
)

// appendPublish appends m as a PUBLISH with QoS 1 of at most limit bytes. The caller has
// checked m.
func appendPublish(dst []byte, m *Message, id uint16, limit int) ([]byte, error) {
	props := 2 // payload format
	if m.Expiry > 0 {
		props += 1 + 4
	}
	for _, n := range [...]int{len(m.ContentType), len(m.ResponseTopic), len(m.Correlation)} {
		if n > 0 {
			props += 1 + 2 + n
		}
	}
	for i := range m.User {
		props += 1 + 2 + len(m.User[i].Name) + 2 + len(m.User[i].Value)
	}
	n := 2 + len(m.Topic) + 2 + lengthDigits(props) + props + len(m.Payload)
	if size := 1 + lengthDigits(n) + n; size > limit {
		return dst, &TooLargeError{Size: size, Max: limit}
	}
	dst = append(dst, packets.PUBLISH<<4|1<<1)
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = appendString(dst, m.Topic)
	dst = binary.BigEndian.AppendUint16(dst, id)
	dst = binary.AppendUvarint(dst, uint64(props))
	dst = append(dst, propPayloadFormat, 0)
	if m.Expiry > 0 {
		dst = append(dst, propMessageExpiry)
		dst = binary.BigEndian.AppendUint32(dst, expirySeconds(m.Expiry))
	}
	if m.ContentType != "" {
		dst = appendString(append(dst, propContentType), m.ContentType)
	}
	if m.ResponseTopic != "" {
		dst = appendString(append(dst, propResponseTopic), m.ResponseTopic)
	}
	if len(m.Correlation) > 0 {
		dst = appendString(append(dst, propCorrelation), m.Correlation)
	}
	for i := range m.User {
		dst = appendString(append(dst, propUser), m.User[i].Name)
		dst = appendString(dst, m.User[i].Value)
	}
	return append(dst, m.Payload...), nil
}

// expirySeconds rounds up to whole seconds, within the range of the property.
func expirySeconds(d time.Duration) uint32 {
	return uint32(min((d-1)/time.Second+1, math.MaxUint32))
}

// appendPuback appends a PUBACK with reason code 0.
func appendPuback(dst []byte, id uint16) []byte {
	return append(dst, packets.PUBACK<<4, 2, byte(id>>8), byte(id))
}

func appendString[S string | []byte](dst []byte, s S) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

// lengthDigits returns the length of a Variable Byte Integer in bytes.
func lengthDigits(n int) int {
	digits := 1
	for ; n >= 0x80; n >>= 7 {
		digits++
	}
	return digits
}

// fields reads the fields of a body one after the other, and remembers the first error.
type fields struct {
	body []byte
	at   int
	err  error
}

func (f *fields) take(n int) []byte {
	if f.err != nil || n > len(f.body)-f.at {
		if f.err == nil {
			f.err = io.ErrUnexpectedEOF
		}
		f.at = len(f.body)
		return nil
	}
	f.at += n
	return f.body[f.at-n : f.at]
}

func (f *fields) byte() byte {
	if b := f.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) uint16() uint16 {
	if b := f.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// span reads a string or binary data and returns its position.
func (f *fields) span() span {
	n := int(f.uint16())
	if f.take(n) == nil {
		return span{}
	}
	return span{f.at - n, f.at}
}

// length reads a Variable Byte Integer.
func (f *fields) length() int {
	n := 0
	for digits := range 4 {
		b := f.byte()
		n |= int(b&0x7F) << (7 * digits)
		if b < 0x80 {
			return n
		}
	}
	if f.err == nil {
		f.err = errLength
	}
	return 0
}

// properties reads the length of the properties, and returns the offset of their end.
func (f *fields) properties() int {
	n := f.length()
	if left := len(f.body) - f.at; f.err == nil && n > left {
		f.err = fmt.Errorf("properties of %d bytes where %d are left", n, left)
	}
	return f.at + n
}

type span struct{ from, to int }

// decodePublish decodes the body of a PUBLISH. The result shares no memory with body.
func decodePublish(flags byte, body []byte) (publication, error) {
	p := publication{Message: Message{QoS: flags >> 1 & 3, Retained: flags&1 != 0}, duplicate: flags&8 != 0}
	f := fields{body: body}
	topic := f.span()
	if p.QoS > 0 {
		p.id = f.uint16()
	}
	end := f.properties()
	if f.err != nil {
		return publication{}, f.err
	}
	f.body = body[:end]
	// Find the position of every part first, then copy all of them at once.
	var contentType, responseTopic, correlation span
	var few [8]span // names and values
	user := few[:0]
	for f.at < end && f.err == nil {
		switch kind := f.byte(); kind {
		case propPayloadFormat:
			f.byte()
		case propMessageExpiry:
			if b := f.take(4); b != nil {
				p.Expiry = time.Duration(binary.BigEndian.Uint32(b)) * time.Second
			}
		case propContentType:
			contentType = f.span()
		case propResponseTopic:
			responseTopic = f.span()
		case propCorrelation:
			correlation = f.span()
		case propSubscriptionID:
			f.length()
		case propTopicAlias:
			f.uint16()
		case propUser:
			user = append(user, f.span(), f.span())
		default:
			f.err = fmt.Errorf("property 0x%02X is not for PUBLISH", kind)
		}
	}
	if f.err != nil {
		return publication{}, f.err
	}
	text := string(body[:end])
	part := func(s span) string { return text[s.from:s.to] }
	p.Topic, p.ContentType, p.ResponseTopic = part(topic), part(contentType), part(responseTopic)
	bytes := make([]byte, 0, correlation.to-correlation.from+len(body)-end)
	bytes = append(bytes, body[correlation.from:correlation.to]...)
	if n := len(bytes); n > 0 {
		p.Correlation = bytes[:n:n]
	}
	p.Payload = append(bytes, body[end:]...)[len(bytes):]
	p.User = make([]Property, len(user)/2)
	for i := range p.User {
		p.User[i] = Property{Name: part(user[2*i]), Value: part(user[2*i+1])}
	}
	return p, nil
}

// decodePuback decodes the body of a PUBACK, which may end early (MQTT 5, 3.4.2.1).
func decodePuback(body []byte) (puback, error) {
	f := fields{body: body}
	p := puback{id: f.uint16()}
	if len(body) == 2 {
		return p, nil
	}
	p.code = f.byte()
	if len(body) == 3 {
		return p, nil
	}
	end := f.properties()
	if f.err != nil {
		return puback{}, f.err
	}
	f.body = body[:end]
	for f.at < end && f.err == nil {
		switch kind := f.byte(); kind {
		case propReasonString:
			s := f.span()
			p.reason = string(body[s.from:s.to])
		case propUser:
			f.span()
			f.span()
		default:
			f.err = fmt.Errorf("property 0x%02X is not for PUBACK", kind)
		}
	}
	return p, f.err
}

var errLength = errors.New("a length has more than four digits")
