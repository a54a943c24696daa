package broker

import (
	"slices"
	"strings"
	"sync/atomic"
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

// TestRouteInSteps: while the recipients of a topic with many filters are found, others get the lock, and the result
// is right even if subscriptions change meanwhile.
func TestRouteInSteps(t *testing.T) {
	t.Parallel()
	b := New(Options{})
	defer b.Close()
	const levels = 12
	topic := strings.Repeat("l/", levels) + "end"
	b.Lock()
	c := &Client{Identity: &Identity{ID: "overlap"}, b: b, Version: version5}
	c.session = b.newSession(c.Identity)
	subscribe := func(i int) {
		filter := []byte(topic)
		for bit := range levels {
			if i>>bit&1 == 1 {
				filter[2*bit] = '+'
			}
		}
		if code, _ := c.subscribeTo(&requestedFilter{filter: filter, handling: 2}, i+1); code != Success {
			t.Errorf("%s: %#x", filter, code)
		}
	}
	const all = 1 << levels
	for i := range all - 20 {
		subscribe(i)
	}
	b.Unlock()
	var turns atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := all - 20; i < all; i++ {
			b.Lock()
			turns.Add(1)
			if i%2 == 0 {
				subscribe(i)
			}
			b.Unlock()
		}
	}()
	b.Lock()
	for before := turns.Load(); turns.Load() < 20 || before < 20; before = turns.Load() {
		b.generation++ // what was found before is not valid any more
		r := b.routeInSteps([]byte(topic))
		if r.generation != b.generation || len(r.targets) != 1 || len(r.targets[0].ids.ids) != len(c.session.subs.M) {
			t.Fatalf("%d targets, generation %d of %d, %d subscriptions", len(r.targets), r.generation, b.generation, len(c.session.subs.M))
		}
	}
	b.Unlock()
	<-done
}
