package emulator

import (
	"errors"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/sscli/sscli/client/wire"
)

// hook is where the store sits in mochi.
type hook struct {
	mqtt.HookBase
	s *Server
}

func (h *hook) ID() string { return "statestore" }

func (h *hook) Provides(b byte) bool {
	switch b {
	case mqtt.OnConnect, mqtt.OnConnectAuthenticate, mqtt.OnACLCheck, mqtt.OnSessionEstablish, mqtt.OnSessionEstablished,
		mqtt.OnDisconnect, mqtt.OnAuthPacket, mqtt.OnPacketRead, mqtt.OnPacketEncode, mqtt.OnPublish:
		return true
	default:
		return false
	}
}

// methodSAT is the authentication method of service-account tokens (protocol.md 7.2).
const methodSAT = "K8S-SAT"

// OnConnect judges what mochi knows nothing of: the wish of [Server.RefuseConnect] and
// the authentication method.
func (h *hook) OnConnect(cl *mqtt.Client, pk packets.Packet) error {
	if reason := h.s.refusal(cl); reason >= packets.ErrUnspecifiedError.Code {
		code := packets.Code{Code: reason, Reason: "refused"}
		return errors.Join(code, h.s.broker.SendConnack(cl, code, false, nil))
	}
	identify(cl)
	method := pk.Properties.AuthenticationMethod
	if h.s.opts.VerifyToken == nil || method == "" {
		return nil
	}
	code := packets.ErrNotAuthorized
	switch {
	case method != methodSAT:
		code = packets.ErrBadAuthenticationMethod
	case h.s.verify(cl, pk.Properties.AuthenticationData):
		return nil
	}
	return errors.Join(code, h.s.broker.SendConnack(cl, code, false, nil))
}

// OnConnectAuthenticate judges user name and password; false is CONNACK 0x86.
func (h *hook) OnConnectAuthenticate(_ *mqtt.Client, pk packets.Packet) bool {
	o := h.s.opts
	switch {
	case o.VerifyToken != nil && pk.Properties.AuthenticationMethod != "":
		return true // OnConnect has judged it
	case o.CheckLogin != nil:
		return o.CheckLogin(string(pk.Connect.Username), pk.Connect.Password)
	default:
		return o.VerifyToken == nil
	}
}

// OnAuthPacket answers a re-authentication (protocol.md 7.2).
func (h *hook) OnAuthPacket(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	method := pk.Properties.AuthenticationMethod
	if pk.ReasonCode != packets.CodeReAuthenticate.Code || method == "" || method != cl.Properties.Props.AuthenticationMethod {
		return pk, packets.ErrProtocolViolation
	}
	switch reason := h.s.reauthRefusal(cl, pk.Properties.AuthenticationData); {
	case reason >= packets.ErrUnspecifiedError.Code:
		return pk, packets.Code{Code: reason, Reason: "refused"}
	case reason == packets.CodeContinueAuthentication.Code:
		return pk, answerAuth(cl, packets.CodeContinueAuthentication)
	}
	if h.s.opts.VerifyToken != nil && !h.s.verify(cl, pk.Properties.AuthenticationData) {
		return pk, packets.ErrNotAuthorized
	}
	return pk, answerAuth(cl, packets.CodeSuccess)
}

func answerAuth(cl *mqtt.Client, code packets.Code) error {
	return cl.WritePacket(packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Auth},
		ReasonCode:  code.Code,
		Properties:  packets.Properties{AuthenticationMethod: cl.Properties.Props.AuthenticationMethod},
	})
}

// OnACLCheck is for topics; who may use which key is the engine's affair.
func (h *hook) OnACLCheck(cl *mqtt.Client, topic string, write bool) bool {
	return h.s.mayUse(cl, topic, write)
}

// OnPacketEncode adds to CONNACK what mochi leaves out.
func (h *hook) OnPacketEncode(cl *mqtt.Client, pk packets.Packet) packets.Packet {
	if pk.FixedHeader.Type == packets.Connack && pk.ReasonCode == 0 {
		pk.Properties.MaximumPacketSize = h.s.opts.MaxPacketSize
		pk.Properties.AuthenticationMethod = cl.Properties.Props.AuthenticationMethod
	}
	return pk
}

