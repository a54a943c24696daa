package broker

import (
	"encoding/binary"
	"slices"
)

// subscribe takes a SUBSCRIBE (MQTT 5, 3.8).
func (c *Client) subscribe(body []byte) *Error {
	p, err := decodeSubscribe(c.Version, body)
	if err != nil {
		return err
	}
	codes := make([]byte, len(p.filters))
	var retained []delivery
	for i := range p.filters {
		codes[i] = c.subscribeTo(&p.filters[i], p.subscriptionID, &retained)
		if codes[i] >= UnspecifiedError && c.Version == version4 {
			codes[i] = UnspecifiedError // the only one of MQTT 3.1.1
		}
	}
	reply := binary.BigEndian.AppendUint16(make([]byte, 0, 3+len(codes)), p.id)
	if c.Version == version5 {
		reply = append(reply, 0)
	}
	c.packet(typeSuback<<4, append(reply, codes...)) // [MQTT-3.8.4-1], [MQTT-3.8.4-6]
	for _, d := range retained {
		if s := c.session; s != nil {
			s.deliver(d)
		}
	}
	c.b.changed = true
	return nil
}

// subscribeTo makes one subscription and returns its reason code. What is retained for
// it is appended.
func (c *Client) subscribeTo(r *requestedFilter, id int, retained *[]delivery) byte {
	b, s, filter := c.b, c.session, string(r.filter)
	name, rest, shared, ok := splitShare(filter)
	if !ok {
		return filterInvalid
	}
	if slices.Contains(b.opts.Refuse, filter) {
		return UnspecifiedError
	}
	if !c.may(filter, false) {
		return NotAuthorized
	}
	sub, replaced := s.subs[filter]
	if !replaced {
		sub = &subscription{session: s, filter: filter}
		if len(s.subs) >= b.opts.MaxSubscriptions || levels(rest) > maxLevels || !b.affords(sub.cost()) {
			return QuotaExceeded
		}
		sub.at = b.tree.find(rest, true)
		s.subs[filter] = sub
		b.charge(sub.cost())
		b.stats.Subscriptions++
		b.countSys(filter, 1)
		if shared {
			sub.at.join(name, sub)
		} else {
			sub.at.subs = append(sub.at.subs, sub)
		}
	}
	sub.qos, sub.noLocal, sub.asPublished, sub.id = r.qos, r.noLocal, r.asPublished, id // [MQTT-3.8.4-3]
	b.generation++
	if shared || r.handling == 2 || r.handling == 1 && replaced { // MQTT 5, 3.8.3.1, 4.8.2
		return r.qos
	}
	b.refreshSys(rest)
	now := b.now()
	for _, m := range b.tree.retainedFor(rest) {
		if m.over(now) {
			continue
		}
		d := delivery{msg: m, qos: min(m.qos, r.qos), retain: true}
		if id != 0 {
			d.ids = []int{id}
		}
		*retained = append(*retained, d)
	}
	return r.qos
}

// join adds a member to the group of that name.
func (n *node) join(name string, sub *subscription) {
	i := slices.IndexFunc(n.groups, func(g *group) bool { return g.name == name })
	if i < 0 {
		i = len(n.groups)
		n.groups = append(n.groups, &group{name: name})
	}
	sub.group = n.groups[i]
	sub.group.members = append(sub.group.members, sub)
}

// unsubscribe takes an UNSUBSCRIBE (MQTT 5, 3.10).
func (c *Client) unsubscribe(body []byte) *Error {
	p, err := decodeUnsubscribe(c.Version, body)
	if err != nil {
		return err
	}
	reply := binary.BigEndian.AppendUint16(make([]byte, 0, 3+len(p.filters)), p.id)
	if c.Version == version5 {
		reply = append(reply, 0)
	}
	for _, filter := range p.filters {
		code := byte(Success)
		if sub := c.session.subs[string(filter)]; sub != nil {
			c.b.removeSubscription(sub)
		} else {
			code = noSubscription
		}
		if c.Version == version5 {
			reply = append(reply, code)
		}
	}
	c.packet(typeUnsuback<<4, reply) // [MQTT-3.10.4-4]
	c.b.changed = true
	return nil
}
