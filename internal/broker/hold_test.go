package broker

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// These tests are about work in one step, during which the broker is locked.

// quickest returns the shortest duration of several calls: a busy machine delays it least.
func quickest(f func()) time.Duration {
	var times []time.Duration
	for range 20 {
		begin := time.Now()
		f()
		times = append(times, time.Since(begin))
	}
	return slices.Min(times)
}

// TestManySysFilters: publishing the $SYS topics takes no longer when clients have subscribed to many other
// topics below $SYS.
func TestManySysFilters(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	b.Lock()
	defer b.Unlock()
	s := b.newSession(&Identity{ID: "c", Username: ""})
	few := quickest(b.publishSys)
	for i := range 300_000 {
		sub := &subscription{session: s, filter: fmt.Sprint("$SYS/", i)}
		sub.at = b.tree.find(sub.filter, true)
		sub.at.subs.add(sub)
	}
	if many := quickest(b.publishSys); many > 20*few+time.Millisecond {
		t.Errorf("with 300,000 filters %v, without %v", many, few)
	}
}

// TestManyMembers: a message to many shared subscriptions, or to one with many members, is delivered in
// steps.
func TestManyMembers(t *testing.T) {
	for _, groups := range []int{1, 700} {
		r := &route{}
		for i := range groups {
			g := &group{name: fmt.Sprint(i)}
			for range 700 / groups {
				g.members.add(&subscription{group: g})
			}
			r.groups = append(r.groups, g)
		}
		if !r.isCostly() {
			t.Errorf("%d groups with %d members each are delivered to in one step", groups, 700/groups)
		}
	}
}

// TestLongPackets: the part of a packet that the broker reads in one step is bounded.
func TestLongPackets(t *testing.T) {
	const property = "\x26\x00\x01k\x00\x01v"
	code := func(err *Error) byte {
		if err == nil {
			return Success
		}
		return err.Code
	}
	for n, want := range map[int]byte{maxProperties / len(property): Success, maxProperties/len(property) + 1: QuotaExceeded} {
		properties := []byte(strings.Repeat(property, n))
		body := append([]byte("\x00\x01t"), binary.AppendUvarint(nil, uint64(len(properties)))...)
		if got := code(new(Publish).decode(version5, typePublish<<4, append(body, properties...), "")); got != want {
			t.Errorf("PUBLISH with %d properties: got %#x, want %#x", n, got, want)
		}
	}
	filter := "\xff\xff" + strings.Repeat("f", 0xffff)
	for n, want := range map[int]byte{maxFilterBytes / len(filter): Success, maxFilterBytes/len(filter) + 1: QuotaExceeded} {
		_, err := decodeSubscribe(typeUnsubscribe, version4, append([]byte{0, 1}, strings.Repeat(filter, n)...))
		if got := code(err); got != want {
			t.Errorf("UNSUBSCRIBE with %d filters of 64 KB: got %#x, want %#x", n, got, want)
		}
	}
}

// TestExpiredLater: a full session is not searched for expired messages in one step, and they make room all the same.
func TestExpiredLater(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	b.Lock()
	defer b.Unlock()
	soon, never := b.Now().Add(time.Second), time.Time{}
	fill := func(expires ...time.Time) *session {
		s := b.newSession(&Identity{ID: "s", Username: ""})
		s.expiry = neverExpires
		for i := range b.opts.Queue {
			s.enqueue(delivery{msg: &message{topic: "t", qos: 1, expires: expires[min(i, len(expires)-1)]}, qos: 1})
		}
		return s
	}
	oldest, others := fill(soon), fill(never, soon)
	b.timers.forward += time.Second
	publish := func(s *session) outcome { return s.deliver(&delivery{msg: &message{topic: "t", qos: 1}, qos: 1}) }
	if o := publish(oldest); o != delivered || oldest.pending.len() != b.opts.Queue || len(b.jobs) > 0 {
		t.Errorf("if the oldest message has expired: %v, %d messages, %d jobs", o, oldest.pending.len(), len(b.jobs))
	}
	if o := publish(others); o != noRoom || others.pending.len() != b.opts.Queue || len(b.jobs) != 1 {
		t.Errorf("if others have expired: %v, %d messages, %d jobs", o, others.pending.len(), len(b.jobs))
	}
	if publish(others); len(b.jobs) != 1 {
		t.Errorf("%d jobs for one session", len(b.jobs))
	}
	for len(b.jobs) > 0 {
		b.yield()
	}
	if o := publish(others); o != delivered || others.pending.len() != 2 {
		t.Errorf("after the job: %v, %d messages", o, others.pending.len())
	}
}

// TestTransientLater: messages that end with a connection are not searched for in one step if there are many, and a client
// that comes back gets none of them.
func TestTransientLater(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	b.Lock()
	defer b.Unlock()
	for _, comesBack := range []bool{true, false} {
		c := writingClient(t, b)
		s := c.session
		s.expiry = neverExpires
		for i := range 100_000 {
			s.enqueue(delivery{msg: &message{topic: "t", qos: 1}, qos: 1, transient: i%2 == 0})
		}
		c.leaveSession()
		if s.pending.len() != 100_000 || len(b.jobs) != 1 {
			t.Errorf("%d messages are left at once, %d jobs", s.pending.len(), len(b.jobs))
		}
		if comesBack {
			s.resume()
		}
		for !comesBack && len(b.jobs) > 0 {
			b.yield()
		}
		if s.pending.len() != 50_000 {
			t.Errorf("comes back %v: %d messages", comesBack, s.pending.len())
		}
		for len(b.jobs) > 0 {
			b.yield()
		}
	}
}

// TestEndedSession: the broker stays locked while a session ends, because it may end in the middle of a Send or Publish,
// and its caller may have locked Line itself. This also holds if the session's messages take long to pass on.
func TestEndedSession(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	b.Lock()
	g := &group{}
	for i := range 100_000 {
		g.members.add(&subscription{session: b.newSession(&Identity{ID: fmt.Sprint(i), Username: ""}), group: g})
	}
	s := b.newSession(&Identity{ID: "ends", Username: ""})
	for range maxStepTargets {
		s.inflight.add(s.hold(&delivery{msg: &message{topic: "t", qos: 1}, group: g, qos: 1}))
	}
	locked, unlocked := make(chan struct{}), false
	go func() {
		defer close(locked)
		b.Lock()
		defer b.Unlock()
		unlocked = true
	}()
	for b.Waiting() == 0 {
		runtime.Gosched()
	}
	b.removeSession(s)
	if unlocked {
		t.Error("the broker was unlocked")
	}
	b.Unlock()
	<-locked
}
