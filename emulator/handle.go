package emulator

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// A request is one request that the server is processing. Its slices alias the packet and are valid
// until handle returns; clone copies them.
type request struct {
	store.Request
	origin
	responseTopic []byte
	correlation   []byte
	received      time.Time // arrival time on the real clock; zero = not known
	deadline      time.Time // end of the Message Expiry Interval, on the store's clock; zero = none
}

// An origin identifies the packet that contained a request, and holds the Action for the request.
type origin struct {
	client   *broker.Client
	packetID uint16
	action   Action // chosen by the interceptor; the zero Action without an interceptor
}

// acknowledge sends the PUBACK unless the action's NoPuback is set.
func (o *origin) acknowledge() {
	if !o.action.NoPuback {
		o.client.Ack(o.packetID, broker.Success)
	}
}

// acknowledgeLast sends the PUBACK if the action's PubackLast is set.
func (o *origin) acknowledgeLast() {
	if o.action.PubackLast {
		o.acknowledge()
	}
}

// clone returns a copy that stays valid after handle returns.
func (r *request) clone() *request {
	c := *r
	c.Words = nil // are in the payload
	c.Payload, c.Timestamp, c.Fence = bytes.Clone(r.Payload), bytes.Clone(r.Timestamp), bytes.Clone(r.Fence)
	c.responseTopic, c.correlation = bytes.Clone(r.responseTopic), bytes.Clone(r.correlation)
	c.received = time.Time{} // do not report an artificial delay as processing time
	return &c
}

// cost returns the estimated memory of a clone, in bytes.
func (r *request) cost() int {
	return int(unsafe.Sizeof(*r)) + len(r.Payload) + len(r.Timestamp) + len(r.Fence) + len(r.responseTopic) + len(r.correlation)
}

// handle processes a message to the request topic. It runs on the goroutine that reads from the
// client. Unless the request or its reply is delayed, handle replies before it returns. It returns the
// reason code for the PUBACK. broker.Later means that the broker must not send a PUBACK itself: admit is
// responsible for the PUBACK, or the client has disconnected.
func (s *Server) handle(c *broker.Client, p *broker.Publish) byte {
	var few [8][]byte // not in s.request, which other clients use meanwhile
	words := store.AppendWords(few[:0], p.Payload)
	s.broker.StandInLine(func() bool { return s.isCostly(words, p.ResponseTopic) })
	s.journal.admit()
	if s.backlog.bytes > maxBacklog {
		s.awaitRoom(func() bool { return s.backlog.behind[c.ID] > 0 || s.store.MayNotify(words) })
	}
	if !c.Connected() {
		return broker.Later
	}
	if wire.IsForbiddenResponseTopic(p.ResponseTopic) {
		c.Disconnect(broker.TopicNameInvalid)
		return broker.Success
	}
	if !s.mayReplyTo(c, p.ResponseTopic) {
		s.request.read(c, p, words)
		s.observeIgnored(s.request.Request, "a response topic that is not the client's")
		return broker.NotAuthorized
	}
	// MQTT 3.1.1 has neither response topics nor correlation data: its requests are ignored here.
	if why := whyIgnored(p.QoS, len(p.ResponseTopic) > 0, len(p.Correlation) > 0); why != "" {
		s.counts.Ignored++
		s.request.read(c, p, words)
		s.observeIgnored(s.request.Request, why)
		return broker.Success
	}
	action, faulty := s.requestFault(c.ID, p.Payload)
	if !faulty && s.intercept != nil {
		action = s.decide(c, p)
		if !c.Connected() {
			return broker.Later
		}
	}
	s.request.read(c, p, words)
	s.request.action = action
	s.admit(&s.request, p.Expiry)
	if len(p.Payload) > maxReused {
		s.request = request{} // its slices keep the packet in memory
	}
	return broker.Later
}

// isCostly reports whether a request with these words is much work.
func (s *Server) isCostly(words [][]byte, responseTopic []byte) bool {
	key, costly := s.store.IsCostly(words)
	return costly || s.broker.IsCostly(responseTopic) || key != nil && s.port != nil && s.port.server.IsCostly(key)
}

// read sets r to the request that p contains. words are the words of its payload; nil = it is refused.
func (r *request) read(c *broker.Client, p *broker.Publish, words [][]byte) {
	var kept [][]byte // so that words stays on the stack
	if words != nil {
		kept = append(r.Words[:0], words...)
	}
	*r = request{
		Request: store.Request{ClientID: c.ID, Username: c.Username, Payload: p.Payload, Words: kept},
		origin:  origin{client: c, packetID: p.ID},

		responseTopic: p.ResponseTopic, correlation: p.Correlation, received: c.LastRead(),
	}
	for name, value := range p.User() {
		r.SetProperty(name, value)
	}
}

