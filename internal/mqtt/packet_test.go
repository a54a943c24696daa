package mqtt

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

func newReader(r io.Reader) *packetReader {
	return &packetReader{r: bufio.NewReader(r), limit: maxRemaining}
}

// FuzzReader reads whatever a hostile broker may send. Law: reading ends with the end of the stream or a
// MalformedError, the sizes of the packets add up to the bytes consumed, and memory grows only with the bytes
// received.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"\x20\x03\x00\x00\x00",
		"\x20\x02\x00\x01",
		"\x20\x06\x00\x00\x03\x21\x00\x00",
		"\x30\xFF\xFF\xFF\x7F",
		"\x30\xFF\xFF\xFF\xFF\x7F",
		"\x30\x09\x00\x01t\xFF\xFF\xFF\xFF\x0F!",
		"\x32\x08\x00\x01t\x00\x01\x01\x0B\xFF",
		"\x30\x06\x00\x01t\x02\x0B\x80",
		"\x40\x02\x00\x01\x40\x03\x00\x01\x87\x40\x04\x00\x01\x97\x00",
		"\x90\x04\x00\x01\x00\x01",
		"\xD0\x00\xE0\x00\xE0\x01\x8E\xE0\x02\x8E\x00",
		"\xF0\x00",
		"HTTP/1.1 400 Bad Request\r\n\r\n",
		"\x15\x03\x01\x00\x02\x02\x46",
		"\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := newReader(bytes.NewReader(stream))
		taken := 0
		for {
			in, err := r.next()
			if bound := 2*len(stream) + firstChunk; cap(r.body) > bound {
				t.Fatalf("a body of %d bytes for a stream of %d", cap(r.body), len(stream))
			}
			if err != nil {
				_, malformed := errors.AsType[*MalformedError](err)
				if !malformed && err != io.EOF && err != io.ErrUnexpectedEOF {
					t.Fatalf("%T: %v", err, err)
				}
				if err == io.EOF && taken != len(stream) {
					t.Fatalf("packets of %d bytes in a stream of %d", taken, len(stream))
				}
				return
			}
			taken += in.size
			in.event()
		}
	})
}

