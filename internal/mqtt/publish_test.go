package mqtt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// FuzzPublish compares the decoding of a PUBLISH body with paho: both accept it and read the same, or neither
// does. See publish.go for the differences.
func FuzzPublish(f *testing.F) {
	long := strings.Repeat("x", 300)
	for _, seed := range []struct {
		flags byte
		body  string
	}{
		{0, "\x00\x01t\x00hello"},
		{2, "\x00\x01t\x00\x07\x00hello"},
		{10, "\x00\x01t\x00\x07\x07\x01\x01\x02\x00\x00\x00\x09"},
		{2, "\x00\x01t\x00\x07\x13\x03\x00\x01c\x08\x00\x01r\x09\x00\x02\x01\x02\x23\x00\x05\x0B\x81\x01payload"},
		{2, "\x00\x01t\x00\x07\x0E\x26\x00\x01a\x00\x01b\x26\x00\x01a\x00\x01c!"},
		{0, "\x00\x01t\x02\x0B\x80"},
		{0, "\x00\x01t\x06\x0B\x80\x80\x80\x80\x01"},
		{0, "\x00\x01t\x03\x01\x00"},
		{0, "\x00\x01t\x04\x1F\x00\x01a"},
		{0, "\x00\x01t\x80\x80\x80\x80\x08"},
		{0, "\x00\x01t\xB1\x02\x26\x01\x2C" + long + "\x00\x00" + long},
		{6, "\x00\x00\x00\x00\x00"},
		{1, ""},
	} {
		f.Add(seed.flags, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, flags byte, body []byte) {
		flags &= 0xF
		if flags>>1&3 == 3 {
			return // QoS 3 is refused with the first byte
		}
		lent := bytes.Clone(body)
		got, err := decodePublish(flags, lent)
		want := &packets.Publish{Properties: &packets.Properties{}, QoS: flags >> 1 & 3, Duplicate: flags&8 != 0, Retain: flags&1 != 0}
		pahoErr := want.Unpack(bytes.NewBuffer(bytes.Clone(body)))
		if pahoErr == nil && err != nil {
			if reachesBeyond(t, flags, body) || badSubscriptionID(flags, body) {
				return
			}
			t.Fatalf("paho accepts %x, refused with %v", body, err)
		}
		if pahoErr != nil && err == nil {
			t.Fatalf("paho refuses %x with %v", body, pahoErr)
		}
		if err != nil {
			return
		}
		m := asMessage(want)
		for _, p := range m.User {
			first := slices.IndexFunc(m.User, func(q Property) bool { return q.Name == p.Name })
			if value, ok := got.Property(p.Name); !ok || string(value) != m.User[first].Value {
				t.Errorf("property %q: %q, %t", p.Name, value, ok)
			}
		}
		copied := got.Message()
		clear(lent) // the copy shares no memory with it
		if !equal(copied, m) || got.id != want.PacketID || got.duplicate != want.Duplicate {
			t.Errorf("got  %+v\nwant %+v, id %d, duplicate %t", copied, m, want.PacketID, want.Duplicate)
		}
	})
}

// asMessage converts a packet that paho decoded.
func asMessage(p *packets.Publish) Message {
	m := Message{
		Topic: p.Topic, Payload: p.Payload, QoS: p.QoS, Retained: p.Retain,
		ResponseTopic: p.Properties.ResponseTopic, Correlation: p.Properties.CorrelationData, ContentType: p.Properties.ContentType,
		User: make([]Property, len(p.Properties.User)),
	}
	if s := p.Properties.MessageExpiry; s != nil {
		m.Expiry = time.Duration(*s) * time.Second
	}
	for i, u := range p.Properties.User {
		m.User[i] = Property{Name: u.Key, Value: u.Value}
	}
	return m
}

// propertiesOf returns the property length that a PUBLISH announces, and the rest of the body.
func propertiesOf(flags byte, body []byte) (n int, rest []byte, ok bool) {
	at := 2 + int(binary.BigEndian.Uint16(body))
	if flags&6 != 0 {
		at += 2
	}
	n, digits, err := readLength(bytes.NewReader(body[at:]))
	if err != nil {
		return 0, nil, false
	}
	return n, body[at+digits:], true
}

