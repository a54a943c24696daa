package mqtt

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/eclipse/paho.golang/packets"
)

// maxRemaining is the largest Remaining Length of an MQTT packet. maxPacket is the size of such
// a packet with its fixed header. Both are in bytes.
const (
	maxRemaining = 268_435_455
	maxPacket    = 1 + 4 + maxRemaining
)

// A MalformedError means that the broker sent a packet that MQTT 5 does not allow.
type MalformedError struct {
	Why string
	TLS bool // the bytes are probably not MQTT but TLS
}

func (e *MalformedError) Error() string { return "malformed packet from the broker: " + e.Why }

// A TooLargeError means that a packet exceeds the broker's Maximum Packet Size, or the maximum
// of MQTT. Sizes are in bytes.
type TooLargeError struct {
	Size, Max int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("packet of %d bytes is larger than the %d bytes that the broker accepts", e.Size, e.Max)
}

// appendPacket appends the encoding of a packet. The error is a *TooLargeError if the packet has more
// than limit bytes; limit must be at most maxPacket. appendPacket does not use paho's encoder, which
// panics on a packet that is too large.
func appendPacket(dst []byte, cp *packets.ControlPacket, limit int) ([]byte, error) {
	parts := cp.Content.Buffers()
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	size := 1 + len(binary.AppendUvarint(nil, uint64(n))) + n
	if size > limit {
		return dst, &TooLargeError{Size: size, Max: limit}
	}
	dst = append(dst, cp.Type<<4|cp.Flags)
	dst = binary.AppendUvarint(dst, uint64(n))
	for _, part := range parts {
		dst = append(dst, part...)
	}
	return dst, nil
}

// packetReader reads packets from a broker that may be hostile.
type packetReader struct {
	r     *bufio.Reader
	limit int    // maximum number of bytes after the fixed header
	body  []byte // buffer for packets that do not fit into r
	in    incoming
}

// readBuffer is the size in bytes of a packetReader's read buffer. A packet body up to this size
// is decoded in the buffer, without a copy.
const readBuffer = 64 << 10

// firstChunk is the number of bytes that are allocated for a large packet before its body
// arrives. After that the memory grows with the bytes that arrive, to at most four times their
// number.
const firstChunk = 64 << 10

// ReusedSize is the capacity in bytes up to which the memory of a received message may be reused
// for the next message. The memory of a [Publication] with a larger payload is never reused.
const ReusedSize = 1 << 20

// incoming is a packet from the broker. This package decodes PUBLISH and PUBACK; paho decodes
// all other packets.
type incoming struct {
	kind    byte // such as packets.PUBLISH
	size    int  // bytes, including the fixed header
	publish Publication
	puback  puback
	other   *packets.ControlPacket // nil for PUBLISH and PUBACK
}

// name returns the packet's MQTT 5 name, such as "PUBACK".
func (in *incoming) name() string { return packetName(in.kind) }

func packetName(kind byte) string {
	return (&packets.ControlPacket{FixedHeader: packets.FixedHeader{Type: kind}}).PacketType()
}

// next reads a packet. The packet is valid until the next call.
func (p *packetReader) next() (*incoming, error) {
	p.in = incoming{}
	in := &p.in
	if cap(p.body) > ReusedSize {
		p.body = nil // too large to reuse; free it before waiting for the next packet
	}
	first, err := p.r.ReadByte()
	if err != nil {
		return in, err
	}
	if err := in.setType(first); err != nil {
		return in, err
	}
	n, digits, err := readLength(p.r)
	if errors.Is(err, errLength) {
		return in, &MalformedError{Why: err.Error()}
	}
	if err != nil {
		return in, err
	}
	if n > p.limit {
		return in, &MalformedError{Why: fmt.Sprintf("it announces %d bytes, more than the %d that were allowed", n, p.limit)}
	}
	in.size = 1 + digits + n
	body, err := p.nextBytes(n)
	if err != nil {
		return in, err
	}
	switch in.kind {
	case packets.PUBLISH:
		in.publish, err = decodePublish(first&0xF, body)
	case packets.PUBACK:
		in.puback, err = decodePuback(body)
	default:
		err = unpack(in.other, body)
	}
	if err != nil {
		return in, &MalformedError{Why: fmt.Sprintf("%s of %d bytes: %v", in.name(), n, noEOF(err))}
	}
	return in, nil
}

