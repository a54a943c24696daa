package mqtt

import (
	"errors"
	"fmt"
	"strings"
)

// Reason codes that callers distinguish (MQTT 5, 2.4).
const (
	ReasonBadLogin       byte = 0x86
	ReasonNotAuthorized  byte = 0x87
	ReasonServerBusy     byte = 0x89
	ReasonBanned         byte = 0x8A
	ReasonBadAuthMethod  byte = 0x8C
	ReasonTakenOver      byte = 0x8E
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
	Topic  string // the refused topic filter of a SUBACK, or topic of a PUBACK

	// Reference is the broker's Server Reference, if it sent one: the other brokers to use, separated
	// by spaces (MQTT 5, 4.13.1.1).
	Reference string
}

// Permanent reports whether the broker would refuse the same packet, or a new connection after the same DISCONNECT, again.
func (e *ReasonError) Permanent() bool {
	switch e.Code {
	case 0x81, 0x82, 0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C, 0x8E, 0x8F, 0x90, 0x94, 0x95, 0x99, 0x9A, 0x9B, 0x9D, 0x9E, 0xA1, 0xA2:
		return true
	case 0x83, 0x9C:
		return e.Packet == "CONNACK"
	}
	return false
}

func (e *ReasonError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s 0x%02X %s", e.Packet, e.Code, ReasonName(e.Packet, e.Code))
	if e.Topic != "" {
		fmt.Fprintf(&b, " for %q", e.Topic)
	}
	letters := strings.NewReplacer(" ", "")
	if e.Text != "" && !strings.EqualFold(letters.Replace(e.Text), letters.Replace(ReasonName(e.Packet, e.Code))) {
		fmt.Fprintf(&b, " (%q)", e.Text)
	}
	if e.Reference != "" {
		fmt.Fprintf(&b, ": %q", e.Reference)
	}
	return b.String()
}

// Is reports whether target is an error for this reason code.
func (e *ReasonError) Is(target error) bool {
	t, ok := target.(interface{ HasCode(byte) bool })
	return ok && t.HasCode(e.Code)
}

// ReasonCode returns the code of the ReasonError that err is or wraps. ok is false if there is no
// ReasonError.
func ReasonCode(err error) (code byte, ok bool) {
	if r, found := errors.AsType[*ReasonError](err); found {
		return r.Code, true
	}
	return 0, false
}

// ReasonName returns the name of a reason code (MQTT 5, 2.4), such as "not authorized".
// packet is the packet type, such as "SUBACK", because the name of code 0 depends on the type.
func ReasonName(packet string, code byte) string {
	switch {
	case code == 0 && packet == "SUBACK":
		return "granted QoS 0"
	case code == 0 && packet == "DISCONNECT":
		return "normal disconnection"
	case int(code) >= len(reasonNames) || reasonNames[code] == "":
		return "unknown reason"
	}
	return reasonNames[code]
}

var reasonNames = [...]string{
	0x00: "success",
	0x01: "granted QoS 1",
	0x02: "granted QoS 2",
	0x04: "disconnect with will message",
	0x10: "no matching subscribers",
	0x11: "no subscription existed",
	0x18: "continue authentication",
	0x19: "re-authenticate",
	0x80: "unspecified error",
	0x81: "malformed packet",
	0x82: "protocol error",
	0x83: "implementation specific error",
	0x84: "unsupported protocol version",
	0x85: "client identifier not valid",
	0x86: "bad user name or password",
	0x87: "not authorized",
	0x88: "server unavailable",
	0x89: "server busy",
	0x8A: "banned",
	0x8B: "server shutting down",
	0x8C: "bad authentication method",
	0x8D: "keep alive timeout",
	0x8E: "session taken over",
	0x8F: "topic filter invalid",
	0x90: "topic name invalid",
	0x91: "packet identifier in use",
	0x92: "packet identifier not found",
	0x93: "receive maximum exceeded",
	0x94: "topic alias invalid",
	0x95: "packet too large",
	0x96: "message rate too high",
	0x97: "quota exceeded",
	0x98: "administrative action",
	0x99: "payload format invalid",
	0x9A: "retain not supported",
	0x9B: "QoS not supported",
	0x9C: "use another server",
	0x9D: "server moved",
	0x9E: "shared subscriptions not supported",
	0x9F: "connection rate exceeded",
	0xA0: "maximum connect time",
	0xA1: "subscription identifiers not supported",
	0xA2: "wildcard subscriptions not supported",
}
