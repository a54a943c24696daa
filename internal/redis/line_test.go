package redis

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// pipe returns a connection to a new server.
func pipe(t *testing.T, o Options) net.Conn {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	client, server := net.Pipe()
	s.connect(server)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return client
}

// TestReadOutOfLine: the parts of a large argument are read without standing in line, where each of them would wait
// for all the others.
func TestReadOutOfLine(t *testing.T) {
	t.Parallel()
	line := new(sync.Mutex)
	c := pipe(t, Options{Line: line})
	line.Lock()
	defer line.Unlock()
	for _, part := range []string{"*2\r\n$4\r\nECHO\r\n$100000\r\n", string(make([]byte, 40_000)), string(make([]byte, 40_000))} {
		if _, err := io.WriteString(c, part); err != nil {
			t.Fatalf("%d bytes: %v", len(part), err)
		}
	}
}
