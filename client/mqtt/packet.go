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

// maxRemaining is the largest length that an MQTT packet can announce, maxPacket
// what it then has with its fixed header.
const (
	maxRemaining = 268_435_455
	maxPacket    = 1 + 4 + maxRemaining
)

// A MalformedError is a packet that is not MQTT 5.
type MalformedError struct {
	Why string
}

func (e *MalformedError) Error() string { return "malformed packet from the broker: " + e.Why }

// A TooLargeError is a packet that was not sent because it is larger than the
// broker's Maximum Packet Size, or than MQTT can write. Sizes are in bytes.
type TooLargeError struct {
	Size, Max int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("packet of %d bytes is larger than the %d bytes that the broker accepts", e.Size, e.Max)
}

// appendPacket appends the encoding of a packet of at most limit bytes, which is
// never more than maxPacket. paho's own encoder panics on what MQTT cannot
// write, so the length comes first.
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

// packetReader reads packets from a broker that need not be honest.
type packetReader struct {
	r     *bufio.Reader
	limit int    // bytes after the fixed header
	body  []byte // reused
}

// firstChunk is how much memory an announced length alone can take. Beyond it
// memory grows with the bytes that really came.
const firstChunk = 64 << 10

// keepBody is the size up to which the buffer of one packet serves the next.
const keepBody = 1 << 20

func (p *packetReader) next() (*packets.ControlPacket, int, error) {
	first, err := p.r.ReadByte()
	if err != nil {
		return nil, 0, err
	}
	cp, err := newIncoming(first)
	if err != nil {
		return nil, 0, err
	}
	n, digits, err := readLength(p.r)
	if errors.Is(err, errLength) {
		return nil, 0, &MalformedError{err.Error()}
	}
	if err != nil {
		return nil, 0, err
	}
	if n > p.limit {
		return nil, 0, &MalformedError{fmt.Sprintf("it announces %d bytes, more than the %d that were allowed", n, p.limit)}
	}
	if err := p.read(n); err != nil {
		return nil, 0, err
	}
	if err := unpack(cp, p.body); err != nil {
		return nil, 0, &MalformedError{fmt.Sprintf("%s of %d bytes: %v", cp.PacketType(), n, noEOF(err))}
	}
	return cp, 1 + digits + n, nil
}

// newIncoming returns the empty packet that a first byte announces. What no
// broker sends is refused before its length and body are awaited: they may
// never come.
func newIncoming(first byte) (*packets.ControlPacket, error) {
	switch first {
	case 0x15: // the record type of an alert
		return nil, &MalformedError{"it is a TLS alert, so this port wants TLS"}
	case 'H': // as in "HTTP/1.1 400 Bad Request"
		return nil, &MalformedError{"it begins like HTTP"}
	}
	cp := packets.NewControlPacket(first >> 4)
	if cp == nil {
		return nil, &MalformedError{fmt.Sprintf("packet type %d does not exist", first>>4)}
	}
	switch cp.Type {
	case packets.CONNECT, packets.SUBSCRIBE, packets.UNSUBSCRIBE, packets.PINGREQ:
		return nil, &MalformedError{"a broker does not send " + cp.PacketType()}
	case packets.AUTH:
		cp.Flags = 0 // MQTT 5, 2.1.3; paho writes 1
	}
	if pub, ok := cp.Content.(*packets.Publish); ok {
		pub.Retain, pub.QoS, pub.Duplicate = first&1 != 0, first>>1&3, first>>3&1 != 0
		if pub.QoS == 3 {
			return nil, &MalformedError{"QoS 3 does not exist"}
		}
	} else if first&0xF != cp.Flags {
		return nil, &MalformedError{fmt.Sprintf("flags %#x of %s", first&0xF, cp.PacketType())}
	}
	return cp, nil
}

// unpack decodes the body of a packet. It looks at the length of the properties
// before paho does: paho takes one that reaches beyond the packet for the rest
// of the packet, and panics on one of 2^31 and more where an int has 32 bits.
func unpack(cp *packets.ControlPacket, body []byte) error {
	properties := 0 // where they begin
	switch p := cp.Content.(type) {
	case *packets.Connack:
		properties = 2
		// The answer of a broker that knows MQTT 3.1.1 only, in its own words.
		if len(body) == 2 && body[1] == 0x01 {
			p.ReasonCode = reasonUnsupportedVersion
			return nil
		}
	case *packets.Publish:
		if len(body) < 2 {
			return io.EOF
		}
		properties = 2 + int(binary.BigEndian.Uint16(body))
		if p.QoS > 0 {
			properties += 2
		}
	case *packets.Suback, *packets.Unsuback:
		properties = 2
	case *packets.Puback, *packets.Pubrec, *packets.Pubrel, *packets.Pubcomp:
		properties = 3
	case *packets.Disconnect:
		properties = 1
		if len(body) == 0 {
			return nil // MQTT 5, 3.14.2.1; paho wants a reason code
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

var errLength = errors.New("a length has more than four digits")

// readLength reads a Variable Byte Integer.
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

// read fills p.body with n bytes.
func (p *packetReader) read(n int) error {
	if cap(p.body) > keepBody {
		p.body = nil
	}
	p.body = p.body[:0]
	for len(p.body) < n {
		have := len(p.body)
		chunk := min(n-have, max(firstChunk, have))
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

// noEOF turns the end of the stream within a packet into what it is.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