func reachesBeyond(t *testing.T, flags byte, body []byte) bool {
	t.Helper()
	n, rest, ok := propertiesOf(flags, body)
	return !ok || n > len(rest)
}

// badSubscriptionID reports whether a Subscription Identifier is not a valid Variable Byte Integer.
func badSubscriptionID(flags byte, body []byte) bool {
	n, rest, ok := propertiesOf(flags, body)
	if !ok || n > len(rest) {
		return false
	}
	f := fields{body: rest[:n]}
	for f.at < n {
		switch f.byte() {
		case propPayloadFormat:
			f.byte()
		case propMessageExpiry:
			f.next(4)
		case propContentType, propResponseTopic, propCorrelation:
			f.string()
		case propTopicAlias:
			f.uint16()
		case propUser:
			f.string()
			f.string()
		case propSubscriptionID:
			if _, _, err := readLength(bytes.NewReader(f.body[f.at:])); err != nil {
				return true
			}
			f.length()
		default:
			return false
		}
	}
	return false
}

// FuzzPuback is FuzzPublish for PUBACK.
func FuzzPuback(f *testing.F) {
	for _, seed := range []string{
		"", "\x00", "\x00\x01", "\x00\x01\x97", "\x00\x01\x97\x00", "\x00\x01\x97\x00 and more",
		"\x00\x01\x10\x04\x1F\x00\x01r", "\x00\x01\x10\x07\x26\x00\x01a\x00\x01b", "\x00\x01\x10\x02\x01\x00",
		"\x00\x01\x10\x09\x1F\x00\x01r", "\x00\x01\x10\x08\x1F\x00\x01r\x1F\x00\x01s", "\x00\x01\x10\x80\x80\x80\x80\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodePuback(bytes.Clone(body))
		want := &packets.Puback{Properties: &packets.Properties{}}
		pahoErr := want.Unpack(bytes.NewBuffer(bytes.Clone(body)))
		if pahoErr == nil && err != nil {
			n, digits, bad := readLength(bytes.NewReader(body[3:]))
			if bad != nil || n > len(body)-3-digits {
				return // the properties exceed the packet
			}
			t.Fatalf("paho accepts %x, refused with %v", body, err)
		}
		if pahoErr != nil && err == nil {
			t.Fatalf("paho refuses %x with %v", body, pahoErr)
		}
		if err == nil && (got.id != want.PacketID || got.code != want.ReasonCode || got.reason != want.Properties.ReasonString) {
			t.Errorf("got %+v, want %d 0x%02X %q", got, want.PacketID, want.ReasonCode, want.Properties.ReasonString)
		}
	})
}

// FuzzAppendPublish compares the encoding with paho: both write the same bytes, even of messages that would
// not be read back.
func FuzzAppendPublish(f *testing.F) {
	f.Add("t", []byte("hello"), "answers/1", []byte{1, 2}, "text/plain", int64(time.Second), "name", "value", uint16(1))
	f.Add("statestore/é", []byte{}, "", []byte{}, "", int64(0), "", "", uint16(65535))
	f.Add("x", bytes.Repeat([]byte("ab"), 70_000), "r", []byte{0}, "", int64(math.MaxInt64), "k", strings.Repeat("v", 130), uint16(128))
	f.Fuzz(func(t *testing.T, topic string, payload []byte, response string, correlation []byte, contentType string, expiry int64, name, value string, id uint16) {
		m := Message{
			Topic: topic, Payload: payload, ResponseTopic: response, Correlation: correlation, ContentType: contentType,
			Expiry: time.Duration(max(expiry, 0)), User: []Property{{name, value}, {"second", name}},
		}
		if m.check() != nil {
			return // not a valid message
		}
		got, err := appendPublish(nil, &m, id, maxPacket)
		if err != nil {
			t.Fatal(err)
		}
		if want := pahoPublish(t, m, id); !bytes.Equal(got, want) {
			t.Errorf("got  %.200x\nwant %.200x", got, want)
		}
		if event := publishEvent(&m, id, len(got)); !reflect.DeepEqual(event.Message.User, m.User) {
			t.Errorf("the trace has %q, want %q", event.Message.User, m.User)
		}
		at := int(id) % (len(payload) + 1)
		split := m
		split.Payload, split.Large, split.LargeAt = payload[:at:at], string(payload[at:]), at
		if head, err := appendPublish(nil, &split, id, maxPacket); err != nil || string(head)+split.Large != string(got) {
			t.Errorf("with a Large of %d bytes: %.200x, %v\nwant %.200x", len(split.Large), head, err, got)
		}
		if event := publishEvent(&split, id, len(got)); !bytes.Equal(event.Message.Payload, payload) || event.Message.Large != "" {
			t.Errorf("the trace has %.200x, want %.200x", event.Message.Payload, payload)
		}
		size := len(got)
		if _, err := appendPublish(nil, &m, id, size); err != nil {
			t.Errorf("a limit of its size: %v", err)
		}
		if over, err := appendPublish([]byte("x"), &m, id, size-1); err == nil || string(over) != "x" {
			t.Errorf("a limit of less than its size: %.20x, %v", over, err)
		}
	})
}

