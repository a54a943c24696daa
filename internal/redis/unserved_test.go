package redis

import (
	"net"
	"testing"
)

// unserved returns a server, a connection of it that no goroutine serves, and the client's side of the connection.
func unserved(t *testing.T, o Options) (*Server, *conn, net.Conn) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	client, server := net.Pipe()
	c := newConn(s, server)
	t.Cleanup(func() {
		c.close()
		client.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, c, client
}
