package redis_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// overflow sends requests whose replies the client does not read, then last.
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

// TestClosedStops: the pipeline of a closed connection stops.
func TestClosedStops(t *testing.T) {
	t.Parallel()
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

// TestLargeReply: a reply that the client does not read takes little memory and does not delay other clients.
func TestLargeReply(t *testing.T) {
	const keys = 100
	s, other := start(t, emulator.Options{})
	value := strings.Repeat("x", 1<<20)
	other.Expect(t, "+OK\r\n", "SET", "big", value)
	c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	c.Do(t, "HELLO", "3")
	c.Do(t, "SUBSCRIBE", "news")
	request := append([]string{"MGET"}, slices.Repeat([]string{"big"}, keys)...)
	if err := c.Send(request...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reader.Peek(1); err != nil { // the reply has begun
		t.Fatal(err)
	}
	var waiting runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&waiting)
	other.Expect(t, "+OK\r\n", "SET", "small", "v")
	other.Expect(t, ":1\r\n", "PUBLISH", "news", "x")
	want := fmt.Appendf(nil, "*%d\r\n", keys)
	for range keys {
		want = fmt.Appendf(want, "$%d\r\n%s\r\n", len(value), value)
	}
	if got, err := c.Frame(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
	}
	if f, err := c.Frame(); err != nil || string(f) != ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n" {
		t.Errorf("%q, %v", f, err)
	}
	c.Expect(t, "_\r\n", "GET", "nothing")
	if most := uint64(50 << 20); waiting.HeapInuse > most {
		t.Errorf("%d bytes are in use while the client does not read", waiting.HeapInuse)
	}
}

// TestRepeatedCommands: descriptions of commands, which take more memory than their names, are sent in parts.
func TestRepeatedCommands(t *testing.T) {
	s, _ := start(t, emulator.Options{})
	for _, subcommand := range []string{"DOCS", "INFO"} {
		c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		one := c.Do(t, "COMMAND", subcommand, "client")
		repeated := (40 << 20) / len(one)
		var before, waiting runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if err := c.Send(append([]string{"COMMAND", subcommand}, slices.Repeat([]string{"client"}, repeated)...)...); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Reader.Peek(1); err != nil { // the reply has begun
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&waiting)
		if more, most := int64(waiting.HeapAlloc)-int64(before.HeapAlloc), int64(24<<20); more > most {
			t.Errorf("%s: %d more bytes are in use while the client does not read", subcommand, more)
		}
		begin := strings.Index(one, "\r\n") + 2
		want := fmt.Sprintf("*%d\r\n", repeated)
		if subcommand == "DOCS" {
			want = fmt.Sprintf("*%d\r\n", 2*repeated)
		}
		want += strings.Repeat(one[begin:], repeated)
		if got, err := c.Frame(); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v, want %d", subcommand, len(got), err, len(want))
		}
		c.Expect(t, "+PONG\r\n", "PING")
	}
}

// TestLastReplies: a client that quits gets all replies, even while another goroutine writes messages to it.
func TestLastReplies(t *testing.T) {
	t.Parallel()
	s, other := start(t, emulator.Options{})
	c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	c.Do(t, "SUBSCRIBE", "a")
	other.Expect(t, ":1\r\n", "PUBLISH", "a", strings.Repeat("x", 24<<20)) // more than fits in the buffers of the connection
	if _, err := c.Conn.Write(bytes.Join([][]byte{redistest.Request("PING"), redistest.Request("QUIT")}, nil)); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(other.Do(t, "CLIENT", "LIST"), "cmd=ping") { // until the PING is answered
	}
	if got := c.Closed(t); !bytes.HasSuffix(got, []byte("*2\r\n$4\r\npong\r\n$0\r\n\r\n+OK\r\n")) {
		t.Errorf("at the end: %.100q", got[max(0, len(got)-100):])
	}
}

