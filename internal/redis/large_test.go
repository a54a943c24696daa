package redis_test

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestLargeValues: commands treat large values like small ones.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	s, c := start(t, emulator.Options{RedisNotify: "KEA"})
	sub := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	sub.Do(t, "SUBSCRIBE", "__keyevent@0__:append")
	const n = redis.LargeValue
	value := bytes.Repeat([]byte("0123456789abcdef"), n/16)
	bulk := func(v []byte) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v) }
	expect := func(want string, words ...string) {
		t.Helper()
		if got := c.Do(t, words...); got != want {
			t.Fatalf("%.60q: got %d bytes, %.60q…, want %d, %.60q…", words, len(got), got, len(want), want)
		}
	}
	expect("+OK\r\n", "SET", "k", string(value))
	expect(bulk(value), "GET", "k")
	expect(fmt.Sprintf(":%d\r\n", n+3), "APPEND", "k", "end")
	value = append(value, "end"...)
	expect(fmt.Sprintf(":%d\r\n", n+1000+1), "SETRANGE", "k", fmt.Sprint(n+1000), "x")
	value = append(append(value, make([]byte, 1000-3)...), 'x')
	expect(":0\r\n", "SETBIT", "k", "1", "1")
	value[0] |= 0x40
	expect(":1\r\n", "EXPIRE", "k", "1000")
	if left, err := strconv.Atoi(strings.Trim(c.Do(t, "TTL", "k"), ":\r\n")); err != nil || left < 1 || left > 1000 {
		t.Errorf("TTL: %d s, %v", left, err)
	}
	expect(bulk(value), "GETEX", "k", "PERSIST")
	expect(":-1\r\n", "TTL", "k")
	expect(":1\r\n", "COPY", "k", "j")
	expect("+OK\r\n", "RENAME", "j", "i")
	expect("*3\r\n"+bulk(value)+"$-1\r\n"+bulk(value), "MGET", "k", "j", "i")
	expect(bulk(value[1:n+1]), "GETRANGE", "k", "1", fmt.Sprint(n))
	expect(bulk(value), "GETSET", "i", string(value[:n]))
	expect(bulk(value[:n]), "GETDEL", "i")
	expect("$-1\r\n", "SET", "k", "small", "NX")
	expect("+OK\r\n", "MSET", "a", string(value), "b", "2", "c", string(value[1:]))
	expect("*3\r\n"+bulk(value)+"$1\r\n2\r\n"+bulk(value[1:]), "MGET", "a", "b", "c")
	expect("+OK\r\n", "SET", "a", "small")
	expect(":5\r\n", "STRLEN", "a")
	expect(bulk(value), "SET", "k", string(value), "GET")
	if got := c.Do(t, "SS.GET", "k"); !strings.HasPrefix(got, "*2\r\n"+bulk(value)+"$") {
		t.Errorf("SS.GET: %d bytes, %.60q…", len(got), got)
	}
	expect("+OK\r\n", "MULTI")
	expect("+QUEUED\r\n", "APPEND", "k", "x")
	expect("+QUEUED\r\n", "GET", "k")
	value = append(value, 'x')
	expect(fmt.Sprintf("*2\r\n:%d\r\n%s", len(value), bulk(value)), "EXEC")
	expect("+OK\r\n", "CLIENT", "REPLY", "ON")

	// What follows a large value in the same buffer does not change it.
	var pipeline []byte
	for i := range 5 {
		pipeline = append(pipeline, redistest.Request("SET", fmt.Sprint("p", i), strings.Repeat(fmt.Sprint(i), n+i))...)
		pipeline = append(pipeline, redistest.Request("ECHO", strings.Repeat("-", n/10))...)
		pipeline = append(pipeline, redistest.Request("GET", fmt.Sprint("p", i))...)
		pipeline = append(pipeline, redistest.Request("CLIENT", "REPLY", "SKIP")...)
		pipeline = append(pipeline, redistest.Request("GET", "p0")...)
	}
	for range 2 {
		go func() { _, _ = c.Conn.Write(pipeline) }() // otherwise both sides would wait for the other to read
		for i := range 5 {
			got := []byte(bulk([]byte(strings.Repeat(fmt.Sprint(i), n+i))))
			for _, want := range [][]byte{[]byte("+OK\r\n"), []byte(bulk(bytes.Repeat([]byte("-"), n/10))), got} {
				if reply, err := c.Frame(); err != nil || !bytes.Equal(reply, want) {
					t.Fatalf("%d: got %.60q, %v, want %.60q", i, reply, err, want)
				}
			}
		}
	}

	// A new value does not change the old one while a client reads it.
	slow := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	if err := slow.Send("GET", "k"); err != nil {
		t.Fatal(err)
	}
	expect("+OK\r\n", "SET", "k", strings.Repeat("-", len(value)))
	got, err := slow.Frame()
	if err != nil || string(got) != bulk(value) && string(got) != bulk(bytes.Repeat([]byte("-"), len(value))) {
		t.Errorf("a slow reader got another value, %v", err)
	}
}

