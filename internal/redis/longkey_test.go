package redis

import (
	"testing"
)

// TestLongKey: a key that is too long for the store is not copied, because other clients wait meanwhile.
func TestLongKey(t *testing.T) {
	s, c, _ := unserved(t, Options{Notify: "KEA"})
	s.flags.Store(uint32(classKeyspace | classKeyevent | classMiss)) // as if the store were local
	s.subscribe(c, ofChannels, []byte("ch"))
	key := make([]byte, 4<<20)
	if n := allocated(func() { s.IsCostly(key); s.event(nil, classMiss, "keymiss", key) }); n > 1<<20 || cap(s.channel) > 1<<20 {
		t.Errorf("%d bytes allocated for a key of %d bytes, %d kept", n, len(key), cap(s.channel))
	}
}
