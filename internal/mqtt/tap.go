package mqtt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// An Event describes a packet for a trace. It never holds the password or the authentication
// data.
type Event struct {
	Time   time.Time
	Sent   bool
	Type   string // MQTT 5 packet name, such as "PUBACK"
	ID     uint16 // Packet Identifier; 0 = none
	Size   int    // bytes of the MQTT packet
	Detail string // the main fields as text; empty for a PUBLISH

	ClientID, Username string   // of a CONNECT
	Filters            []string // of a SUBSCRIBE
	Codes              []byte   // the reason codes of an answer

	Message   *Message // set only for a PUBLISH
	Duplicate bool     // the DUP flag of a received PUBLISH
}

func (in *incoming) event() Event {
	e := Event{Time: time.Now(), Type: in.name(), Size: in.size}
	switch in.kind {
	case packets.PUBLISH:
		m := in.publish.Message()
		e.ID, e.Message, e.Duplicate = in.publish.id, &m, in.publish.duplicate
	case packets.PUBACK:
		e.ID, e.Codes, e.Detail = in.puback.id, []byte{in.puback.code}, reasonDetail(e.Type, in.puback.code, &packets.Properties{ReasonString: in.puback.reason})
	default:
		return newEvent(in.other, in.size, false)
	}
	return e
}

// publishEvent returns the Event of a sent PUBLISH. It copies m, because the caller of Publish may
// reuse the memory of m.
func publishEvent(m *Message, id uint16, size int) Event {
	c := *m
	c.Payload, c.Correlation, c.User, c.QoS = slices.Concat(m.Payload[:m.LargeAt], []byte(m.Large), m.Payload[m.LargeAt:]), bytes.Clone(m.Correlation), slices.Clone(m.User), 1
	c.Large, c.LargeAt = "", 0
	return Event{Time: time.Now(), Sent: true, Type: "PUBLISH", ID: id, Size: size, Message: &c}
}

func newEvent(cp *packets.ControlPacket, size int, sent bool) Event {
	e := Event{Time: time.Now(), Sent: sent, Type: cp.PacketType(), ID: cp.PacketID(), Size: size}
	switch p := cp.Content.(type) {
	case *packets.Connect:
		e.ClientID, e.Username, e.Detail = p.ClientID, p.Username, connectDetail(p)
	case *packets.Connack:
		e.Codes = []byte{p.ReasonCode}
		e.Detail = reasonDetail(e.Type, p.ReasonCode, p.Properties) + limitsDetail(p.Properties)
	case *packets.Subscribe:
		filters := make([]string, len(p.Subscriptions))
		for i, s := range p.Subscriptions {
			e.Filters = append(e.Filters, s.Topic)
			filters[i] = fmt.Sprintf("%q QoS %d", s.Topic, s.QoS)
		}
		e.Detail = strings.Join(filters, ", ")
	case *packets.Suback:
		e.Codes = p.Reasons
		codes := make([]string, len(p.Reasons))
		for i, code := range p.Reasons {
			codes[i] = reasonDetail(e.Type, code, p.Properties)
		}
		e.Detail = strings.Join(codes, ", ")
	case *packets.Disconnect:
		e.Codes = []byte{p.ReasonCode}
		e.Detail = reasonDetail(e.Type, p.ReasonCode, p.Properties)
	case *packets.Auth:
		e.Detail = reasonDetail(e.Type, p.ReasonCode, p.Properties) + authDetail(p.Properties)
	}
	return e
}

func connectDetail(p *packets.Connect) string {
	s := fmt.Sprintf("client id %q, clean start %t, keep alive %ds", p.ClientID, p.CleanStart, p.KeepAlive)
	if p.UsernameFlag {
		s += fmt.Sprintf(", user name %q", p.Username)
	}
	if p.PasswordFlag {
		s += ", password"
	}
	s += authDetail(p.Properties)
	for _, user := range p.Properties.User {
		s += fmt.Sprintf(", %s=%s", user.Key, user.Value)
	}
	return s
}

func authDetail(props *packets.Properties) string {
	if props == nil || props.AuthMethod == "" {
		return ""
	}
	return fmt.Sprintf(", authentication method %q", props.AuthMethod)
}

func reasonDetail(packet string, code byte, props *packets.Properties) string {
	s := fmt.Sprintf("0x%02X %s", code, ReasonName(packet, code))
	if props != nil && props.ReasonString != "" {
		s += fmt.Sprintf(" (%q)", props.ReasonString)
	}
	if props != nil && props.ServerReference != "" {
		s += fmt.Sprintf(", server reference %q", props.ServerReference)
	}
	return s
}

func limitsDetail(props *packets.Properties) string {
	var s string
	if v := props.ReceiveMaximum; v != nil {
		s += fmt.Sprintf(", receive maximum %d", *v)
	}
	if v := props.MaximumPacketSize; v != nil {
		s += fmt.Sprintf(", maximum packet size %d", *v)
	}
	if v := props.ServerKeepAlive; v != nil {
		s += fmt.Sprintf(", keep alive %ds", *v)
	}
	return s
}