// TestOwnMessages: a client gets its own messages among its replies, but not more than other subscribers get.
func TestOwnMessages(t *testing.T) {
	t.Parallel()
	s, other := start(t, emulator.Options{})
	message := strings.Repeat("x", 8<<20)
	for name, commands := range map[string][][]string{
		"a message":        {{"PUBLISH", "x", message}},
		"its reply is off": {{"CLIENT", "REPLY", "SKIP"}, {"PUBLISH", "x", message}},
		"a shard message":  {{"MULTI"}, {"SPUBLISH", "x", message}, {"SPUBLISH", "x", message}, {"SPUBLISH", "x", message}, {"SPUBLISH", "x", message}, {"EXEC"}},
	} {
		c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		c.Do(t, "HELLO", "3")
		c.Do(t, "SSUBSCRIBE", "x")
		for _, pattern := range []string{"*", "**", "***"} {
			c.Do(t, "PSUBSCRIBE", pattern)
		}
		if err := c.Send("PUBLISH", "x", message); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if f, err := c.Frame(); err != nil || !strings.HasPrefix(string(f), ">4\r\n$8\r\npmessage\r\n") {
				t.Fatalf("%s: %.50q, %v", name, f, err)
			}
		}
		if f, err := c.Frame(); err != nil || string(f) != ":3\r\n" {
			t.Fatalf("%s: %.50q, %v", name, f, err)
		}
		c.Do(t, "PSUBSCRIBE", "****")
		for _, words := range commands {
			if err := c.Send(words...); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.Closed(t); len(got) > 1000 {
			t.Errorf("%s: %d bytes came", name, len(got))
		}
	}
	for other.Do(t, "PUBSUB", "NUMPAT") != ":0\r\n" { // until the server has noticed the end of the last connection too
	}
}

// TestTransactionMemory: the memory for a transaction's queue and replies is limited.
func TestTransactionMemory(t *testing.T) {
	t.Parallel()
	o := emulator.Options{Limits: emulator.Limits{MaxBytes: 8 << 20}}
	_, c := start(t, o)
	c.Expect(t, "+OK\r\n", "MULTI")
	value := strings.Repeat("x", 1<<20)
	for i := 0; ; i++ {
		if c.Send("SET", "k", value) != nil {
			break // the server closed the connection before it had read the whole value
		}
		got, err := c.Frame()
		if err != nil || strings.HasPrefix(string(got), "-OOM ") {
			break // the reset that follows may overtake the reply
		}
		if string(got) != "+QUEUED\r\n" || i == 8 {
			t.Fatalf("%d: %q", i, got)
		}
	}
	c.Closed(t)

	s, c := start(t, emulator.Options{})
	other := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	c.Expect(t, "+OK\r\n", "SET", "large", value)
	c.Expect(t, "+OK\r\n", "MULTI")
	want := "*41\r\n"
	for range 20 {
		c.Expect(t, "+QUEUED\r\n", "GET", "large")
		c.Expect(t, "+QUEUED\r\n", "INCR", "large")
		want += "$1048576\r\n" + value + "\r\n" + "-ERR value is not an integer or out of range\r\n"
	}
	c.Expect(t, "+QUEUED\r\n", "SET", "big", value[:800_000])
	c.Expect(t, want+"+OK\r\n", "EXEC")
	c.Expect(t, "+OK\r\n", "MULTI")
	for range 50 {
		c.Expect(t, "+QUEUED\r\n", "GET", "big")
	}
	c.Expect(t, "+QUEUED\r\n", "SET", "last", "1")
	if err := c.Send("EXEC"); err != nil {
		t.Fatal(err)
	}
	if got := c.Closed(t); len(got) > 0 {
		t.Errorf("%d bytes came", len(got))
	}
	other.Expect(t, "$1\r\n1\r\n", "GET", "last")
	keys := []string{"MSET"}
	for i := range 600 {
		keys = append(keys, fmt.Sprint(i)+value[:60_000], "")
	}
	other.Expect(t, "+OK\r\n", keys...)
	other.Expect(t, "-ERR the reply would be too large; use SCAN\r\n", "KEYS", "*")
	other.Expect(t, "*1\r\n$4\r\nlast\r\n", "KEYS", "las*")
}