// FuzzMessage: a written message is read back, however the bytes are divided.
func FuzzMessage(f *testing.F) {
	f.Add("t", []byte("hello"), "answers/1", []byte{1, 2}, "text/plain", int64(time.Second), "name", "value", uint16(1), uint8(0))
	f.Add("statestore/é", []byte{}, "", []byte{}, "", int64(0), "", "", uint16(65535), uint8(3))
	f.Add("x", bytes.Repeat([]byte("ab"), 70_000), "r", []byte{0}, "", int64(math.MaxInt64), "k", "", uint16(128), uint8(1))
	f.Fuzz(func(t *testing.T, topic string, payload []byte, response string, correlation []byte, contentType string, expiry int64, name, value string, id uint16, cut uint8) {
		m := Message{
			Topic: topic, Payload: payload, ResponseTopic: response, Correlation: correlation, ContentType: contentType,
			Expiry: time.Duration(max(expiry, 0)), QoS: 1, User: []Property{{name, value}, {"second", name}, {name, value}},
		}
		if m.check() != nil {
			t.Skip("not a message")
		}
		wire, err := appendPublish([]byte("before"), &m, id, maxPacket)
		if err != nil {
			t.Fatal(err)
		}
		wire = wire[len("before"):]
		// Expiry is rounded up to whole seconds and capped at the largest value on the wire.
		if m.Expiry = min(m.Expiry, math.MaxUint32*time.Second); m.Expiry%time.Second != 0 {
			m.Expiry = m.Expiry.Truncate(time.Second) + time.Second
		}
		at := int(cut) % len(wire)
		for how, r := range map[string]io.Reader{
			"whole":   bytes.NewReader(wire),
			"cut":     io.MultiReader(bytes.NewReader(wire[:at]), bytes.NewReader(wire[at:])),
			"dribble": iotest.OneByteReader(bytes.NewReader(wire)),
		} {
			in, err := newReader(r).next()
			if err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			if in.size != len(wire) || in.publish.id != id {
				t.Errorf("%s: size %d, want %d; packet identifier %d, want %d", how, in.size, len(wire), in.publish.id, id)
			}
			if got := in.publish.Message(); !equal(got, m) {
				t.Errorf("%s:\ngot  %.100q\nwant %.100q", how, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", m))
			}
		}
		// A message without its last byte is not returned.
		if _, err := newReader(bytes.NewReader(wire[:len(wire)-1])).next(); err != io.ErrUnexpectedEOF {
			t.Errorf("without its last byte: %v, want io.ErrUnexpectedEOF", err)
		}
	})
}

// equal reports whether messages are the same on the wire, which does not distinguish nil from empty.
func equal(a, b Message) bool {
	same := bytes.Equal(a.Payload, b.Payload) && bytes.Equal(a.Correlation, b.Correlation)
	a.Payload, b.Payload, a.Correlation, b.Correlation = nil, nil, nil, nil
	return same && reflect.DeepEqual(a, b)
}

func TestReaderRefuses(t *testing.T) {
	for _, test := range []struct{ name, wire, want string }{
		{"packet type 0", "\x00\x00", "packet type 0 does not exist"},
		{"five-digit length", "\x30\x80\x80\x80\x80\x01", "a length has more than four digits"},
		{"QoS 3", "\x36\x00", "QoS 3 does not exist"},
		{"flags", "\xD1\x00", "flags 0x1 of PINGRESP"},
		{"a packet of clients", "\x10\x00", "a broker does not send CONNECT"},
		{"CONNACK without properties", "\x20\x02\x00\x00", "CONNACK of 2 bytes: unexpected EOF"},
		{"PUBLISH without a topic", "\x30\x00", "PUBLISH of 0 bytes: unexpected EOF"},
		{"PUBLISH with half a topic", "\x30\x03\x00\x02a", "PUBLISH of 3 bytes: unexpected EOF"},
		{"properties that reach beyond the packet", "\x30\x06\x00\x01a\x03\x01\x00", "PUBLISH of 6 bytes: properties of 3 bytes where 2 are left"},
		{"properties of 2^31 bytes", "\x30\x08\x00\x01a\x80\x80\x80\x80\x08", "PUBLISH of 8 bytes: a length has more than four digits"},
		{"a property that PUBACK does not have", "\x40\x06\x00\x01\x00\x02\x01\x00", "PUBACK of 6 bytes: property 0x01 is not for PUBACK"},
		{"PUBACK with half an identifier", "\x40\x01\x00", "PUBACK of 1 bytes: unexpected EOF"},
		{"TLS alert", "\x15\x03\x03\x00\x02\x02\x46", "it is a TLS alert, so this port expects TLS"},
		{"HTTP", "HTTP/1.1 400 Bad Request", "it begins like HTTP"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := newReader(strings.NewReader(test.wire)).next()
			malformed, ok := errors.AsType[*MalformedError](err)
			if !ok || malformed.Why != test.want {
				t.Errorf("%v, want a MalformedError: %s", err, test.want)
			}
		})
	}
}

// TestReaderAccepts checks the short forms that MQTT 5 allows; paho does not support all of them.
func TestReaderAccepts(t *testing.T) {
	for _, test := range []struct {
		wire, packet string
		code         byte
	}{
		{"\xE0\x00", "DISCONNECT", 0x00},
		{"\xE0\x01\x8E", "DISCONNECT", 0x8E},
		{"\xE0\x02\x8E\x00", "DISCONNECT", 0x8E},
		{"\x40\x02\x00\x01", "PUBACK", 0x00},
		{"\x40\x03\x00\x01\x97", "PUBACK", 0x97},
		{"\x40\x04\x00\x01\x97\x00", "PUBACK", 0x97},
		{"\xF0\x00", "AUTH", 0x00},
		{"\x20\x02\x00\x01", "CONNACK", 0x84}, // MQTT 3.1.1: unacceptable protocol version
	} {
		in, err := newReader(strings.NewReader(test.wire)).next()
		if err != nil {
			t.Errorf("%x: %v", test.wire, err)
			continue
		}
		code := in.puback.code
		var content packets.Packet
		if in.other != nil {
			content = in.other.Content
		}
		switch p := content.(type) {
		case *packets.Connack:
			code = p.ReasonCode
		case *packets.Disconnect:
			code = p.ReasonCode
		}
		if in.name() != test.packet || code != test.code || in.size != len(test.wire) {
			t.Errorf("%x: %s 0x%02X of %d bytes, want %s 0x%02X", test.wire, in.name(), code, in.size, test.packet, test.code)
		}
	}
}

