package broker

import (
	"strings"

	"github.com/sscli/sscli/internal/shrinkmap"
)

// A node is one level of topics and topic filters. The wildcards `+` and `#` are ordinary
// levels here: no topic contains them.
type node struct {
	parent   *node
	level    string
	children shrinkmap.Map[string, *node]
	subs     subscriptions     // subscriptions whose filter ends here
	groups   map[string]*group // by name: shared subscriptions whose filter ends here
	retained *message          // retained message of the topic that ends here
	expires  *Timer            // removes retained; nil = retained does not expire
}

type subscription struct {
	session     *session
	filter      string // as in SUBSCRIBE, with $share
	at          *node
	qos         byte
	noLocal     bool
	asPublished bool
	ids         *identifierList // the subscription identifier; nil = none
	group       *group          // nil = not shared
	index       int             // index in at.subs or group.members
}

// subscriptions is an unordered list. Each subscription records its index, so that remove needs no
// search.
type subscriptions []*subscription

func (s *subscriptions) add(sub *subscription) {
	sub.index = len(*s)
	*s = append(*s, sub)
}

// remove puts the last subscription in the place of the removed one.
func (s *subscriptions) remove(sub *subscription) {
	last := len(*s) - 1
	moved := (*s)[last]
	(*s)[sub.index], moved.index = moved, sub.index
	(*s)[last] = nil // for the garbage collector
	*s = (*s)[:last]
}

// cost returns the estimated memory of a subscription, in bytes.
func (sub *subscription) cost() int {
	n := subscriptionOverhead + len(sub.filter)
	_, filter, shared, _ := splitShare(sub.filter)
	if shared {
		n += groupOverhead
	}
	return n + levelCost(filter)
}

// A group holds the members of a shared subscription.
type group struct {
	name    string
	members subscriptions
	next    int // index of the member whose turn it is
	slot    slot
}

// maxLevels is the maximum number of levels of a topic filter or retained topic. It bounds their
// memory.
const maxLevels = 256

func levels(topic string) int { return 1 + strings.Count(topic, "/") }

// levelCost returns the estimated memory of the nodes of a topic or filter, in bytes: a node for each level,
// and a map for each but the last.
func levelCost(topic string) int { return word * (13 + 44*(levels(topic)-1)) }

// find returns the node of a topic or filter. If there is none, it returns a new node if create is
// set, otherwise nil.
func (n *node) find(topic string, create bool) *node {
	for more := true; more; {
		var level string
		level, topic, more = strings.Cut(topic, "/")
		child := n.children.M[level]
		if child == nil {
			if !create {
				return nil
			}
			child = &node{parent: n, level: level}
			n.children.Set(level, child)
		}
		n = child
	}
	return n
}

// prune removes the node if it is empty, and then its empty ancestors.
func (n *node) prune() {
	for n.parent != nil && len(n.children.M) == 0 && len(n.subs) == 0 && len(n.groups) == 0 && n.retained == nil {
		n.parent.children.Delete(n.level)
		n = n.parent
	}
}

// match calls found for the node of each filter that matches a topic, and step before each node. It ends when step
// returns false. A leading wildcard does not match a topic that begins with $ [MQTT-4.7.2-1].
func (n *node) match(topic string, found func(*node), step func() bool) {
	n.matchLevel(topic, topic[:1] == "$", found, step)
}

func (n *node) matchLevel(topic string, reserved bool, found func(*node), step func() bool) (more bool) {
	if len(n.children.M) == 0 {
		return true
	}
	if !step() {
		return false
	}
	if all := n.children.M["#"]; all != nil && !reserved {
		found(all)
	}
	level, rest, deeper := strings.Cut(topic, "/")
	next := func(child *node) bool {
		switch {
		case child == nil:
		case deeper:
			return child.matchLevel(rest, false, found, step)
		default:
			found(child)
			if all := child.children.M["#"]; all != nil { // `a/#` matches `a` too: MQTT 5, 4.7.1.2
				found(all)
			}
		}
		return true
	}
	return next(n.children.M[level]) && (reserved || next(n.children.M["+"]))
}

// costlyMatch is the number of nodes at which finding the subscribers of a topic counts as much work.
const costlyMatch = 256

// isCostlyMatch reports whether match would visit at least costlyMatch nodes for a topic.
func (n *node) isCostlyMatch(topic string) bool {
	left := costlyMatch
	n.visit(topic, &left)
	return left <= 0
}

// visit subtracts from left the number of nodes that match would visit, until left is 0 or less.
func (n *node) visit(topic string, left *int) {
	level, rest, more := strings.Cut(topic, "/")
	for _, child := range [...]*node{n.children.M[level], n.children.M["+"]} {
		if child == nil {
			continue
		}
		if *left--; *left <= 0 {
			return
		}
		if more {
			child.visit(rest, left)
		}
	}
}

// collect calls found for each node at or below n that a filter matches. top is set for the root,
// whose wildcards do not match levels that begin with $. collect calls step before each node; step
// may change the tree.
func (n *node) collect(filter string, top bool, found func(*node), step func()) {
	level, rest, more := strings.Cut(filter, "/")
	if level == "#" {
		rest, more = "#", true // # matches all lower levels too
		found(n)
	}
	visit := func(child *node) {
		step()
		switch {
		case child == nil:
		case more:
			child.collect(rest, false, found, step)
		default:
			found(child)
		}
	}
	if level != "+" && level != "#" {
		visit(n.children.M[level])
		return
	}
	for level, child := range n.children.M {
		if !top || !strings.HasPrefix(level, "$") {
			visit(child)
		}
	}
}