// TestEventsBesideLargeValues: a client that is notified of its own command gets the event after the command's reply.
func TestEventsBesideLargeValues(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{RedisNotify: "KEA"})
	value := strings.Repeat("v", redis.LargeValue)
	bulk := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
	c.Do(t, "HELLO", "3")
	c.Do(t, "SUBSCRIBE", "__keyspace@0__:k")
	set := func() {
		t.Helper()
		if err := c.Send("SET", "k", value); err != nil {
			t.Fatal(err)
		}
	}
	frame := func(want string) {
		t.Helper()
		if got, err := c.Frame(); err != nil || string(got) != want {
			t.Fatalf("got %d bytes, %.60q…, %v, want %d, %.60q…", len(got), got, err, len(want), want)
		}
	}
	event := func(name string) string {
		return fmt.Sprintf(">3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$%d\r\n%s\r\n", len(name), name)
	}
	for _, test := range []struct {
		words  []string
		events []string
	}{
		{[]string{"GETDEL", "k"}, []string{"del"}},
		{[]string{"GETEX", "k", "EX", "1000"}, []string{"expire"}},
		{[]string{"GETSET", "k", "v"}, []string{"set"}},
		{[]string{"SET", "k", "v", "GET", "EX", "1000"}, []string{"set", "expire"}},
	} {
		set()
		frame(event("set"))
		frame("+OK\r\n")
		if err := c.Send(test.words...); err != nil {
			t.Fatal(err)
		}
		frame(bulk)
		for _, name := range test.events {
			frame(event(name))
		}
		c.Do(t, "PING")
	}
}

// TestConcurrentEdits: edits of a large value are atomic, though other clients use the store while a new
// value is made.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	s, c := start(t, emulator.Options{})
	c.Expect(t, "+OK\r\n", "SET", "k", strings.Repeat("v", redis.LargeValue))
	const clients, each = 4, 25
	var editing sync.WaitGroup
	for range clients {
		other := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		editing.Go(func() {
			for i := range each {
				words := []string{"APPEND", "k", "x"}
				if i%5 == 4 {
					words = []string{"EXPIRE", "k", "1000"} // changes the version and not the value
				}
				if err := other.Send(words...); err != nil {
					t.Error(err)
				}
				if reply, err := other.Frame(); err != nil || reply[0] != ':' {
					t.Errorf("%.60q, %v", reply, err)
				}
			}
		})
	}
	editing.Wait()
	c.Expect(t, fmt.Sprintf(":%d\r\n", redis.LargeValue+clients*each*4/5), "STRLEN", "k")
}

// TestEditBesideExpire: a client that edits a large value does not wait for clients that change only the key's expiry.
func TestEditBesideExpire(t *testing.T) {
	t.Parallel()
	const size = 32 << 20
	s, c := start(t, emulator.Options{})
	c.Expect(t, "+OK\r\n", "SET", "k", strings.Repeat("v", size), "EX", "1000")
	expire := redistest.Request("EXPIREAT", "k", "4102444800")
	other := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	edited := make(chan struct{})
	var expiring sync.WaitGroup
	expiring.Go(func() {
		for {
			select {
			case <-edited:
				return
			default:
			}
			if _, err := other.Conn.Write(bytes.Repeat(expire, 10)); err != nil {
				t.Error(err)
				return
			}
			for range 10 {
				if reply, err := other.Frame(); err != nil || string(reply) != ":1\r\n" {
					t.Errorf("%.60q, %v", reply, err)
					return
				}
			}
		}
	})
	for i := range 3 {
		c.Expect(t, fmt.Sprintf(":%d\r\n", size+i+1), "APPEND", "k", "x")
	}
	close(edited)
	expiring.Wait()
	c.Expect(t, ":4102444800\r\n", "EXPIRETIME", "k")
}

// TestRefusedEdits: an edit that the store refuses returns an error.
func TestRefusedEdits(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{MaxStored: 4 << 20})
	for _, words := range [][]string{{"SETBIT", "k", "80000000", "1"}, {"SETRANGE", "k", "10000000", "x"}, {"SETRANGE", "k", "1000000", strings.Repeat("x", 4<<20)}} {
		c.Expect(t, "-ERR the quota has been exceeded\r\n", words...)
	}
	c.Expect(t, ":0\r\n", "EXISTS", "k")
}

// TestLongestValues: a value that is too long for MQTT is not stored.
func TestLongestValues(t *testing.T) {
	_, c := start(t, emulator.Options{})
	const tooLong = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"
	c.Expect(t, tooLong, "SETRANGE", "r", "267386880", "x")
	c.Expect(t, tooLong, "SETBIT", "r", "2139095040", "1")
	c.Expect(t, ":0\r\n", "GETBIT", "r", "4294967295")
	c.Expect(t, "-ERR bit offset is not an integer or out of range\r\n", "GETBIT", "r", "4294967296")
	c.Expect(t, ":0\r\n", "EXISTS", "r")
	if _, err := io.WriteString(c.Conn, "*3\r\n$3\r\nSET\r\n$1\r\nr\r\n$267386881\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := string(c.Closed(t)); got != "-ERR Protocol error: invalid bulk length\r\n" {
		t.Errorf("%q", got)
	}
}
