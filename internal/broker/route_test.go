package broker

import (
	"slices"
	"strings"
	"testing"
)

// TestNoLocalSearchesOnce: the subscribers of a topic are found once, also if some of the subscriptions are No Local, and
// for a will only in line if there are many nodes to visit.
func TestNoLocalSearchesOnce(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	b.Lock()
	defer b.Unlock()
	s := b.newSession(&Identity{ID: "s", Username: ""})
	s.expiry = neverExpires
	c := &Client{b: b, session: s, Version: version5}
	subscribe := func(filter string, qos byte, noLocal bool, id int) {
		if code, _ := c.subscribeTo(&requestedFilter{filter: []byte(filter), qos: qos, noLocal: noLocal, handling: 2}, id); code != qos {
			t.Fatalf("%s: %#x", filter, code)
		}
	}
	subscribe("#", 1, false, 3)
	subscribe("t", 2, true, 2)
	subscribe("+", 2, true, 1)
	subscribe("only", 1, true, 1)
	b.route([]byte("t"))
	tree := b.tree
	b.tree = node{} // a search would find nothing
	r := b.route([]byte("t"))
	m := &message{topic: "t", qos: 2}
	for origin, want := range map[*session]delivery{nil: {qos: 2, ids: &identifierList{ids: []uint32{1, 2, 3}}}, s: {qos: 1, ids: &identifierList{ids: []uint32{3}}}} {
		if sum := b.fanOut(m, r, origin, true); sum.Sent != 1 {
			t.Fatalf("own message: %v; %+v", origin == s, sum)
		}
		if d := s.dequeue(); d.qos != want.qos || !slices.Equal(d.ids.ids, want.ids.ids) {
			t.Errorf("own message: %v; QoS %d, identifiers %d", origin == s, d.qos, d.ids.ids)
		}
	}
	b.tree = tree
	b.removeSubscription(s.subs.M["#"])
	if sum := b.fanOut(&message{topic: "only", qos: 1}, b.route([]byte("only")), s, true); sum.Matched != 0 {
		t.Errorf("its own message reaches a session whose only subscription is No Local: %+v", sum)
	}

	long := strings.Repeat("a/", 7) + "a"
	for i := range 1 << 8 { // as many filters as there are places for a +
		filter := []byte(long)
		for k := range 8 {
			if i>>k&1 == 1 {
				filter[2*k] = '+'
			}
		}
		subscribe(string(filter), 1, false, 0)
	}
	s.setWill(&will{msg: (&message{topic: long, qos: 1}).keep(), expiry: -1})
	s.publishWill()
	if b.routes[long] != nil || len(b.jobs) != 1 {
		t.Errorf("the subscribers of a will are found out of line: %d jobs", len(b.jobs))
	}
}
