package redis

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestStalledClient: the server waits for a client that does not read its reply, then closes the connection.
func TestStalledClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{maxStall - time.Second, "+PONG\r\n"}, {maxStall + time.Second, ""}} {
		synctest.Test(t, func(t *testing.T) {
			s, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			client, server := net.Pipe()
			s.connect(server)
			if _, err := client.Write([]byte("PING\r\n")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(c.after) // in virtual time
			synctest.Wait()
			reply := make([]byte, len(c.want))
			if _, err := io.ReadFull(client, reply); err != nil || string(reply) != c.want {
				t.Errorf("after %v: %q, %v, want %q", c.after, reply, err, c.want)
			}
			if c.want == "" {
				if n, err := client.Read(make([]byte, 1)); n > 0 || err != io.EOF {
					t.Errorf("after %v: %d bytes, %v, want the end", c.after, n, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
