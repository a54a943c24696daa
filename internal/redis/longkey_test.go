package redis

import (
	"net"
	"testing"
)

// TestLongKey: a key that is too long for the store is not copied, because other clients wait meanwhile.
func TestLongKey(t *testing.T) {
	s, err := New(Options{Notify: "KEA"})
	if err != nil {
		t.Fatal(err)
	}
	s.flags.Store(uint32(classKeyspace | classKeyevent | classMiss)) // as if the store were local
	client, server := net.Pipe()
	defer client.Close()
	c := newConn(s, server)
	s.subscribe(c, ofChannels, []byte("ch"))
	key := make([]byte, 4<<20)
	if n := allocated(func() { s.IsLong(key); s.event(nil, classMiss, "keymiss", key) }); n > 1<<20 || cap(s.channel) > 1<<20 {
		t.Errorf("%d bytes allocated for a key of %d bytes, %d kept", n, len(key), cap(s.channel))
	}
	c.close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
