package emulator

import (
	"bytes"
	"slices"
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/broker"
	"github.com/sscli/sscli/emulator/store"
)

// handle takes a message to the request topic. It runs on the connection's reader.
func (s *Server) handle(c *broker.Client, p *broker.Publish) byte {
	from := peerOf(c)
	if s.journal.admit(); !c.Connected() {
		return broker.Later
	}
	if len(p.ResponseTopic) > 0 && !bytes.Equal(p.ResponseTopic, from.answers) {
		if wire.IsForbiddenResponseTopic(string(p.ResponseTopic)) {
			c.Disconnect(broker.TopicNameInvalid)
			return broker.Success
		}
		from.answers = append(from.answers[:0], p.ResponseTopic...)
	}
	// MQTT 3 has neither a response topic nor correlation data.
	if p.QoS != 1 || len(p.ResponseTopic) == 0 || len(p.Correlation) == 0 {
		s.counts.Ignored++
		s.observeIgnored(&store.Request{ClientID: c.ID, Username: c.Username, Payload: p.Payload},
			whyIgnored(p.QoS, len(p.ResponseTopic) > 0, len(p.Correlation) > 0))
		return broker.Success
	}
	if s.intercept == nil && s.opts.Latency == 0 {
		s.answer(c, p)
		return broker.Later
	}
	r := newRequest(c, p)
	if intercept := s.intercept; intercept != nil {
		s.broker.Unlock() // it may take its time, and call the server
		r.action = intercept(r.Request)
		s.broker.Lock()
	}
	if c.Connected() {
		s.admit(r)
	}
	// The broker reported what had changed when it was unlocked for the interceptor.
	s.changed.Broadcast()
	return broker.Later
}

// answer takes an ordinary request all the way, from its packet to the packets of the answers,
// without allocating.
func (s *Server) answer(c *broker.Client, p *broker.Publish) {
	s.counts.Requests++
	c.Ack(p.ID, broker.Success)
	s.asked = store.Request{ClientID: c.ID, Username: c.Username, Payload: p.Payload}
	for name, value := range p.User() {
		switch {
		case string(name) == wire.PropTimestamp && s.asked.Timestamp == nil:
			s.asked.Timestamp = value
		case string(name) == wire.PropFence && s.asked.Fence == nil:
			s.asked.Fence = value
		case string(name) == wire.PropPersist:
			s.asked.Persist = string(value) == "true"
		}
	}
	resp := s.store.Do(&s.asked, s.payload[:0])
	s.payload = reusable(resp.Payload)
	s.notify()
	s.properties = s.beginProperties(s.properties[:0], s.contentType(), p.Correlation)
	for _, u := range resp.Properties {
		s.properties = broker.AppendUser(s.properties, u.Name, u.Value)
	}
	if s.journal.pending() {
		s.replyLater(p.ResponseTopic, resp.Payload)
	} else {
		s.reply(p.ResponseTopic, resp.Payload, s.properties)
	}
	s.arm()
}

// replyLater is reply when the data file has what was changed so far.
func (s *Server) replyLater(topic, payload []byte) {
	all := slices.Concat(topic, payload, s.properties)
	t, p := len(topic), len(topic)+len(payload)
	s.journal.hold(len(all), func() { s.reply(all[:t], all[t:p], all[p:]) })
}

// reusable returns a buffer for the next request, unless it has become large.
func reusable(buf []byte) []byte {
	const most = 64 << 10
	if cap(buf) > most {
		return nil
	}
	return buf
}

// request is one request on its way through the server, when that takes time.
type request struct {
	Request
	from     *broker.Client
	packetID uint16
	expiry   time.Duration // 0: none
	deadline time.Time     // zero: none
	action   Action
}

// newRequest copies a request out of its packet.
func newRequest(c *broker.Client, p *broker.Publish) *request {
	r := &request{from: c, packetID: p.ID, expiry: p.Expiry}
	r.Request = Request{
		ClientID: c.ID, Username: c.Username, Payload: bytes.Clone(p.Payload),
		ResponseTopic: string(p.ResponseTopic), CorrelationData: bytes.Clone(p.Correlation),
	}
	properties := []Property{}
	for name, value := range p.User() {
		properties = append(properties, Property{string(name), string(value)})
	}
	r.setProperties(properties)
	return r
}

