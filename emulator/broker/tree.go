package broker

import (
	"cmp"
	"slices"
)

// A node stands for one level of topics and of topic filters; `+` and `#` are levels
// like others, which no topic has.
type node struct {
	parent   *node
	level    string
	children map[string]*node
	subs     []*subscription // whose filter ends here
	groups   []*group        // of shared subscriptions whose filter ends here
	retained *message        // of the topic that ends here
	expires  *Timer          // of that; nil: it does not
}

// A subscription is a client's to one filter.
type subscription struct {
	session     *session
	filter      string // as the client wrote it, $share included
	at          *node
	qos         byte
	noLocal     bool
	asPublished bool
	id          int    // subscription identifier; 0: none
	group       *group // nil: not shared
}

// cost is what a subscription makes the broker keep, in bytes, about.
func (sub *subscription) cost() int {
	return subscriptionOverhead + len(sub.filter) + levelOverhead*levels(sub.filter)
}

// A group is the members of a shared subscription.
type group struct {
	name    string
	members []*subscription
	turn    int // whose turn it is
}

// maxLevels bounds what one filter or retained message costs.
const maxLevels = 256

func levels(topic string) int {
	n := 1
	for i := range len(topic) {
		if topic[i] == '/' {
			n++
		}
	}
	return n
}

// find returns the node of a topic or filter, and makes it if it is wanted.
func (n *node) find(topic string, create bool) *node {
	for more := true; more; {
		var level string
		level, topic, more = nextLevel(topic)
		child := n.children[level]
		if child == nil {
			if !create {
				return nil
			}
			if n.children == nil {
				n.children = make(map[string]*node)
			}
			child = &node{parent: n, level: level}
			n.children[level] = child
		}
		n = child
	}
	return n
}

// prune removes a node that holds nothing, and those above it.
func (n *node) prune() {
	for n.parent != nil && len(n.children) == 0 && len(n.subs) == 0 && len(n.groups) == 0 && n.retained == nil {
		delete(n.parent.children, n.level)
		n = n.parent
	}
}

// match calls found for the nodes of all filters that match a topic. Wildcards at the
// beginning do not match topics that begin with $ [MQTT-4.7.2-1].
func (n *node) match(topic string, found func(*node)) {
	n.matchLevel(topic, topic[:1] == "$", found)
}

func (n *node) matchLevel(topic string, reserved bool, found func(*node)) {
	if len(n.children) == 0 {
		return
	}
	if all := n.children["#"]; all != nil && !reserved {
		found(all)
	}
	level, rest, more := nextLevel(topic)
	next := func(child *node) {
		switch {
		case child == nil:
		case more:
			child.matchLevel(rest, false, found)
		default:
			found(child)
			if all := child.children["#"]; all != nil { // which is the parent level, too: MQTT 5, 4.7.1.2
				found(all)
			}
		}
	}
	next(n.children[level])
	if !reserved {
		next(n.children["+"])
	}
}

// retainedFor returns the retained messages that a filter matches, in the order of
// publication.
func (n *node) retainedFor(filter string) []*message {
	var found []*message
	n.collect(filter, true, &found)
	slices.SortFunc(found, func(a, b *message) int { return cmp.Compare(a.retainedAs, b.retainedAs) })
	return found
}

func (n *node) collect(filter string, first bool, found *[]*message) {
	level, rest, more := nextLevel(filter)
	if level == "#" {
		n.collectAll(first, found)
		return
	}
	take := func(child *node) {
		switch {
		case child == nil:
		case more:
			child.collect(rest, false, found)
		case child.retained != nil:
			*found = append(*found, child.retained)
		}
	}
	if level != "+" {
		take(n.children[level])
		return
	}
	for level, child := range n.children {
		if !first || level == "" || level[0] != '$' {
			take(child)
		}
	}
}

func (n *node) collectAll(first bool, found *[]*message) {
	if n.retained != nil {
		*found = append(*found, n.retained)
	}
	for level, child := range n.children {
		if !first || level == "" || level[0] != '$' {
			child.collectAll(false, found)
		}
	}
}

// A route is who gets the messages of a topic, as long as no subscription changes.
type route struct {
	topic      string
	generation uint64 // of Broker.tree
	targets    []target
	groups     []*group
	noLocal    bool // a subscription does not want the messages of its own client
}

// A target is a session with all its subscriptions to a topic: it gets one copy, at the
// highest QoS [MQTT-3.3.4-2], with all the identifiers [MQTT-3.3.4-3], [MQTT-3.3.4-4].
type target struct {
	session     *session
	qos         byte
	asPublished bool
	ids         []int
}

// maxRoutes and maxRouteBytes bound the memory of routes.
const (
	maxRoutes     = 4096
	maxRouteBytes = 64 << 20
	targetBytes   = 64
)

// route returns who gets the messages of a topic.
func (b *Broker) route(topic []byte) *route {
	r := b.routes[string(topic)]
	if r != nil && r.generation == b.generation {
		return r
	}
	if r == nil {
		if len(b.routes) >= maxRoutes || b.routeBytes > maxRouteBytes {
			clear(b.routes)
			b.routeBytes = 0
		}
		r = &route{topic: string(topic)}
		b.routes[r.topic] = r
		b.routeBytes += len(r.topic)
	}
	b.routeBytes -= targetBytes * len(r.targets)
	r.generation, r.noLocal = b.generation, false
	r.targets, r.groups = nil, nil
	b.tree.match(r.topic, func(n *node) {
		for _, sub := range n.subs {
			r.noLocal = r.noLocal || sub.noLocal
			r.add(sub)
		}
		r.groups = append(r.groups, n.groups...)
	})
	b.routeBytes += targetBytes * len(r.targets)
	return r
}

// without returns the route of a message of the session's own client.
func (b *Broker) routeWithoutLocal(topic string, origin *session) *route {
	r := &route{topic: topic}
	b.tree.match(topic, func(n *node) {
		for _, sub := range n.subs {
			if sub.session != origin || !sub.noLocal { // [MQTT-3.8.3-3]
				r.add(sub)
			}
		}
		r.groups = append(r.groups, n.groups...)
	})
	return r
}

func (r *route) add(sub *subscription) {
	i := slices.IndexFunc(r.targets, func(t target) bool { return t.session == sub.session })
	if i < 0 {
		i = len(r.targets)
		r.targets = append(r.targets, target{session: sub.session})
	}
	t := &r.targets[i]
	t.qos = max(t.qos, sub.qos)
	t.asPublished = t.asPublished || sub.asPublished
	if sub.id != 0 && !slices.Contains(t.ids, sub.id) {
		t.ids = append(t.ids, sub.id)
	}
}
