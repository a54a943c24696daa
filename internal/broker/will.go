package broker

import "time"

// A will is published after its client's connection ends without DISCONNECT 0x00 (MQTT 5, 3.1.2.5).
type will struct {
	msg    *message
	delay  uint32        // seconds
	expiry time.Duration // Message Expiry Interval, counted from publication; negative = none
}

func (p *connectPacket) will() *will {
	m := &message{
		topic: string(p.willTopic), payload: p.willBody, qos: p.willQoS, retain: p.willRetain,
		props: p.willProps.passedOn(nil),
	}
	w := &will{msg: m.keep(), delay: p.willProps.number(propWillDelay), expiry: -1}
	if p.willProps.seen.has(propMessageExpiry) {
		w.expiry = time.Duration(p.willProps.number(propMessageExpiry)) * time.Second
	}
	return w
}

// publishWill publishes the session's will, if any, and removes it.
func (s *session) publishWill() {
	if s.will == nil {
		return
	}
	b, w := s.b, s.will
	s.willTimer = nil
	s.setWill(nil)
	m := w.msg
	if m.topic == b.opts.Topic {
		return // messages to this topic reach no subscriber, and no client awaits a reply to a will
	}
	if !b.may(s.who, m.topic, true) { // the right may have ended since CONNECT
		b.log.Info("not authorized to publish the will", "client", s.id, "topic", m.topic)
		return
	}
	if w.expiry >= 0 {
		m.expires = b.Now().Add(w.expiry)
	}
	if m.retain {
		b.retain(m)
	}
	b.publishUnawaited(m, s)
}

// publishUnawaited sends a message whose publisher gets no reply. A message to many clients is sent
// in steps on another goroutine. origin is the publisher's session, or nil.
func (b *Broker) publishUnawaited(m *message, origin *session) {
	if topic := []byte(m.topic); !b.IsCostly(topic) {
		if r := b.route(topic); !r.isCostly() && len(r.targets)*m.cost() <= maxStepBytes {
			b.fanOut(m, r, origin, false)
			return
		}
	}
	b.chargeUnawaited(m.cost())
	b.later(func() {
		b.fanOut(m, b.routeInSteps([]byte(m.topic)), origin, true)
		b.chargeUnawaited(-m.cost())
	})
}

// chargeUnawaited charges n bytes of messages that publishUnawaited has yet to send; n may be
// negative.
func (b *Broker) chargeUnawaited(n int) {
	b.unawaited += n
	b.charge(n)
}

// maxUnawaited bounds the messages that publishUnawaited has yet to send: if they exceed
// 1/maxUnawaited of the budget, a CONNECT with a will is refused.
const maxUnawaited = 8
