package emulator

import (
	"strings"
	"testing"
)

// TestReplyTopicKept: the server remembers the last response topic of a client, whose memory it charges, up to 256 bytes. A
// longer one is judged each time.
func TestReplyTopicKept(t *testing.T) {
	t.Parallel()
	asked := 0
	s := Start(t, Options{Policy: PolicyFunc(func(a Access) bool {
		asked++
		return true
	})})
	watcher(t, s, "c")
	s.broker.Lock()
	defer s.broker.Unlock()
	c := s.broker.Client("c")
	for n, more := range map[int]bool{1: false, 256: false, 257: true, 65_535: true} {
		topic := []byte(strings.Repeat("r", n))
		may := s.mayReplyTo(c, topic)
		before := asked
		if may = may && s.mayReplyTo(c, topic); !may || (asked > before) != more {
			t.Errorf("%d bytes: allowed %t, asked %d times more", n, may, asked-before)
		}
		if kept := len(s.member(c.Identity).reply); kept > maxReply {
			t.Errorf("%d bytes are kept", kept)
		}
	}
}
