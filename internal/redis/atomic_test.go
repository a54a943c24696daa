package redis_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestLongTransactions: the work of a transaction or an MSET in one step is limited, because other clients
// wait.
func TestLongTransactions(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	pairs := func(n int) []string {
		words := []string{"MSET"}
		for i := range n {
			words = append(words, fmt.Sprint(i), "v")
		}
		return words
	}
	c.Expect(t, "-ERR more than 16383 keys cannot be set in one step\r\n", pairs(16_384)...)
	for _, prefix := range []string{"", "a", "b", "c"} {
		words := pairs(16_383)
		for i := 1; i < len(words); i += 2 {
			words[i] = prefix + words[i]
		}
		c.Expect(t, "+OK\r\n", words...)
	}

	c.Expect(t, "+OK\r\n", "MULTI")
	for _, command := range []string{"KEYS *x", "DBSIZE", "KEYS *x", "SCAN 0 COUNT 10000", "FLUSHALL", "SET a b"} {
		c.Expect(t, "+QUEUED\r\n", strings.Fields(command)...)
	}
	const refused = "-ERR the transaction would look at more than 100000 keys\r\n"
	c.Expect(t, "*6\r\n*0\r\n:65532\r\n"+refused+refused+refused+"+OK\r\n", "EXEC")
	c.Expect(t, ":65533\r\n", "DBSIZE")

	// go-redis sends as many commands.
	const commands = 20_000
	replies := strings.Repeat("+QUEUED\r\n", commands)
	all := "+OK\r\n" + replies + fmt.Sprintf("*%d\r\n", commands)
	for i := range commands {
		all += fmt.Sprintf(":%d\r\n", i+1)
	}
	go func() { _, _ = io.WriteString(c.Conn, "MULTI\r\n"+strings.Repeat("INCR n\r\n", commands)+"EXEC\r\n") }()
	got := make([]byte, len(all))
	if _, err := io.ReadFull(c.Reader, got); err != nil || string(got) != all {
		t.Errorf("%.100q, %v", got, err)
	}

	c.Expect(t, "+OK\r\n", "MULTI")
	go func() { _, _ = io.WriteString(c.Conn, strings.Repeat("INCR n\r\n", 200_000)) }()
	tooMany := 0
	for range 200_000 {
		if line, err := c.Reader.ReadString('\n'); err != nil || line != "+QUEUED\r\n" {
			if line != "-ERR the transaction is too large\r\n" {
				t.Fatalf("%q, %v", line, err)
			}
			tooMany++
		}
	}
	if tooMany == 0 {
		t.Error("a transaction of 200,000 commands is queued")
	}
	c.Expect(t, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
}

// TestLargeTransactions: the bytes that a transaction may write are limited, because other clients wait until
// it ends.
func TestLargeTransactions(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	const refused = "-ERR the transaction would write more than 32 MiB of values\r\n"
	value := strings.Repeat("v", 12_000_000)
	c.Expect(t, "+OK\r\n", "SET", "k", value)
	for _, command := range []string{
		"APPEND k x", "SETRANGE k 0 x", "SETBIT j 300000000 1", "COPY k j REPLACE", "EXPIRE k 1000", "SETRANGE j 9000000 x",
	} {
		c.Expect(t, "+OK\r\n", "SET", "j", value)
		c.Expect(t, "+OK\r\n", "MULTI")
		for range 6 {
			c.Expect(t, "+QUEUED\r\n", strings.Fields(command)...)
		}
		c.Expect(t, "+QUEUED\r\n", "PING")
		if got := c.Do(t, "EXEC"); !strings.HasSuffix(got, refused+refused+refused+"+PONG\r\n") {
			t.Errorf("%s: got %.200q", command, got)
		}
	}
}

// TestAllOrNothing: a command that writes several keys changes nothing if one of them is refused.
func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	s, c := start(t, emulator.Options{MaxStored: 1 << 20})
	const (
		empty   = "-ERR the key length is zero\r\n"
		tooLong = "-ERR the key is longer than 65535 bytes\r\n"
		full    = "-ERR the quota has been exceeded\r\n"
	)
	long, half, most := strings.Repeat("k", 65_536), strings.Repeat("v", 500_000), strings.Repeat("v", 1_000_000)
	longest := long[1:]
	for _, r := range []struct {
		want  string
		words []string
	}{
		{empty, []string{"RENAME", "a", ""}}, {empty, []string{"RENAMENX", "a", ""}}, {empty, []string{"MSET", "m", "1", "", "2"}},
		{empty, []string{"MSETNX", "m", "1", "", "2"}}, {empty, []string{"DEL", "a", ""}}, {empty, []string{"COPY", "a", ""}},
		{tooLong, []string{"RENAME", "a", long}}, {tooLong, []string{"RENAMENX", "a", long}}, {tooLong, []string{"MSET", "m", "1", long, "2"}},
		{tooLong, []string{"MSETNX", "m", "1", long, "2"}}, {tooLong, []string{"UNLINK", "a", long}}, {tooLong, []string{"COPY", "a", long}},
		{full, []string{"MSET", "m", half, "n", half, "o", half}}, {full, []string{"MSETNX", "m", half, "n", half, "o", half}},
		{full, []string{"MSET", "m", "1", "a", half + most}}, {full, []string{"MSET", "m", half, "m", half + most}},
	} {
		c.Expect(t, "+OK\r\n", "FLUSHALL")
		c.Expect(t, "+OK\r\n", "SET", "a", "precious", "EX", "1000")
		before, _ := s.Get("a")
		c.Expect(t, r.want, r.words...)
		if after, _ := s.Get("a"); after.Version != before.Version || len(s.Keys()) != 1 {
			t.Errorf("%s %.20q: %q has version %s, before %s", r.words[0], r.words[2], s.Keys(), after.Version, before.Version)
		}
	}
	c.Expect(t, "+OK\r\n", "MSET", "a", most, "a", "1", "m", half, "n", half)
	c.Expect(t, "+OK\r\n", "FLUSHALL")
	c.Expect(t, "+OK\r\n", "SET", "a", most)
	c.Expect(t, full, "RENAME", "a", longest)
	c.Expect(t, "+OK\r\n", "RENAME", "a", "b")
	c.Expect(t, fmt.Sprintf(":%d\r\n", len(most)), "STRLEN", "b")
}

// TestManyForeignPatterns: patterns that cannot match cost time too, so a client is disconnected if it has
// more of them than would be fair to other clients.
func TestManyForeignPatterns(t *testing.T) {
	t.Parallel()
	s, c := start(t, emulator.Options{})
	sub := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	words := []string{"PSUBSCRIBE"}
	for i := range 70_000 {
		words = append(words, fmt.Sprintf("p%d*", i))
	}
	if err := sub.Send(words...); err != nil {
		t.Fatal(err)
	}
	for !strings.HasPrefix(c.Do(t, "PUBSUB", "NUMPAT"), ":70000") {
	}
	c.Expect(t, ":0\r\n", "PUBLISH", "other", "x")
	sub.Closed(t)
}
