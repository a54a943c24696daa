package redis_test

import (
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/redis/redistest"
)

// overflow sends requests whose replies the client does not read, and then one more.
func overflow(t *testing.T, c *redistest.Client, last ...string) {
	t.Helper()
	var b []byte
	for range 500 {
		b = append(b, redistest.Request("GET", "big")...)
	}
	if _, err := c.Conn.Write(append(b, redistest.Request(last...)...)); err != nil {
		t.Fatal(err)
	}
}

// awaitGone waits until c is the only client.
func awaitGone(t *testing.T, c *redistest.Client) {
	t.Helper()
	for !strings.Contains(c.Do(t, "INFO", "clients"), "connected_clients:1\r\n") {
	}
}

// TestClosedStops: the pipeline of a connection that has ended does not run on.
func TestClosedStops(t *testing.T) {
	for name, end := range map[string]func(c, other *redistest.Client){
		"closed": func(c, _ *redistest.Client) { c.Conn.Close() },
		"killed": func(c, other *redistest.Client) { other.Expect(t, ":1\r\n", "CLIENT", "KILL", "TYPE", "normal") },
	} {
		t.Run(name, func(t *testing.T) {
			s, other := start(t, emulator.Options{})
			other.Expect(t, "+OK\r\n", "SET", "big", strings.Repeat("x", 1<<20))
			c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
			c.Expect(t, "+PONG\r\n", "PING")
			overflow(t, c, "SET", "late", "v")
			if _, err := c.Reader.ReadByte(); err != nil { // the pipeline is running
				t.Fatal(err)
			}
			end(c, other)
			awaitGone(t, other)
			other.Expect(t, ":0\r\n", "EXISTS", "late")
		})
	}
}