// OnSessionEstablish comes before mochi takes the session over from an earlier
// connection and before CONNACK.
func (h *hook) OnSessionEstablish(cl *mqtt.Client, _ packets.Packet) {
	l, ok := cl.Net.Conn.(*link)
	if !ok {
		return
	}
	l.limits(cl.Properties.ProtocolVersion, cl.Properties.Props.ReceiveMaximum, cl.Properties.Props.MaximumPacketSize)
	// Flow control is the link's: to mochi the client is without a limit.
	cl.Properties.Props.ReceiveMaximum = 0
	cl.State.Inflight.ResetSendQuota(0)
	h.s.attach(l, cl)
}

func (h *hook) OnSessionEstablished(cl *mqtt.Client, _ packets.Packet) {
	if l, ok := cl.Net.Conn.(*link); ok {
		l.settle()
	}
}

// OnDisconnect comes before mochi deletes the session. When another connection is
// taking it over, mochi must have noted that, or it would delete the new session.
func (h *hook) OnDisconnect(cl *mqtt.Client, _ error, _ bool) {
	l, ok := cl.Net.Conn.(*link)
	if !ok {
		return
	}
	if next := h.s.detach(l); next != nil {
		<-next.settled
	}
}

// OnPacketRead takes the requests to the store out before mochi sees them: that way
// the time and the reason of their PUBACK are ours. Acknowledgements lose the ids
// that mochi does not know.
func (h *hook) OnPacketRead(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	l, ok := cl.Net.Conn.(*link)
	if !ok {
		return pk, nil
	}
	if limit := h.s.opts.MaxPacketSize; limit > 0 && wholeSize(pk.FixedHeader.Remaining) > int(limit) {
		l.disconnect(packets.ErrPacketTooLarge.Code)
		return pk, packets.ErrRejectPacket
	}
	switch pk.FixedHeader.Type {
	case packets.Puback:
		pk.PacketID = l.acknowledged(pk.PacketID, true)
	case packets.Pubrec:
		if id := l.acknowledged(pk.PacketID, pk.ReasonCode >= packets.ErrUnspecifiedError.Code); id != 0 {
			pk.PacketID = id
		}
	case packets.Pubcomp:
		if id := l.acknowledged(pk.PacketID, true); id != 0 {
			pk.PacketID = id
		}
	case packets.Disconnect:
		if pk.Properties.SessionExpiryIntervalFlag {
			h.s.update(func() { l.lasts = pk.Properties.SessionExpiryInterval > 0 })
		}
	case packets.Publish:
		if !h.isRequest(cl, pk) {
			return pk, nil
		}
		if !h.s.receive(l, cl, pk) {
			return pk, packets.ErrRejectPacket
		}
		return packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Puback}}, nil // id 0: mochi does nothing
	}
	return pk, nil
}

// wholeSize is the length of a packet with this remaining length.
func wholeSize(remaining int) int {
	n := remaining + 2
	for ; remaining > 0x7f; remaining >>= 7 {
		n++
	}
	return n
}

// isRequest leaves to mochi what it has to complain about, and QoS 2, whose dance it
// knows; the store does not answer that, see OnPublish.
func (h *hook) isRequest(cl *mqtt.Client, pk packets.Packet) bool {
	if pk.FixedHeader.Qos > 1 || pk.PublishValidate(h.s.broker.Options.Capabilities.TopicAliasMaximum) != packets.CodeSuccess {
		return false
	}
	topic := pk.TopicName
	if pk.Properties.TopicAliasFlag {
		topic = cl.State.TopicAliases.Inbound.Set(pk.Properties.TopicAlias, topic)
	}
	return topic == wire.RequestTopic
}

// OnPublish sees requests with QoS 2 only: they are acknowledged and go nowhere.
func (h *hook) OnPublish(_ *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	if pk.TopicName != wire.RequestTopic {
		return pk, nil
	}
	h.s.update(func() { h.s.counts.Ignored++ })
	return pk, packets.CodeSuccessIgnore
}
