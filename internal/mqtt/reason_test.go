package mqtt

import (
	"errors"
	"fmt"
	"testing"
)

// TestReasonName checks the names of MQTT 5, 2.4, and that no other code has a name.
func TestReasonName(t *testing.T) {
	names := map[byte]string{
		0x00: "success", 0x01: "granted QoS 1", 0x02: "granted QoS 2", 0x04: "disconnect with will message",
		0x10: "no matching subscribers", 0x11: "no subscription existed", 0x18: "continue authentication",
		0x19: "re-authenticate", 0x80: "unspecified error", 0x81: "malformed packet", 0x82: "protocol error",
		0x83: "implementation specific error", 0x84: "unsupported protocol version", 0x85: "client identifier not valid",
		0x86: "bad user name or password", 0x87: "not authorized", 0x88: "server unavailable", 0x89: "server busy",
		0x8A: "banned", 0x8B: "server shutting down", 0x8C: "bad authentication method", 0x8D: "keep alive timeout",
		0x8E: "session taken over", 0x8F: "topic filter invalid", 0x90: "topic name invalid",
		0x91: "packet identifier in use", 0x92: "packet identifier not found", 0x93: "receive maximum exceeded",
		0x94: "topic alias invalid", 0x95: "packet too large", 0x96: "message rate too high", 0x97: "quota exceeded",
		0x98: "administrative action", 0x99: "payload format invalid", 0x9A: "retain not supported",
		0x9B: "QoS not supported", 0x9C: "use another server", 0x9D: "server moved",
		0x9E: "shared subscriptions not supported", 0x9F: "connection rate exceeded", 0xA0: "maximum connect time",
		0xA1: "subscription identifiers not supported", 0xA2: "wildcard subscriptions not supported",
	}
	for code := range 256 {
		want, ok := names[byte(code)]
		if !ok {
			want = "unknown reason"
		}
		for _, packet := range []string{"CONNACK", "PUBACK", "SUBACK", "DISCONNECT"} {
			want := want
			switch {
			case code == 0 && packet == "SUBACK":
				want = "granted QoS 0"
			case code == 0 && packet == "DISCONNECT":
				want = "normal disconnection"
			}
			if got := ReasonName(packet, byte(code)); got != want {
				t.Errorf("%s 0x%02X: %q, want %q", packet, code, got, want)
			}
		}
	}
}

func TestReasonError(t *testing.T) {
	err := &ReasonError{Packet: "PUBACK", Code: ReasonQuotaExceeded, Text: "buffers\nfull", Topic: "a/b"}
	const want = `PUBACK 0x97 quota exceeded for "a/b" ("buffers\nfull")`
	if err.Error() != want {
		t.Errorf("%s, want %s", err, want)
	}
	if code, ok := ReasonCode(fmt.Errorf("set: %w", &LostError{err})); !ok || code != 0x97 {
		t.Errorf("0x%02X, %t", code, ok)
	}
	if _, ok := ReasonCode(errors.New("other")); ok {
		t.Error("a reason code in an error without one")
	}
}