func TestMessageCheck(t *testing.T) {
	long := strings.Repeat("x", math.MaxUint16+1)
	for _, test := range []struct {
		m    Message
		want string // "" = accepted
	}{
		{Message{Topic: "t"}, ""},
		{Message{Topic: long[1:]}, ""},
		{Message{}, "the topic is empty"},
		{Message{Topic: "a/+"}, `topic "a/+": expected UTF-8 without +, # and NUL`},
		{Message{Topic: "a\x00"}, `topic "a\x00": expected UTF-8 without +, # and NUL`},
		{Message{Topic: "\xFF"}, `topic "\xff": expected UTF-8 without +, # and NUL`},
		{Message{Topic: "t", ResponseTopic: "#"}, `response topic "#": expected UTF-8 without +, # and NUL`},
		{Message{Topic: long}, "topic of 65536 bytes: MQTT allows at most 65535"},
		{Message{Topic: "t", ResponseTopic: long}, "response topic of 65536 bytes: MQTT allows at most 65535"},
		{Message{Topic: "t", Correlation: []byte(long)}, "correlation data of 65536 bytes: MQTT allows at most 65535"},
		{Message{Topic: "t", ContentType: long}, "content type of 65536 bytes: MQTT allows at most 65535"},
		{Message{Topic: "t", User: []Property{{"k", long}}}, `user property "k" of 65536 bytes: MQTT allows at most 65535`},
		{Message{Topic: "t", User: []Property{{long, ""}}}, `user property "` + long[:32] + `" of 65536 bytes: MQTT allows at most 65535`},
	} {
		got := ""
		if err := test.m.check(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%.40q: got %q, want %q", test.m.Topic, got, test.want)
		}
	}
}

// TestTooLarge checks the largest packet that MQTT can encode, one byte more, and properties that fit into no
// packet.
func TestTooLarge(t *testing.T) {
	long := strings.Repeat("x", math.MaxUint16)
	m := Message{Topic: "t", User: make([]Property, 2100)}
	for i := range m.User {
		m.User[i] = Property{long, long}
	}
	if _, ok := errors.AsType[*TooLargeError](m.check()); !ok {
		t.Errorf("properties of 2100 × 128 KiB: %v, want a TooLargeError", m.check())
	}

	m = Message{Topic: "t"}
	const overhead = len("\x00\x01t") + 2 + 1 + 2 // topic, identifier, property length, payload format
	for _, test := range []struct{ limit, remaining, want int }{
		{100, 98, 0},
		{100, 99, 101},
		{1000, 997, 0},
		{1000, 998, 1001},
		{maxPacket, maxRemaining + 1, maxPacket + 2}, // its length would take five digits
	} {
		m.Payload = make([]byte, test.remaining-overhead)
		wire, err := appendPublish(nil, &m, 1, test.limit)
		if test.want == 0 {
			if err != nil || len(wire) != test.limit {
				t.Errorf("limit %d: %d bytes, %v", test.limit, len(wire), err)
			}
			continue
		}
		if tooLarge, ok := errors.AsType[*TooLargeError](err); !ok || *tooLarge != (TooLargeError{test.want, test.limit}) || len(wire) != 0 {
			t.Errorf("limit %d: %d bytes, %v, want a TooLargeError with %d bytes", test.limit, len(wire), err, test.want)
		}
	}
}
