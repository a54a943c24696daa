package broker

import (
	"slices"
	"time"
	"unsafe"
)

// A route lists the recipients of a topic's messages. It is valid until a subscription changes.
type route struct {
	topic      string
	generation uint64 // Broker.generation when it was made
	targets    []target
	groups     []*group
}

// A target is a session with all its subscriptions to a topic. The session gets one copy of a
// message, with the highest QoS [MQTT-3.3.4-2] and all identifiers [MQTT-3.3.4-3], [MQTT-3.3.4-4].
type target struct {
	session     *session
	qos         byte
	asPublished bool
	ids         *identifierList
	own         *target // for the session's own messages: without its No Local subscriptions, and without session if there are no others; nil = the same
}

// Limits of Broker.routes. When there are maxRoutes routes, or they exceed maxRouteBytes or a 16th
// of the budget, all are dropped.
const (
	maxRoutes     = 4096
	maxRouteBytes = 64 << 20
)

// cost returns the estimated memory of a route, in bytes.
func (r *route) cost() int {
	n := int(unsafe.Sizeof(*r)) + len(r.topic) + cap(r.targets)*int(unsafe.Sizeof(target{})) + 8*cap(r.groups)
	for i := range r.targets {
		n += r.targets[i].cost()
	}
	return n
}

// cost returns the estimated memory of what a target refers to, in bytes.
func (t *target) cost() (n int) {
	if t.ids != nil && len(t.ids.ids) > 1 {
		n = t.ids.cost()
	}
	if t.own != nil {
		n += int(unsafe.Sizeof(*t)) + t.own.cost()
	}
	return n
}

// route returns the recipients of a topic's messages.
func (b *Broker) route(topic []byte) *route {
	if r := b.knownRoute(topic); r != nil {
		return r
	}
	found := route{topic: string(topic), generation: b.generation}
	b.findTargets(&found, func() bool { return true })
	return b.keepRoute(found)
}

// routeInSteps is like route, but may unlock the broker while it finds the recipients.
func (b *Broker) routeInSteps(topic []byte) *route {
	if r := b.knownRoute(topic); r != nil {
		return r
	}
	found, locked, nodes := route{topic: string(topic), generation: b.generation}, time.Now(), 0
	b.findTargets(&found, func() bool {
		if nodes++; nodes%maxStepNodes == 0 {
			b.yieldAfter(&locked)
		}
		return found.generation == b.generation
	})
	if found.generation != b.generation { // a subscription has changed meanwhile
		return b.route(topic)
	}
	return b.keepRoute(found)
}

// knownRoute returns the route of a topic if it was found before and is still valid, otherwise nil.
func (b *Broker) knownRoute(topic []byte) *route {
	if r := b.routes[string(topic)]; r != nil && r.generation == b.generation {
		return r
	}
	return nil
}

func (b *Broker) keepRoute(found route) *route {
	r := b.routes[found.topic]
	if r == nil {
		if len(b.routes) >= maxRoutes || b.routeBytes > min(maxRouteBytes, b.opts.MaxBytes/16) {
			clear(b.routes)
			b.routeBytes = 0
		}
		r = new(route)
		b.routes[found.topic] = r
	} else {
		b.routeBytes -= r.cost()
	}
	*r = found
	b.routeBytes += r.cost()
	return r
}

// IsCostly reports whether finding the subscribers of a topic is much work, see Crowded. It requires the lock.
func (b *Broker) IsCostly(topic []byte) bool {
	return b.knownRoute(topic) == nil && b.tree.isCostlyMatch(string(topic))
}

// findTargets finds the recipients of a route's topic. It calls step before each node of the tree. step may change the
// tree, and returns false if findTargets must end.
func (b *Broker) findTargets(r *route, step func() bool) {
	// A session subscribes to a filter at most once, so the sessions of the first node all differ.
	var places map[*session]int // see add
	b.tree.match(r.topic, func(n *node) {
		if len(n.subs) > 0 && len(r.targets) > 0 && places == nil {
			places = make(map[*session]int)
			for i := range r.targets {
				places[r.targets[i].session] = i
			}
		}
		r.targets = slices.Grow(r.targets, len(n.subs))
		for _, sub := range n.subs {
			r.add(sub, places)
		}
		for _, g := range n.groups {
			r.groups = append(r.groups, g)
		}
	}, step)
	for i := range r.targets {
		for t := &r.targets[i]; t != nil; t = t.own {
			if t.ids != nil && len(t.ids.ids) > 1 {
				slices.Sort(t.ids.ids)
				t.ids.ids = slices.Clip(slices.Compact(t.ids.ids))
			}
		}
	}
}

// isCostly reports whether there are so many recipients that delivery must be done in steps.
func (r *route) isCostly() bool {
	n := len(r.targets) + len(r.groups)
	for i := 0; n <= maxStepTargets && i < len(r.groups); i++ {
		n += len(r.groups[i].members)
	}
	return n > maxStepTargets
}

