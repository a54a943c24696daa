package redis_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestLargeValues: commands treat large values like small ones.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	s, c := start(t, emulator.Options{RedisNotify: "KEA"})
	sub := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	sub.Do(t, "SUBSCRIBE", "__keyevent@0__:append")
	const n = 1 << 20
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
	expect(":1000\r\n", "TTL", "k")
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