// admit acknowledges a request and processes it, immediately or after a delay. r.action may replace,
// delay or omit each of these steps. expiry is the Message Expiry Interval; 0 = none.
func (s *Server) admit(r *request, expiry time.Duration) {
	s.counts.Requests++
	if r.action.CutBytes > 0 {
		r.client.CutAfter(r.action.CutBytes)
	}
	if r.action.Stall > 0 {
		r.client.StallReads(r.action.Stall)
	}
	switch action := &r.action; {
	case action.Cut:
		r.client.Cut()
		return
	case action.Disconnect != 0:
		r.client.Disconnect(action.Disconnect)
		return
	case action.Refuse != 0:
		r.client.Ack(r.packetID, action.Refuse)
		return
	}
	if expiry > 0 {
		r.deadline = s.now().Add(expiry)
	}
	delay := s.opts.Latency + r.action.Delay
	if delay > 0 && !r.action.Drop {
		later, earlier := r.clone(), s.policy
		if !s.after(delay, later.cost(), func() {
			if !s.stillMay(later.client, earlier, later.responseTopic) {
				s.observeIgnored(later.Request, "its client's rights have ended")
				later.acknowledgeLast()
				return
			}
			s.process(later)
		}) {
			r.client.Ack(r.packetID, broker.QuotaExceeded)
			return
		}
	}
	if !r.action.PubackLast && !r.action.CutAfter {
		r.acknowledge()
	}
	switch {
	case r.action.Drop:
		r.acknowledgeLast()
	case delay <= 0:
		s.process(r)
	}
}

// decide calls the interceptor. It unlocks the broker during the call, because the interceptor may
// block or call the server.
func (s *Server) decide(c *broker.Client, p *broker.Publish) Action {
	r := Request{
		ClientID: c.ID, Username: c.Username, Payload: bytes.Clone(p.Payload),
		ResponseTopic: string(p.ResponseTopic), CorrelationData: bytes.Clone(p.Correlation),
	}
	for name, value := range p.User() {
		r.Properties = append(r.Properties, Property{Name: string(name), Value: string(value)})
	}
	decide := s.intercept
	s.broker.Unlock()
	defer s.broker.Lock()
	return decide(r)
}

// A message is a reply or notification to send. Its slices are valid until the next request.
type message struct {
	topic []byte
	broker.Message
}

// newMessage returns a message with a payload and a large value of the store, or nil.
func newMessage(topic, payload, value, properties []byte) message {
	m := message{topic, broker.Message{QoS: 1, Properties: properties, Payload: payload}}
	if value != nil {
		m.Value, m.End = value, store.ValueEnd
	}
	return m
}

// clone returns a copy that stays valid, and the copy's size in bytes. It shares a large value.
func (m message) clone() (message, int) {
	all := slices.Concat(m.topic, m.Payload, m.Properties)
	t, p := len(m.topic), len(m.topic)+len(m.Payload)
	c := newMessage(all[:t], all[t:p], m.Value, all[p:])
	return c, len(all) + len(m.Value)
}

// process passes a request to the store and sends the reply. It silently discards a request whose
// Message Expiry Interval has passed (protocol.md 1.4).
func (s *Server) process(r *request) {
	if !r.deadline.IsZero() && !s.now().Before(r.deadline) {
		s.counts.Expired++
		s.observeIgnored(r.Request, "its message expiry had passed")
		r.acknowledgeLast()
		return
	}
	if s.loginEnded(r.client) {
		s.observeIgnored(r.Request, "its client's token had expired")
		return
	}
	if !r.client.Connected() && strings.EqualFold(word(r.Payload, 0), wire.VerbKeyNotify) {
		return // the registration would have ended with the connection
	}
	s.responseTopic, s.received = r.responseTopic, r.received
	var resp store.Response
	if r.action.Error != "" {
		resp = s.store.Refuse(s.payload[:0], r.action.Error)
		s.observeIgnored(r.Request, "a fault, which answers "+r.action.Error)
	} else {
		resp = s.store.Do(&r.Request, s.payload[:0])
	}
	s.responseTopic = nil
	s.payload = reusable(resp.Payload)
	s.notify()
	s.arm()
	switch {
	case r.action.CutAfter:
		r.client.Cut()
		return
	case r.action.DropReply:
		r.acknowledgeLast()
		return
	}
	s.properties = appendProperties(s.properties[:0], s.contentType(), r.correlation, resp.Properties)
	m := newMessage(r.responseTopic, resp.Payload, resp.Value, s.properties)
	if r.action.Rewrite != nil {
		m = s.rewrite(r, resp)
	}
	if r.action.DelayReply > 0 || s.mustWait(r.client.ID) {
		s.replyLater(r.origin, m)
		return
	}
	s.reply(&r.origin, m)
}

