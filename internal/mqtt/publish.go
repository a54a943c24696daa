package mqtt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// PUBLISH and PUBACK are nearly all that a busy connection carries, so they are encoded and decoded
// here. paho's decoder takes 17 KB and some sixty allocations for one PUBLISH; the decoder in this
// file allocates nothing. paho remains the reference: FuzzPublish and FuzzPuback check that both
// decoders accept the same bytes and decode them to the same values, except
//
//   - a property length that exceeds the packet: paho reads the rest of the packet as properties;
//   - a Subscription Identifier whose encoding is truncated or longer than four bytes, which paho
//     accepts.

// A Publication is a received PUBLISH. Its slices point into the connection's read
// buffer: they are valid only until OnPublication returns. Message makes a copy.
type Publication struct {
	Topic         []byte
	Payload       []byte
	ResponseTopic []byte
	Correlation   []byte // Correlation Data; empty if there is none
	ContentType   []byte
	Expiry        time.Duration // Message Expiry Interval; 0 = none
	QoS           byte
	Retained      bool // the broker had stored the message before the subscription

	id         uint16
	duplicate  bool
	properties []byte
}

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

// appendPublish appends m as a PUBLISH with QoS 1 of at most limit bytes, but without m.Large. The caller
// has checked m.
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
	n := 2 + len(m.Topic) + 2 + lengthDigits(props) + props + len(m.Payload) + len(m.Large)
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

// expirySeconds returns d in seconds, rounded up, or the largest Message Expiry Interval if d is
// longer.
func expirySeconds(d time.Duration) uint32 {
	return uint32(min((d-1)/time.Second+1, math.MaxUint32))
}

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

// fields reads a packet body's fields one after another, and keeps the first error.
type fields struct {
	body []byte
	at   int
	err  error
}

func (f *fields) next(n int) []byte {
	if f.err != nil || n > len(f.body)-f.at {
		f.fail(io.ErrUnexpectedEOF)
		return nil
	}
	f.at += n
	return f.body[f.at-n : f.at]
}

func (f *fields) byte() byte {
	if b := f.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) uint16() uint16 {
	if b := f.next(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// string reads a string or binary data.
func (f *fields) string() []byte { return f.next(int(f.uint16())) }

// fail records err if it is the first error, and skips the rest of the body.
func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
	f.at = len(f.body)
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
	f.fail(errLength)
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

// property reads one property of a PUBLISH. For a User Property, part holds
// its name and value its value. For any other property, the value is in part or in number.
func (f *fields) property() (kind byte, part, value []byte, number uint32) {
	switch kind = f.byte(); kind {
	case propPayloadFormat:
		number = uint32(f.byte())
	case propMessageExpiry:
		if b := f.next(4); b != nil {
			number = binary.BigEndian.Uint32(b)
		}
	case propContentType, propResponseTopic, propCorrelation:
		part = f.string()
	case propSubscriptionID:
		number = uint32(f.length())
	case propTopicAlias:
		number = uint32(f.uint16())
	case propUser:
		part, value = f.string(), f.string()
	default:
		f.fail(fmt.Errorf("property 0x%02X is not for PUBLISH", kind))
	}
	return kind, part, value, number
}

// decodePublish decodes the body of a PUBLISH. The result's slices point into body.
func decodePublish(flags byte, body []byte) (Publication, error) {
	p := Publication{QoS: flags >> 1 & 3, Retained: flags&1 != 0, duplicate: flags&8 != 0}
	f := fields{body: body}
	p.Topic = f.string()
	if p.QoS > 0 {
		p.id = f.uint16()
	}
	end := f.properties()
	if f.err != nil {
		return Publication{}, f.err
	}
	p.properties, p.Payload = body[f.at:end], body[end:]
	f = fields{body: p.properties}
	for f.at < len(f.body) {
		kind, part, _, number := f.property()
		switch {
		case f.err != nil:
			return Publication{}, f.err
		case kind == propMessageExpiry:
			p.Expiry = time.Duration(number) * time.Second
		case kind == propContentType:
			p.ContentType = part
		case kind == propResponseTopic:
			p.ResponseTopic = part
		case kind == propCorrelation:
			p.Correlation = part
		}
	}
	return p, nil
}

// Properties iterates over the names and values of the user properties, in the order the broker
// sent them.
func (p *Publication) Properties() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		f := fields{body: p.properties}
		for f.at < len(f.body) {
			if kind, name, value, _ := f.property(); kind == propUser && !yield(name, value) {
				return
			}
		}
	}
}

// Property returns the value of the first user property with the given name.
func (p *Publication) Property(name string) (value []byte, ok bool) {
	for n, value := range p.Properties() {
		if string(n) == name {
			return value, true
		}
	}
	return nil, false
}

// Message returns a copy of p, which stays valid after OnPublication returns.
func (p *Publication) Message() Message {
	m := Message{
		Topic:         string(p.Topic),
		Payload:       bytes.Clone(p.Payload),
		ResponseTopic: string(p.ResponseTopic),
		Correlation:   append([]byte(nil), p.Correlation...), // nil if there is none
		ContentType:   string(p.ContentType),
		Expiry:        p.Expiry,
		QoS:           p.QoS,
		User:          make([]Property, 0, 4),
		Retained:      p.Retained,
	}
	for name, value := range p.Properties() {
		m.User = append(m.User, Property{Name: string(name), Value: string(value)})
	}
	return m
}

// decodePuback decodes the body of a PUBACK. The reason code and the properties may be missing
// (MQTT 5, 3.4.2.1).
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
			p.reason = string(f.string())
		case propUser:
			f.string()
			f.string()
		default:
			f.fail(fmt.Errorf("property 0x%02X is not for PUBACK", kind))
		}
	}
	return p, f.err
}

var errLength = errors.New("a length has more than four digits")