// setType sets the type of a packet from its first byte. If no MQTT broker sends such a first byte,
// setType returns an error, so that the caller does not wait for a length and a body that may never
// arrive.
func (in *incoming) setType(first byte) error {
	in.kind = first >> 4
	flags := first & 0xF
	switch in.kind {
	case packets.PUBLISH:
		if flags>>1&3 == 3 {
			return &MalformedError{Why: "QoS 3 does not exist"}
		}
		return nil
	case packets.PUBACK:
		if flags == 0 {
			return nil
		}
	}
	switch first {
	case 0x15: // the TLS record type of an alert
		return &MalformedError{Why: "it is a TLS alert, so this port expects TLS", TLS: true}
	case 'H': // as in "HTTP/1.1 400 Bad Request"
		return &MalformedError{Why: "it begins like HTTP", TLS: true}
	}
	cp := packets.NewControlPacket(in.kind)
	if cp == nil {
		return &MalformedError{Why: fmt.Sprintf("packet type %d does not exist", in.kind), TLS: true}
	}
	switch in.kind {
	case packets.CONNECT, packets.SUBSCRIBE, packets.UNSUBSCRIBE, packets.PINGREQ:
		return &MalformedError{Why: "a broker does not send " + in.name()}
	case packets.AUTH:
		cp.Flags = 0 // MQTT 5, 2.1.3; paho writes 1
	}
	if flags != cp.Flags {
		return &MalformedError{Why: fmt.Sprintf("flags %#x of %s", flags, in.name())}
	}
	in.other = cp
	return nil
}

// unpack decodes the body of a packet with paho. It first checks the length of the properties,
// because paho does not: if the length exceeds the packet, paho reads the rest of the packet as
// properties. Where an int has 32 bits, paho panics if the length is 2^31 or more.
func unpack(cp *packets.ControlPacket, body []byte) error {
	properties := 0 // offset of the property length in body
	switch p := cp.Content.(type) {
	case *packets.Connack:
		properties = 2
		// An MQTT 3.1.1 CONNACK, from a broker that does not support MQTT 5.
		if len(body) == 2 && body[1] == 0x01 {
			p.ReasonCode = reasonUnsupportedVersion
			return nil
		}
	case *packets.Suback, *packets.Unsuback:
		properties = 2
	case *packets.Pubrec, *packets.Pubrel, *packets.Pubcomp:
		properties = 3
	case *packets.Disconnect:
		properties = 1
		if len(body) == 0 {
			return nil // MQTT 5, 3.14.2.1; paho requires a reason code
		}
	case *packets.Auth:
		properties = 1
	default:
		return cp.Content.Unpack(bytes.NewBuffer(body))
	}
	if properties < len(body) {
		n, digits, err := readLength(bytes.NewReader(body[properties:]))
		if err != nil {
			return err
		}
		if left := len(body) - properties - digits; n > left {
			return fmt.Errorf("properties of %d bytes where %d are left", n, left)
		}
	}
	return cp.Content.Unpack(bytes.NewBuffer(body))
}

// readLength reads a Variable Byte Integer; digits is its length in bytes.
func readLength(r io.ByteReader) (n, digits int, err error) {
	for digits < 4 {
		b, err := r.ReadByte()
		if err != nil {
			return 0, 0, noEOF(err)
		}
		n |= int(b&0x7F) << (7 * digits)
		digits++
		if b < 0x80 {
			return n, digits, nil
		}
	}
	return 0, 0, errLength
}

// nextBytes returns the next n bytes. They are valid until the next call.
func (p *packetReader) nextBytes(n int) ([]byte, error) {
	if n > p.r.Size() {
		err := p.fillBody(n)
		return p.body, err
	}
	body, err := p.r.Peek(n)
	if err != nil {
		return nil, noEOF(err)
	}
	_, err = p.r.Discard(n) // the body stays valid until the next read
	return body, err
}

func (p *packetReader) fillBody(n int) error {
	p.body = p.body[:0]
	for len(p.body) < n {
		have := len(p.body)
		chunk := min(n-have, max(firstChunk, have))
		if have >= n/4 {
			chunk = n - have // the last copy; n is at most about four times the bytes that have arrived
		}
		if cap(p.body)-have < chunk {
			p.body = append(make([]byte, 0, have+chunk), p.body...)
		}
		p.body = p.body[:have+chunk]
		if _, err := io.ReadFull(p.r, p.body[have:]); err != nil {
			return noEOF(err)
		}
	}
	return nil
}

// noEOF replaces io.EOF with io.ErrUnexpectedEOF, for a stream that ends within a packet.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
