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

// TestLargeMessagesShared: a large message is not copied for each subscriber, because other clients wait meanwhile. It
// comes in its order.
func TestLargeMessagesShared(t *testing.T) {
	s, c, _ := unserved(t, Options{})
	const bytesOfMessage = 4 << 20
	payload := bytes.Repeat([]byte("m"), bytesOfMessage)
	var subscribers []*conn
	for i := range 30 {
		sub := newConn(s, c.nc)
		sub.pushes.Store(i%2 == 1)
		s.subscribe(sub, ofChannels, []byte("ch"))
		s.subscribe(sub, ofPatterns, fmt.Appendf(nil, "c*%s", strings.Repeat("*", i)))
		sub.out.mu.Lock()
		sub.out.pending, sub.out.partial = sequence{}, i%3 == 2
		sub.out.mu.Unlock()
		subscribers = append(subscribers, sub)
	}
	publish := func(payload []byte) {
		if err := runPublish(c, [][]byte{nil, []byte("ch"), payload}); err != nil {
			t.Fatal(err)
		}
	}
	publish([]byte("small"))
	if n := allocated(func() { publish(payload) }); n > 2*bytesOfMessage {
		t.Errorf("%d bytes allocated for a message of %d bytes to %d subscribers", n, bytesOfMessage, 2*len(subscribers))
	}
	publish([]byte("small"))
	for i, sub := range subscribers {
		if i%3 == 2 {
			sub.w, sub.sentHead = append(sub.w, "reply"...), nil
			sub.commit()
		}
		var got, want []byte
		for len(sub.out.pending.parts) > 0 {
			got = append(got, sub.out.pending.next()...)
		}
		got = append(got, sub.out.pending.last...)
		if i%3 == 2 {
			want = append(want, "reply"...)
		}
		for _, payload := range []string{"small", string(payload), "small"} {
			kind := "*>"[i%2]
			want = fmt.Appendf(want, "%c3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$%d\r\n%s\r\n", kind, len(payload), payload)
			pattern := "c*" + strings.Repeat("*", i)
			want = fmt.Appendf(want, "%c4\r\n$8\r\npmessage\r\n$%d\r\n%s\r\n$2\r\nch\r\n$%d\r\n%s\r\n", kind, len(pattern), pattern, len(payload), payload)
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
