package emulator

import (
	"bytes"
	"strings"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/store"
)

// request is one request on its way through the server.
type request struct {
	Request
	from     *link
	packetID uint16
	deadline time.Time // of its message expiry; zero: none
	action   Action
}

// receive takes a PUBLISH to the request topic with QoS 0 or 1. It runs on the
// connection's reader; false ends the connection.
func (s *Server) receive(l *link, cl *mqtt.Client, pk packets.Packet) bool {
	topic := pk.Properties.ResponseTopic
	switch {
	case wire.IsForbiddenResponseTopic(topic):
		l.disconnect(packets.ErrTopicNameInvalid.Code)
		return false
	case strings.ContainsAny(topic, "+#"): // MQTT 5, 3.3.2.3.5
		l.disconnect(packets.ErrProtocolViolation.Code)
		return false
	}
	if pk.FixedHeader.Qos == 1 && !l.received(int(s.opts.ReceiveMaximum)) {
		l.disconnect(packets.ErrReceiveMaximum.Code)
		return false
	}
	if !s.mayUse(cl, wire.RequestTopic, true) {
		if pk.FixedHeader.Qos == 1 {
			l.puback(pk.PacketID, packets.ErrNotAuthorized.Code)
		}
		return true
	}
	// MQTT 3 has neither a response topic nor correlation data.
	if pk.FixedHeader.Qos == 0 || topic == "" || len(pk.Properties.CorrelationData) == 0 {
		s.update(func() {
			s.counts.Ignored++
			if pk.FixedHeader.Qos == 1 {
				l.puback(pk.PacketID, packets.CodeSuccess.Code)
			}
		})
		return true
	}
	r := &request{from: l, packetID: pk.PacketID}
	r.Request = Request{
		ClientID: cl.ID, Username: string(cl.Properties.Username), Payload: pk.Payload,
		ResponseTopic: topic, CorrelationData: pk.Properties.CorrelationData,
	}
	properties := make([]Property, len(pk.Properties.User))
	for i, p := range pk.Properties.User {
		properties[i] = Property{p.Key, p.Val}
	}
	r.setProperties(properties)

	s.mu.Lock()
	intercept := s.intercept
	s.mu.Unlock()
	if intercept != nil {
		l.hold(false) // it may take its time
		r.action = intercept(r.Request)
	}
	l.hold(true)
	goOn := true
	s.update(func() { goOn = s.admit(r, time.Duration(pk.Properties.MessageExpiryInterval)*time.Second) })
	return goOn
}

// admit acknowledges a request and sees that it is processed.
func (s *Server) admit(r *request, expiry time.Duration) bool {
	l, action := r.from, r.action
	if s.links[r.ClientID] != l {
		return false
	}
	s.counts.Requests++
	switch {
	case action.Cut:
		s.forget(l)
		l.cut()
		return false
	case action.Disconnect != 0:
		l.disconnect(action.Disconnect)
		return false
	case action.Refuse != 0:
		l.puback(r.packetID, action.Refuse)
		return true
	}
	if expiry > 0 {
		r.deadline = s.now().Add(expiry)
	}
	if !action.PubackLast && !action.CutAfter {
		s.acknowledge(r)
	}
	if action.Drop {
		s.acknowledgeLast(r)
		return true
	}
	s.after(s.opts.Latency+action.Delay, func() { s.process(r) })
	return !action.CutAfter || s.links[r.ClientID] == l
}

func (s *Server) acknowledge(r *request) {
	if !r.action.NoPuback {
		r.from.puback(r.packetID, packets.CodeSuccess.Code)
	}
}

func (s *Server) acknowledgeLast(r *request) {
	if r.action.PubackLast {
		s.acknowledge(r)
	}
}

// process has the engine answer. A request that its message expiry has overtaken is
// discarded silently (protocol.md 1.4).
func (s *Server) process(r *request) {
	if !r.deadline.IsZero() && !s.now().Before(r.deadline) {
		s.counts.Expired++
		s.acknowledgeLast(r)
		return
	}
	connected := s.links[r.ClientID] == r.from
	if !connected && r.Verb() == wire.VerbKeyNotify {
		return // the registration would have ended with the connection
	}
	resp := newResponse(s.engine.Do(r.forStore(), nil))
	s.notify(s.engine.TakeNotifications())
	if r.action.CutAfter {
		s.forget(r.from)
		r.from.cut()
		return
	}
	if r.action.DropReply {
		s.acknowledgeLast(r)
		return
	}
	answer := Answer{
		Topic: r.ResponseTopic, CorrelationData: r.CorrelationData, ContentType: s.contentType(),
		Properties: resp.Properties, Payload: resp.Payload,
	}
	if r.action.Rewrite != nil {
		r.action.Rewrite(&answer)
	}
	s.after(r.action.DelayReply, func() {
		s.reply(answer)
		if r.action.Duplicate {
			s.reply(answer)
		}
		s.acknowledgeLast(r)
	})
}

func (s *Server) contentType() string {
	if s.opts.Variants.NoContentType {
		return ""
	}
	return wire.ContentType
}

// reply sends an answer to whoever is subscribed to its topic, as any message.
func (s *Server) reply(a Answer) {
	pk := packets.Packet{
		TopicName: a.Topic,
		Payload:   a.Payload,
		Properties: packets.Properties{
			CorrelationData: a.CorrelationData, ContentType: a.ContentType, User: userProperties(a.Properties),
		},
	}
	subscribers := s.broker.Topics.Subscribers(a.Topic)
	if len(subscribers.Shared) > 0 {
		subscribers.SelectShared()
		subscribers.MergeSharedSelected()
	}
	if len(subscribers.Subscriptions) == 0 {
		s.counts.Undelivered++
		return
	}
	for id, sub := range subscribers.Subscriptions {
		out := pk
		out.FixedHeader.Qos = min(1, sub.Qos)
		for _, n := range sub.Identifiers {
			out.Properties.SubscriptionIdentifier = append(out.Properties.SubscriptionIdentifier, n)
		}
		s.deliver(id, out)
	}
	s.counts.Replies++
}

// deliver sends a message to a client, or keeps it for a session whose client is
// away.
func (s *Server) deliver(id string, pk packets.Packet) {
	if l := s.links[id]; l != nil {
		if !l.publish(pk, l.lasts) {
			s.counts.TooLarge++
		}
		return
	}
	if cl, ok := s.broker.Clients.Get(id); ok && pk.FixedHeader.Qos > 0 && sessionLasts(cl) {
		s.keep(cl, pk)
	}
}

// notify sends notifications straight to their clients, whether these are
// subscribed or not, once (protocol.md 1.2).
func (s *Server) notify(notes []store.Notification) {
	for _, n := range notes {
		l := s.links[n.ClientID]
		if l == nil {
			continue
		}
		sent := l.publish(packets.Packet{
			FixedHeader: packets.FixedHeader{Qos: 1},
			TopicName:   n.Topic,
			Payload:     bytes.Clone(n.Payload),
			Properties:  packets.Properties{ContentType: s.contentType(), User: userProperties(ownProperties(n.Properties))},
		}, false)
		if !sent {
			s.counts.TooLarge++
			continue
		}
		s.counts.Notifications++
	}
}

func userProperties(properties []Property) []packets.UserProperty {
	user := make([]packets.UserProperty, len(properties))
	for i, p := range properties {
		user[i] = packets.UserProperty{Key: p.Name, Val: p.Value}
	}
	return user
}
