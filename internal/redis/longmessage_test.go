package redis

import (
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
