package redis

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestLongMessage: a message is made only for subscribers that are still there, and no longer than what disconnects
// them, because other clients wait meanwhile.
func TestLongMessage(t *testing.T) {
	s, c, _ := unserved(t, Options{})
	for i := range 20 {
		s.subscribe(c, ofPatterns, []byte(strings.Repeat("*", 1+i)))
	}
	payload, n := make([]byte, 2*maxPending), 0
	if bytes := allocated(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		n = s.publish(nil, []byte("ch"), payload, nil)
	}); bytes > 2*maxPending {
		t.Errorf("%d bytes allocated for a message of %d bytes", bytes, len(payload))
	}
	if n != 1 || !c.out.closed.Load() {
		t.Errorf("%d messages, closed %v", n, c.out.closed.Load())
	}
}

// TestLongMessagesShared: the long parts of a message are not copied for each subscriber, because other clients wait
// meanwhile. Messages come in their order.
func TestLongMessagesShared(t *testing.T) {
	s, c, _ := unserved(t, Options{})
	long, large := bytes.Repeat([]byte("c"), costlyValue), bytes.Repeat([]byte("m"), 4<<20)
	publishes := [][2][]byte{{[]byte("ch"), []byte("small")}, {[]byte("ch"), large}, {long, []byte("small")}, {long, long}, {[]byte("ch"), []byte("small")}}
	var subscribers []*conn
	for i := range 30 {
		sub := newConn(s, c.nc)
		sub.pushes.Store(i%2 == 1)
		s.subscribe(sub, ofChannels, []byte("ch"))
		s.subscribe(sub, ofPatterns, []byte(strings.Repeat("*", 1+i)))
		sub.out.mu.Lock()
		sub.out.pending, sub.out.partial = sequence{}, i%3 == 2
		sub.out.mu.Unlock()
		subscribers = append(subscribers, sub)
	}
	bulk := func(b []byte) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(b), b) }
	for _, p := range publishes {
		args := [][]byte{nil, bytes.Clone(p[0]), bytes.Clone(p[1])}
		if n := allocated(func() {
			if err := runPublish(c, args); err != nil {
				t.Fatal(err)
			}
		}); n > 2*(len(p[0])+len(p[1]))+1<<20 {
			t.Errorf("%d bytes allocated for a message of %d bytes to %d subscribers", n, len(p[0])+len(p[1]), 2*len(subscribers))
		}
	}
	for i, sub := range subscribers {
		var got, want []byte
		if i%3 == 2 {
			sub.w, sub.sentHead = append(sub.w, "reply"...), nil
			sub.commit()
			want = append(want, "reply"...)
		}
		for len(sub.out.pending.parts) > 0 {
			got = append(got, sub.out.pending.next()...)
		}
		got = append(got, sub.out.pending.last...)
		for _, p := range publishes {
			kind, message := "*>"[i%2], bulk(p[0])+bulk(p[1])
			if string(p[0]) == "ch" {
				want = fmt.Appendf(want, "%c3\r\n$7\r\nmessage\r\n%s", kind, message)
			}
			want = fmt.Appendf(want, "%c4\r\n$8\r\npmessage\r\n%s%s", kind, bulk([]byte(strings.Repeat("*", 1+i))), message)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("subscriber %d: %d bytes, want %d: %.200q", i, len(got), len(want), got)
		}
		if sub.out.pending.size != 0 || sub.out.pending.memory != 0 {
			t.Errorf("subscriber %d: %d bytes in %d bytes are left", i, sub.out.pending.size, sub.out.pending.memory)
		}
		sub.close()
	}
}

// TestLargeMessagesToItself: a large message that a client publishes to itself is not copied either. It comes after the
// replies before, and before the reply to PUBLISH, but in a transaction after all replies.
func TestLargeMessagesToItself(t *testing.T) {
	s, c, _ := unserved(t, Options{})
	var patterns []string
	for i := range 5 {
		patterns = append(patterns, strings.Repeat("*", 1+i))
		s.subscribe(c, ofPatterns, []byte(patterns[i]))
	}
	large := bytes.Repeat([]byte("m"), 2*LargeValue)
	messages := func(payload []byte) (all []byte) {
		for _, p := range patterns {
			all = fmt.Appendf(all, "*4\r\n$8\r\npmessage\r\n$%d\r\n%s\r\n$2\r\nch\r\n$%d\r\n%s\r\n", len(p), p, len(payload), payload)
		}
		return all
	}
	publish := func(payload []byte) {
		t.Helper()
		args := [][]byte{nil, []byte("ch"), payload}
		if n := allocated(func() {
			if err := runPublish(c, args); err != nil {
				t.Fatal(err)
			}
		}); n > len(large) {
			t.Errorf("%d bytes allocated for messages of %d bytes", n, len(payload))
		}
	}
	expect := func(parts ...[]byte) {
		t.Helper()
		c.commit()
		var got []byte
		for len(c.out.pending.parts) > 0 {
			got = append(got, c.out.pending.next()...)
		}
		got = append(got, c.out.pending.last...)
		c.out.pending = sequence{}
		if want := bytes.Join(parts, nil); !bytes.Equal(got, want) {
			t.Errorf("%d bytes, want %d: %.200q", len(got), len(want), got)
		}
	}
	c.out.pending, c.w = sequence{}, []byte("+PONG\r\n")
	publish(large)
	expect([]byte("+PONG\r\n"), messages(large), []byte(":5\r\n"))

	c.executing = true
	publish([]byte("a"))
	publish(large)
	publish([]byte("b"))
	c.executing, c.holds = false, false
	expect(messages([]byte("a")), []byte(":5\r\n:5\r\n:5\r\n"), messages(large), messages([]byte("b")))

	c.mute()
	publish([]byte("a"))
	publish(large)
	publish([]byte("b"))
	c.unmute()
	expect(messages([]byte("a")), messages(large), messages([]byte("b")))
}

// TestLongKeyEvents: events of a long key are not changed by later events.
func TestLongKeyEvents(t *testing.T) {
	s, c, _ := unserved(t, Options{Notify: "KEA"})
	for i := range 20 {
		s.subscribe(c, ofPatterns, []byte(strings.Repeat("*", 1+i)))
	}
	c.out.pending = sequence{}
	want := 0
	for _, letter := range []string{"a", "b"} {
		key := []byte(strings.Repeat(letter, 60_000))
		s.event(nil, classString, "set", key)
		clear(key) // the caller reuses it
		want += 2 * 20 * len(key)
	}
	var got []byte
	for len(c.out.pending.parts) > 0 {
		got = append(got, c.out.pending.next()...)
	}
	got = append(got, c.out.pending.last...)
	half := bytes.IndexByte(got, 'b') // of "b", the first letter of the second key
	if a, b := bytes.Count(got, []byte("a")), bytes.Count(got, []byte("bb")); half < 0 || a < want/2 || 2*b < want/2-200 {
		t.Errorf("%d bytes: %d of the first key, %d of the second, want %d", len(got), a, 2*b, want/2)
	}
}
