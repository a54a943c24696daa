package broker

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// subscribePacket is a SUBSCRIBE (MQTT 5, 3.8) or an UNSUBSCRIBE (3.10).
type subscribePacket struct {
	id             uint16
	subscriptionID int // 0 = none
	filters        []requestedFilter
}

// requestedFilter is a topic filter, and in SUBSCRIBE its subscription options.
type requestedFilter struct {
	filter      []byte
	qos         byte
	noLocal     bool
	asPublished bool
	handling    byte // Retain Handling
}

// Limits on one SUBSCRIBE or UNSUBSCRIBE. They exist because the broker is locked while it decodes
// the packet.
const (
	maxFilters     = 1 << 16
	maxFilterBytes = 4 << 20
)

// isCostly reports whether the packet is much work; see StandInLine.
func (p *subscribePacket) isCostly() bool { return len(p.filters) > 8 }

func decodeSubscribe(kind, version byte, body []byte) (p subscribePacket, err *Error) {
	d := decoder{body: body}
	if len(body) > maxFilterBytes {
		d.fail(&Error{QuotaExceeded, "the topic filters are too long"})
	}
	p.id = d.packetID()
	if version == version5 {
		allowed := subscribeProperties
		if kind == typeUnsubscribe {
			allowed = unsubscribeProperties
		}
		var props properties
		d.properties(&props, allowed)
		p.subscriptionID = int(props.number(propSubscriptionID))
	}
	if d.err == nil && d.left() == 0 {
		d.fail(violation("no topic filter")) // [MQTT-3.8.3-2], [MQTT-3.10.3-2]
	}
	for d.left() > 0 {
		r := requestedFilter{filter: d.text()}
		options := byte(0)
		if kind == typeSubscribe {
			options = d.byte()
		}
		r.qos, r.noLocal, r.asPublished, r.handling = options&3, options&4 != 0, options&8 != 0, options>>4&3
		switch {
		case d.err != nil:
		case len(r.filter) == 0: // [MQTT-4.7.3-1]
			d.fail(malformed("an empty topic filter"))
		case r.qos == 3:
			d.fail(malformed("a subscription with QoS 3"))
		case options>>6 != 0, version == version4 && options>>2 != 0: // [MQTT-3.8.3-5]
			d.fail(malformed("reserved bits of the subscription options are set"))
		case r.handling == 3:
			d.fail(violation("retain handling 3"))
		case r.noLocal && strings.HasPrefix(string(r.filter), sharePrefix): // [MQTT-3.8.3-4]
			d.fail(violation("no local on a shared subscription"))
		}
		if p.filters = append(p.filters, r); len(p.filters) > maxFilters {
			d.fail(&Error{QuotaExceeded, "there are too many topic filters"})
		}
	}
	return p, d.err
}

func (c *Client) handleSubscribe(body []byte) *Error {
	p, err := decodeSubscribe(typeSubscribe, c.Version, body)
	if err != nil {
		return err
	}
	codes := make([]byte, len(p.filters))
	var retained []*subscription // subscriptions that get retained messages
	c.b.StandInLine(p.isCostly)
	locked := time.Now()
	for i := range p.filters {
		c.b.yieldAfter(&locked)
		if c.session == nil {
			return nil
		}
		var sub *subscription
		if codes[i], sub = c.subscribeTo(&p.filters[i], p.subscriptionID); sub != nil {
			retained = append(retained, sub)
		}
		if codes[i] >= UnspecifiedError && c.Version == version4 {
			codes[i] = UnspecifiedError // the only failure code of a SUBACK in MQTT 3.1.1
		}
	}
	last := c.b.sequence
	c.filtersAck(typeSuback, p.id, codes) // [MQTT-3.8.4-1], [MQTT-3.8.4-6]
	for _, sub := range retained {
		if c.b.StandInLine(func() bool { return c.b.stats.Retained > 0 }) {
			locked = time.Now()
		}
		if c.session == nil {
			break
		}
		c.deliverRetained(sub, last, &locked)
	}
	return nil
}

// longRetained is the number of topics above which only one client at a time gets its retained messages.
const longRetained = 512