// mustWait reports whether a reply to a client must wait for the data file, or for earlier notifications to the client.
func (s *Server) mustWait(clientID string) bool {
	return s.journal.pending() || s.backlog.behind[clientID] > 0
}

// rewrite returns the reply after Action.Rewrite has changed it.
func (s *Server) rewrite(r *request, resp store.Response) message {
	a := Answer{
		Topic: string(r.responseTopic), CorrelationData: bytes.Clone(r.correlation), ContentType: s.contentType(),
		Properties: cloneProperties(resp.Properties), Payload: bytes.Clone(store.Whole(resp.Payload, resp.Value)),
	}
	r.action.Rewrite(&a)
	properties := appendProperties(nil, a.ContentType, a.CorrelationData, nil)
	for _, p := range a.Properties {
		properties = broker.AppendUser(properties, p.Name, p.Value)
	}
	return newMessage([]byte(a.Topic), a.Payload, nil, properties)
}

// replyLater sends a reply after the action's delay, and then in order, see sendInOrder. If there is no memory to
// delay it, the reply is lost.
func (s *Server) replyLater(o origin, m message) {
	kept, size := m.clone()
	earlier := s.policy
	if !s.after(o.action.DelayReply, size, func() {
		s.sendInOrder(o.client.ID, size, func() {
			if s.stillMay(o.client, earlier, kept.topic) {
				s.reply(&o, kept)
			}
		})
	}) {
		s.counts.Undelivered++
		o.acknowledgeLast()
	}
}

// reply publishes a reply to the subscribers of its topic, twice if the action's Duplicate is set.
func (s *Server) reply(o *origin, m message) {
	times := 1
	if o.action.Duplicate {
		times = 2
	}
	for range times {
		d := s.broker.Publish(m.topic, m.Message)
		s.counts.TooLarge += d.TooLarge
		if d.Sent+d.TooLarge == 0 {
			s.counts.Undelivered++
		} else {
			s.counts.Replies++
		}
	}
	o.acknowledgeLast()
}

// divert does what a fault or the function of InterceptNotifications decides about a notification. It returns false if
// the notification is to be sent now.
func (s *Server) divert(n *note, m message) bool {
	action := s.notificationFault(Notification{ClientID: n.ClientID, Key: n.Key, Payload: bytes.Clone(store.Whole(n.Payload, m.Value))})
	if action.Drop || action.Delay <= 0 && !action.Duplicate && !action.Reorder {
		return action.Drop
	}
	kept, size := m.clone()
	c, topic := n.client, n.Topic()
	send := func() {
		if c.Connected() {
			s.sendNotification(c, topic, kept.Message)
		}
	}
	size += len(topic)
	switch {
	case action.Reorder:
		s.late[c.ID] = func() { s.sendInOrder(c.ID, size, send) }
		return true
	case action.Delay <= 0:
		s.sendInOrder(c.ID, size, send)
		return false
	}
	// Without memory to delay it, the notification is lost.
	_ = s.after(action.Delay, size, func() { s.sendInOrder(c.ID, size, send) })
	return true
}

// sendNotification sends a notification to a client and counts it as sent or as too large. If the client
// has disconnected, the notification is dropped.
func (s *Server) sendNotification(c *broker.Client, topic string, m broker.Message) {
	if !c.Send(topic, m) {
		s.counts.TooLarge++
		return
	}
	s.counts.Notifications++
	if late := s.late[c.ID]; late != nil {
		delete(s.late, c.ID)
		late()
	}
}

func (s *Server) contentType() string {
	if s.opts.Variants.NoContentType {
		return ""
	}
	return wire.ContentType
}

func appendProperties(dst []byte, contentType string, correlation []byte, user []store.Property) []byte {
	if contentType != "" {
		dst = broker.AppendContentType(dst, contentType)
	}
	if len(correlation) > 0 {
		dst = broker.AppendCorrelation(dst, correlation)
	}
	for _, p := range user {
		dst = broker.AppendUser(dst, p.Name, p.Value)
	}
	return dst
}

// maxReused is the size of the largest buffer that the next request reuses, in bytes.
const maxReused = 64 << 10

// reusable returns buf for reuse by the next request, or nil if buf has become large.
func reusable(buf []byte) []byte {
	if cap(buf) > maxReused {
		return nil
	}
	return buf
}
