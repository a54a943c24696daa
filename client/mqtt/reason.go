package mqtt

import (
	"errors"
	"fmt"
	"strings"
)

// Reason codes that callers tell apart (MQTT 5, 2.4).
const (
	ReasonBadLogin       byte = 0x86
	ReasonNotAuthorized  byte = 0x87
	ReasonServerBusy     byte = 0x89
	ReasonBanned         byte = 0x8A
	ReasonBadAuthMethod  byte = 0x8C
	ReasonTakenOver      byte = 0x8E
	ReasonTopicInvalid   byte = 0x90
	ReasonPacketTooLarge byte = 0x95
	ReasonQuotaExceeded  byte = 0x97

	reasonNoSubscribers      byte = 0x10
	reasonUnsupportedVersion byte = 0x84
)

// A ReasonError is a refusal by the broker: a CONNACK, SUBACK or PUBACK with a
// reason code of 0x80 or more, or a DISCONNECT.
type ReasonError struct {
	Packet string // "CONNACK", "SUBACK", "PUBACK", "DISCONNECT"
	Code   byte
	Text   string // the broker's Reason String, if it sent one
	Topic  string // the refused topic, for SUBACK and PUBACK
}

func (e *ReasonError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s 0x%02X %s", e.Packet, e.Code, ReasonName(e.Packet, e.Code))
	if e.Topic != "" {
		fmt.Fprintf(&b, " for %q", e.Topic)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " (%q)", e.Text)
	}
	return b.String()
}

// ReasonCode returns the code of the ReasonError that err wraps. ok is false if there is
// none.
func ReasonCode(err error) (code byte, ok bool) {
	if r, found := errors.AsType[*ReasonError](err); found {
		return r.Code, true
	}
	return 0, false
}

// ReasonName returns the name of a reason code (MQTT 5, 2.4) in lower case. It depends on
// the packet, because three codes have several meanings.
func ReasonName(packet string, code byte) string {
	switch code {
	case 0x00:
		switch packet {
		case "SUBACK":
			return "granted QoS 0"
		case "DISCONNECT":
			return "normal disconnection"
		}
		return "success"
	case 0x01:
		return "granted QoS 1"
	case 0x02:
		return "granted QoS 2"
	case 0x04:
		return "disconnect with will message"
	case 0x10:
		return "no matching subscribers"
	case 0x11:
		return "no subscription existed"
	case 0x18:
		return "continue authentication"
	case 0x19:
		return "re-authenticate"
	case 0x80:
		return "unspecified error"
	case 0x81:
		return "malformed packet"
	case 0x82:
		return "protocol error"
	case 0x83:
		return "implementation specific error"
	case 0x84:
		return "unsupported protocol version"
	case 0x85:
		return "client identifier not valid"
	case 0x86:
		return "bad user name or password"
	case 0x87:
		return "not authorized"
	case 0x88:
		return "server unavailable"
	case 0x89:
		return "server busy"
	case 0x8A:
		return "banned"
	case 0x8B:
		return "server shutting down"
	case 0x8C:
		return "bad authentication method"
	case 0x8D:
		return "keep alive timeout"
	case 0x8E:
		return "session taken over"
	case 0x8F:
		return "topic filter invalid"
	case 0x90:
		return "topic name invalid"
	case 0x91:
		return "packet identifier in use"
	case 0x92:
		return "packet identifier not found"
	case 0x93:
		return "receive maximum exceeded"
	case 0x94:
		return "topic alias invalid"
	case 0x95:
		return "packet too large"
	case 0x96:
		return "message rate too high"
	case 0x97:
		return "quota exceeded"
	case 0x98:
		return "administrative action"
	case 0x99:
		return "payload format invalid"
	case 0x9A:
		return "retain not supported"
	case 0x9B:
		return "QoS not supported"
	case 0x9C:
		return "use another server"
	case 0x9D:
		return "server moved"
	case 0x9E:
		return "shared subscriptions not supported"
	case 0x9F:
		return "connection rate exceeded"
	case 0xA0:
		return "maximum connect time"
	case 0xA1:
		return "subscription identifiers not supported"
	case 0xA2:
		return "wildcard subscriptions not supported"
	default:
		return "unknown reason"
	}
}