// deliverRetained sends the retained messages that a subscription matches, in the order in which
// they were published. It may unlock the broker. last is the sequence number of the newest message
// that was retained when the subscription was made; the client gets newer messages as they are
// published.
func (c *Client) deliverRetained(sub *subscription, last uint64, locked *time.Time) {
	b := c.b
	_, filter, _, _ := splitShare(sub.filter)
	steps := 0
	found := b.retainedFor(filter, last, func() {
		steps++
		if steps == longRetained {
			// Only one delivery of this size runs at a time, to limit memory and CPU time.
			b.Unlock()
			b.longDelivery.Lock()
			b.Lock()
			*locked = time.Now()
		}
		b.yieldAfter(locked)
	})
	if steps >= longRetained {
		defer b.longDelivery.Unlock()
	}
	for _, match := range found {
		b.yieldAfter(locked)
		s, m := c.session, match.retained
		switch {
		case s == nil:
			return
		case m == nil, m.sequence != match.sequence, m.expired(b.Now()):
			continue
		}
		s.deliver(&delivery{msg: m, ids: sub.ids, qos: min(m.qos, sub.qos), retain: true})
	}
}

// filtersAck sends a SUBACK or UNSUBACK with a reason code for each topic filter.
func (c *Client) filtersAck(kind byte, id uint16, codes []byte) {
	body := binary.BigEndian.AppendUint16(nil, id)
	if c.Version == version5 {
		body = append(body, 0) // no properties
	}
	c.packet(kind<<4, append(body, codes...))
	c.b.changed = true
}

// subscribeTo makes or replaces one subscription. It returns the reason code and, if the retained
// messages must be sent, the subscription.
func (c *Client) subscribeTo(r *requestedFilter, id int) (code byte, retained *subscription) {
	b, s, filter := c.b, c.session, string(r.filter)
	name, rest, shared, ok := splitShare(filter)
	switch {
	case !ok:
		return filterInvalid, nil
	case slices.Contains(b.opts.Refuse, filter):
		return UnspecifiedError, nil
	case !b.may(c.Identity, filter, false):
		return NotAuthorized, nil
	}
	sub, replaced := s.subs.M[filter]
	if !replaced {
		sub = &subscription{session: s, filter: filter}
		if len(s.subs.M) >= b.opts.MaxSubscriptions || levels(rest) > maxLevels || !b.affords(sub.cost()) {
			return QuotaExceeded, nil
		}
		sub.at = b.tree.find(rest, true)
		s.subs.Set(filter, sub)
		b.charge(sub.cost())
		b.stats.Subscriptions++
		b.countSys(filter, 1)
		if shared {
			sub.at.join(name, sub)
		} else {
			sub.at.subs.add(sub)
		}
	}
	sub.qos, sub.noLocal, sub.asPublished, sub.ids = r.qos, r.noLocal, r.asPublished, nil // [MQTT-3.8.4-3]
	if id != 0 {
		sub.ids = &identifierList{ids: []uint32{uint32(id)}}
	}
	b.generation++
	if shared || r.handling == 2 || r.handling == 1 && replaced { // MQTT 5, 3.8.3.1, 4.8.2
		return r.qos, nil
	}
	b.refreshSys(rest)
	return r.qos, sub
}

// join adds a member to the group with the given name.
func (n *node) join(name string, sub *subscription) {
	g := n.groups[name]
	if g == nil {
		if n.groups == nil {
			n.groups = make(map[string]*group)
		}
		g = &group{name: name}
		n.groups[name] = g
	}
	sub.group = g
	g.members.add(sub)
}

func (c *Client) handleUnsubscribe(body []byte) *Error {
	p, err := decodeSubscribe(typeUnsubscribe, c.Version, body)
	if err != nil {
		return err
	}
	var codes []byte
	c.b.StandInLine(p.isCostly)
	locked := time.Now()
	for _, r := range p.filters {
		c.b.yieldAfter(&locked)
		if c.session == nil {
			return nil
		}
		code := byte(noSubscription)
		if sub := c.session.subs.M[string(r.filter)]; sub != nil {
			c.b.removeSubscription(sub)
			code = Success
		}
		if c.Version == version5 {
			codes = append(codes, code)
		}
	}
	c.filtersAck(typeUnsuback, p.id, codes) // [MQTT-3.10.4-4]
	return nil
}

// removeSubscription removes a subscription. Messages that are already queued are still sent.
func (b *Broker) removeSubscription(sub *subscription) {
	n := sub.at
	if g := sub.group; g != nil {
		g.members.remove(sub)
		if len(g.members) == 0 {
			delete(n.groups, g.name)
		}
	} else {
		n.subs.remove(sub)
	}
	sub.session.subs.Delete(sub.filter)
	n.prune()
	b.charge(-sub.cost())
	b.generation++
	b.stats.Subscriptions--
	b.countSys(sub.filter, -1)
}