// add adds a subscription to the target of its session. places has the index of each session's
// target in r.targets; nil = the session has no target yet.
func (r *route) add(sub *subscription, places map[*session]int) {
	i, found := places[sub.session]
	if !found {
		i = len(r.targets)
		if places != nil {
			places[sub.session] = i
		}
		r.targets = append(r.targets, target{})
	}
	t := &r.targets[i]
	if sub.noLocal && t.own == nil { // [MQTT-3.8.3-3]
		own := *t
		if own.ids != nil && len(own.ids.ids) > 1 {
			own.ids = &identifierList{ids: slices.Clone(own.ids.ids)}
		}
		t.own = &own
	}
	t.add(sub)
	if t.own != nil && !sub.noLocal {
		t.own.add(sub)
	}
}

func (t *target) add(sub *subscription) {
	t.session = sub.session
	t.qos = max(t.qos, sub.qos)
	t.asPublished = t.asPublished || sub.asPublished
	switch {
	case sub.ids == nil:
	case t.ids == nil:
		t.ids = sub.ids
	default: // findTargets removes duplicates
		if len(t.ids.ids) == 1 { // the list of a subscription, which must not change
			t.ids = &identifierList{ids: slices.Clone(t.ids.ids)}
		}
		t.ids.ids = append(t.ids.ids, sub.ids.ids...)
	}
}

// Delivered counts the recipients of a message by outcome.
type Delivered struct {
	Matched  int // sessions with a subscription, and shared subscriptions
	Sent     int // of Matched: the message was sent, or will be
	TooLarge int // of Matched: the message exceeds the client's Maximum Packet Size
	Refused  int // of Matched: there was no room to keep the message
}

func (d *Delivered) count(o outcome) {
	d.Matched++
	switch o {
	case delivered:
		d.Sent++
	case tooLarge:
		d.TooLarge++
	case noRoom:
		d.Refused++
	}
}

func (d Delivered) code() byte {
	switch {
	case d.Refused > 0:
		return QuotaExceeded
	case d.Matched == 0:
		return NoMatchingSubscriber
	default:
		return Success
	}
}

// Work in steps may unlock the broker after this many clients, messages or subscriptions, or this many
// bytes. One step takes some 20 µs.
const (
	maxStepTargets = 16
	maxStepNodes   = 64 // of the tree
	maxStepBytes   = 64 << 10
)

// fanOut sends a message to all subscribers of its topic. origin is the session of
// the publisher, or nil. If steps is set, fanOut unlocks the broker after each step.
func (b *Broker) fanOut(m *message, r *route, origin *session, steps bool) (sum Delivered) {
	targets, groups, rights := r.targets, r.groups, b.rights // route may change r during the delivery
	step := min(maxStepTargets, 1+maxStepBytes/m.cost())
	var locked time.Time
	for i := range targets {
		t := &targets[i]
		if steps && i > 0 && i%step == 0 {
			b.yieldAfter(&locked)
		}
		if steps && i >= step && b.sessions[t.session.id] != t.session {
			continue // the session was removed while the broker was unlocked
		}
		if b.rights != rights && !b.may(t.session.who, m.topic, false) {
			continue // the rights have changed while the broker was unlocked
		}
		if t.own != nil && t.session == origin {
			if t = t.own; t.session == nil {
				continue
			}
		}
		sum.count(t.session.deliver(&delivery{
			msg: m, ids: t.ids, qos: min(m.qos, t.qos), retain: m.retain && t.asPublished, // [MQTT-3.3.1-12], [MQTT-3.3.1-13]
		}))
	}
	for _, g := range groups {
		if steps {
			b.yieldAfter(&locked)
			sum.count(b.deliverShared(g, m, &locked))
			continue
		}
		sum.count(b.deliverShared(g, m, nil))
	}
	if steps && len(targets) > maxStepTargets {
		b.yield()
	}
	return sum
}

// deliverShared sends a message to one member of a shared subscription. It prefers members that can
// receive the message immediately, then other connected members, then members that are away.
// Members take turns. If locked is not nil, deliverShared may unlock the broker, see yieldAfter.
func (b *Broker) deliverShared(g *group, m *message, locked *time.Time) outcome {
	last := notKept
	for _, eligible := range []func(*subscription) bool{
		func(sub *subscription) bool {
			c := sub.session.client
			return c != nil && (min(m.qos, sub.qos) == 0 || c.quota > 0 && sub.session.pending.len() == 0)
		},
		func(sub *subscription) bool { return sub.session.client != nil },
		func(sub *subscription) bool { return sub.session.client == nil },
	} {
		for i := range len(g.members) {
			if i%maxStepTargets == maxStepTargets-1 {
				b.yieldAfter(locked)
			}
			if len(g.members) == 0 {
				return last
			}
			sub := g.members[g.next%len(g.members)]
			g.next = (g.next + 1) % len(g.members)
			if !eligible(sub) {
				continue
			}
			last = sub.session.deliver(&delivery{
				msg: m, group: g, ids: sub.ids, qos: min(m.qos, sub.qos), retain: m.retain && sub.asPublished,
			})
			if last == delivered {
				return delivered
			}
		}
	}
	return last
}