// admit acknowledges a request and sees that it is processed.
func (s *Server) admit(r *request) {
	c, action := r.from, r.action
	s.counts.Requests++
	switch {
	case action.Cut:
		c.Cut()
		return
	case action.Disconnect != 0:
		c.Disconnect(action.Disconnect)
		return
	case action.Refuse != 0:
		c.Ack(r.packetID, action.Refuse)
		return
	}
	if r.expiry > 0 {
		r.deadline = s.now().Add(r.expiry)
	}
	if !action.PubackLast && !action.CutAfter {
		s.acknowledge(r)
	}
	if action.Drop {
		s.acknowledgeLast(r)
		return
	}
	s.after(s.opts.Latency+action.Delay, func() { s.process(r) })
}

func (s *Server) acknowledge(r *request) {
	if !r.action.NoPuback {
		r.from.Ack(r.packetID, broker.Success)
	}
}

func (s *Server) acknowledgeLast(r *request) {
	if r.action.PubackLast {
		s.acknowledge(r)
	}
}

// process has the store answer. A request whose message expiry has passed is discarded
// silently (protocol.md 1.4).
func (s *Server) process(r *request) {
	if !r.deadline.IsZero() && !s.now().Before(r.deadline) {
		s.counts.Expired++
		s.observeIgnored(r.forStore(), "its message expiry had passed")
		s.acknowledgeLast(r)
		return
	}
	if !r.from.Connected() && r.Verb() == wire.VerbKeyNotify {
		return // the registration would have ended with the connection
	}
	resp := newResponse(s.store.Do(r.forStore(), nil))
	s.notify()
	s.arm()
	if r.action.CutAfter {
		r.from.Cut()
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
		if !s.journal.pending() {
			s.finish(r, answer)
			return
		}
		s.journal.hold(len(answer.Payload), func() { s.finish(r, answer) })
	})
}

// finish sends an answer as the request's Action wants it.
func (s *Server) finish(r *request, answer Answer) {
	times := 1
	if r.action.Duplicate {
		times = 2
	}
	for range times {
		s.properties = s.beginProperties(s.properties[:0], answer.ContentType, answer.CorrelationData)
		for _, u := range answer.Properties {
			s.properties = broker.AppendUser(s.properties, u.Name, u.Value)
		}
		s.reply([]byte(answer.Topic), answer.Payload, s.properties)
	}
	s.acknowledgeLast(r)
}

func (s *Server) contentType() string {
	if s.opts.Variants.NoContentType {
		return ""
	}
	return wire.ContentType
}

// beginProperties appends the properties that come before the user properties.
func (s *Server) beginProperties(dst []byte, contentType string, correlation []byte) []byte {
	if contentType != "" {
		dst = broker.AppendContentType(dst, contentType)
	}
	if len(correlation) > 0 {
		dst = broker.AppendCorrelation(dst, correlation)
	}
	return dst
}

// reply publishes an answer to the subscribers of its topic.
func (s *Server) reply(topic, payload, properties []byte) {
	d := s.broker.Publish(topic, broker.Message{QoS: 1, Properties: properties, Payload: payload})
	s.counts.TooLarge += d.TooLarge
	if d.Matched == 0 {
		s.counts.Undelivered++
		return
	}
	s.counts.Replies++
}

// notify sends what the store has for watchers straight to their clients, whether these
// are subscribed or not, once (protocol.md 1.2).
func (s *Server) notify() {
	for _, n := range s.store.TakeNotifications() {
		c := s.broker.Client(n.ClientID)
		if c == nil {
			continue
		}
		s.properties = s.beginProperties(s.properties[:0], s.contentType(), nil)
		for _, u := range n.Properties {
			s.properties = broker.AppendUser(s.properties, u.Name, u.Value)
		}
		if !s.journal.pending() {
			s.tell(c, n.Topic, n.Payload, s.properties)
			continue
		}
		all := slices.Concat(n.Payload, s.properties)
		s.journal.hold(len(all), func() { s.tell(c, n.Topic, all[:len(n.Payload)], all[len(n.Payload):]) })
	}
}

// tell sends a notification to a client, if it is still connected.
func (s *Server) tell(c *broker.Client, topic string, payload, properties []byte) {
	if !c.Send(topic, broker.Message{QoS: 1, Properties: properties, Payload: payload}) {
		s.counts.TooLarge++
		return
	}
	s.counts.Notifications++
}
