package broker

// A will is published when its client is gone (MQTT 5, 3.1.2.5).
type will struct {
	msg   *message
	delay uint32 // seconds
}

func newWill(p *connectPacket) *will {
	m := &message{
		topic: string(p.willTopic), payload: p.willBody, qos: p.willQoS, retain: p.willRetain,
		expires: p.willProps.seen.has(propMessageExpiry), expiry: p.willProps.messageExpiry,
	}
	props := p.willProps
	for f := (fields{body: props.raw}); f.left() > 0; {
		at := f.at
		switch f.property(new(properties), willProperties); props.raw[at] {
		case propWillDelay, propMessageExpiry:
		default:
			m.props = append(m.props, props.raw[at:f.at]...)
		}
	}
	m.kept = m
	return &will{msg: m, delay: props.willDelay}
}

// sendWill publishes the session's will, if there is one left.
func (s *session) sendWill() {
	if s.will == nil {
		return
	}
	b, m := s.b, s.will.msg
	s.willDue = nil
	s.setWill(nil)
	if m.topic == b.opts.Topic {
		return // the handler's topic has no subscribers, and a will has nobody to answer
	}
	m.received = b.now()
	if m.retain {
		b.retain(m)
	}
	b.spread(m, b.route([]byte(m.topic)), s)
}