func pahoPublish(t testing.TB, m Message, id uint16) []byte {
	t.Helper()
	format := byte(0)
	p := &packets.Publish{Topic: m.Topic, Payload: m.Payload, QoS: 1, PacketID: id, Properties: &packets.Properties{
		PayloadFormat: &format, ResponseTopic: m.ResponseTopic, CorrelationData: m.Correlation, ContentType: m.ContentType,
	}}
	if m.Expiry > 0 {
		seconds := expirySeconds(m.Expiry)
		p.Properties.MessageExpiry = &seconds
	}
	for _, u := range m.User {
		p.Properties.User = append(p.Properties.User, packets.User{Key: u.Name, Value: u.Value})
	}
	wire, err := appendPacket(nil, p.ToControlPacket(), maxPacket)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

func TestAppendPuback(t *testing.T) {
	wire := appendPuback(nil, 0x1234)
	in, err := newReader(bytes.NewReader(wire)).next()
	if err != nil || !reflect.DeepEqual(in.puback, puback{id: 0x1234}) {
		t.Errorf("%x: %+v, %v", wire, in.puback, err)
	}
}

// reply returns a message like those that the store sends.
func reply() Message {
	return Message{
		Topic: "clients/example-1/services/statestore/_any_/command/invoke/response", Payload: bytes.Repeat([]byte("x"), 100), Correlation: make([]byte, 16),
		User: []Property{{"__ts", "001730000000000:00000:StateStore"}, {"__stat", "200"}, {"__protVer", "1.0"}},
	}
}

func BenchmarkReadPublish(b *testing.B) {
	m := reply()
	wire, err := appendPublish(nil, &m, 1, maxPacket)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("here", func(b *testing.B) {
		stream := bytes.NewReader(wire)
		r := newReader(stream)
		b.ReportAllocs()
		b.SetBytes(int64(len(wire)))
		for b.Loop() {
			stream.Reset(wire)
			if _, err := r.next(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("paho", func(b *testing.B) {
		stream := bytes.NewReader(wire)
		b.ReportAllocs()
		b.SetBytes(int64(len(wire)))
		for b.Loop() {
			stream.Reset(wire)
			if _, err := packets.ReadPacket(stream); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReadPuback(b *testing.B) {
	wire := appendPuback(nil, 7)
	stream := bytes.NewReader(wire)
	r := newReader(stream)
	b.ReportAllocs()
	for b.Loop() {
		stream.Reset(wire)
		if _, err := r.next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendPublish(b *testing.B) {
	m := reply()
	m.ResponseTopic, m.Expiry = m.Topic, 10*time.Second
	for name, encode := range map[string]func(dst []byte) []byte{
		"here": func(dst []byte) []byte {
			dst, err := appendPublish(dst, &m, 1, maxPacket)
			if err != nil {
				b.Fatal(err)
			}
			return dst
		},
		"paho": func([]byte) []byte { return pahoPublish(b, m, 1) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = encode(dst[:0])
			}
			if len(dst) == 0 {
				b.Fatal(fmt.Errorf("nothing was written"))
			}
		})
	}
}
