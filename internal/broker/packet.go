package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// The packet types (MQTT 5, 2.1.2).
const (
	typeConnect     = 1
	typeConnack     = 2
	typePublish     = 3
	typePuback      = 4
	typePubrec      = 5
	typePubrel      = 6
	typePubcomp     = 7
	typeSubscribe   = 8
	typeSuback      = 9
	typeUnsubscribe = 10
	typeUnsuback    = 11
	typePingreq     = 12
	typePingresp    = 13
	typeDisconnect  = 14
	typeAuth        = 15
)

const (
	version4 = 4 // MQTT 3.1.1
	version5 = 5
)

// A Variable Byte Integer has at most maxDigits bytes, so the Remaining Length of a packet is
// at most maxRemaining (MQTT 5, 1.5.5, 2.1.4).
const (
	maxDigits    = 4
	maxRemaining = 268_435_455
)

// splitPacket returns the body of the first packet in b, and the packet's size including its fixed
// header. b must not be empty. body is nil if b holds only a part of the packet; size is 0 if b
// does not hold the complete Remaining Length.
func splitPacket(b []byte) (body []byte, size int, err *Error) {
	length, digits := binary.Uvarint(b[1:min(len(b), 1+maxDigits)])
	if digits <= 0 {
		if len(b) > maxDigits {
			err = malformed("a length with more than four digits")
		}
		return nil, 0, err
	}
	size = 1 + digits + int(length)
	if size <= len(b) {
		body = b[1+digits : size]
	}
	return body, size, nil
}

// checkFlags checks the type and the flags in a packet's first byte (MQTT 5, 2.1.3).
func checkFlags(first byte) *Error {
	want := byte(0)
	switch first >> 4 {
	case typePublish:
		if first&0x06 == 0x06 {
			return malformed("QoS 3 does not exist") // [MQTT-3.3.1-4]
		}
		if first&0x0E == 0x08 {
			return malformed("DUP with QoS 0") // [MQTT-3.3.1-2]
		}
		return nil
	case typePubrel, typeSubscribe, typeUnsubscribe:
		want = 2
	case typeConnect, typePuback, typePubrec, typePubcomp, typePingreq, typeDisconnect, typeAuth:
	default:
		return violation(fmt.Sprintf("a client must not send packets of type %d", first>>4))
	}
	if first&0x0F != want {
		return malformed(fmt.Sprintf("flags %#x in a packet of type %d", first&0x0F, first>>4))
	}
	return nil
}

// A decoder reads the fields of a packet in order and keeps the first error. The byte slices
// that it returns are parts of the packet.
type decoder struct {
	body []byte
	at   int // offset of the next field
	err  *Error
}

func (d *decoder) left() int { return len(d.body) - d.at }

// fail records the first error and skips the rest of the packet.
func (d *decoder) fail(err *Error) {
	if d.err == nil {
		d.err = err
	}
	d.at = len(d.body)
}

func (d *decoder) take(n int) []byte {
	if n > len(d.body)-d.at {
		d.fail(tooShort())
		return nil
	}
	d.at += n
	return d.body[d.at-n : d.at]
}

func (d *decoder) byte() byte {
	if b := d.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) uint16() uint16 {
	if b := d.take(2); len(b) == 2 {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) varint() int {
	rest := d.body[d.at:]
	n, digits := binary.Uvarint(rest[:min(len(rest), maxDigits)])
	switch {
	case digits <= 0 && len(rest) < maxDigits:
		d.fail(tooShort())
	case digits <= 0, digits > varintLength(int(n)): // [MQTT-1.5.5-1]
		d.fail(malformed("a number with more digits than it needs, or than four"))
	default:
		d.at += digits
	}
	return int(n)
}

// binary reads binary data, or a string without checking it.
func (d *decoder) binary() []byte {
	rest := d.body[d.at:]
	if len(rest) >= 2 {
		if end := 2 + int(binary.BigEndian.Uint16(rest)); end <= len(rest) {
			d.at += end
			return rest[2:end]
		}
	}
	d.fail(tooShort())
	return nil
}

func tooShort() *Error { return malformed("the packet ends too early") }

// text reads a string and checks it (MQTT 5, 1.5.4).
func (d *decoder) text() []byte {
	s := d.binary()
	if !validText(s) {
		d.fail(invalidText())
		return nil
	}
	return s
}

func invalidText() *Error { return malformed("a string that is not UTF-8, or contains NUL") }

// validText reports whether s is UTF-8 without NUL.
func validText(s []byte) bool { return utf8.Valid(s) && bytes.IndexByte(s, 0) < 0 }

// packetID reads a packet identifier (MQTT 5, 2.2.1).
func (d *decoder) packetID() uint16 {
	id := d.uint16()
	if id == 0 {
		d.fail(violation("packet identifier 0")) // [MQTT-2.2.1-3]
	}
	return id
}

// reason reads a reason code and properties, both of which may be missing.
func (d *decoder) reason(p *properties, allowed propertySet) (code byte) {
	if d.left() > 0 {
		code = d.byte()
	}
	if d.left() > 0 {
		d.properties(p, allowed)
	}
	return code
}

func (d *decoder) end() {
	if n := d.left(); n > 0 {
		d.fail(malformed(fmt.Sprintf("%d bytes after the end of the packet", n)))
	}
}

func appendString[S string | []byte](dst []byte, s S) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

// varintLength returns the size of n as a Variable Byte Integer, in bytes.
func varintLength(n int) int {
	digits := 1
	for ; n >= 0x80; n >>= 7 {
		digits++
	}
	return digits
}
