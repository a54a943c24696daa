package redis_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestLongTransactions: the work of a transaction or an MSET in one step is limited, because other clients
// wait.
func TestLongTransactions(t *testing.T) {
	t.Parallel()
	var observed atomic.Int64 // commands that were not queued
	_, c := start(t, emulator.Options{Observe: func(e emulator.Event) {
		if e.Outcome == observe.Refused && e.Cause == "the transaction is too large" {
			observed.Add(1)
		}
	}})
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
	const refused = "-ERR the transaction would be more work than to look at 100000 keys\r\n"
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
	if n := int(observed.Load()); tooMany == 0 || n != tooMany {
		t.Errorf("of a transaction of 200,000 commands %d are refused, %d observed", tooMany, n)
	}
	c.Expect(t, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
}

// TestMuchWorkInTransaction: commands of many keys or names, and those that describe the server, count as work too.
func TestMuchWorkInTransaction(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	const refused = "-ERR the transaction would be more work than to look at 100000 keys\r\n"
	names := func(n int) []string { return slices.Repeat([]string{"n"}, n) }
	for _, r := range []struct {
		times int // more than a transaction may have of it
		words []string
	}{
		{2, append([]string{"MGET"}, names(60_000)...)}, {2, append([]string{"EXISTS"}, names(60_000)...)},
		{2, append([]string{"DEL"}, names(60_000)...)}, {9, append([]string{"MSET"}, names(32_766)...)},
		{2, append([]string{"PUBSUB", "NUMSUB"}, names(60_000)...)},
		{2, append([]string{"COMMAND", "DOCS"}, names(10_000)...)}, {201, []string{"COMMAND", "DOCS"}}, {201, []string{"COMMAND"}},
		{1001, []string{"COMMAND", "LIST"}}, {1001, []string{"INFO"}}, {1001, []string{"CONFIG", "GET", "*"}},
		{10_001, []string{"CLIENT", "LIST"}}, {10_001, []string{"CLIENT", "INFO"}}, {10_001, []string{"CONFIG", "HELP"}},
	} {
		c.Expect(t, "+OK\r\n", "MULTI")
		queue := redistest.Request(r.words...)
		go func() { _, _ = c.Conn.Write(bytes.Repeat(queue, r.times)) }()
		for range r.times {
			if got, err := c.Frame(); err != nil || string(got) != "+QUEUED\r\n" {
				t.Fatalf("%s: %.100q, %v", r.words[0], got, err)
			}
		}
		got := c.Do(t, "EXEC")
		if strings.HasPrefix(got, fmt.Sprintf("*%d\r\n%s", r.times, refused)) || !strings.HasSuffix(got, refused) {
			t.Errorf("%d times %q: %.100q ... %q", r.times, r.words[:min(2, len(r.words))], got, got[max(0, len(got)-100):])
		}
	}
}

// TestPatternsInTransaction: all messages of one step together do not take long to match, so that the subscriber of a
// slow pattern is disconnected, and one with a simple pattern gets them all.
func TestPatternsInTransaction(t *testing.T) {
	t.Parallel()
	const messages = 16_000
	transaction := [][]string{{"MULTI"}}
	for range messages {
		transaction = append(transaction, []string{"PUBLISH", strings.Repeat("a", 300), "x"})
	}
	keys := []string{"MSET"}
	for i := range messages {
		keys = append(keys, strings.Repeat("a", 300)+strconv.Itoa(i), "v")
	}
	for name, commands := range map[string][][]string{"EXEC": append(transaction, []string{"EXEC"}), "MSET": {keys}} {
		s, c := start(t, emulator.Options{RedisNotify: "K$"})
		slow, simple := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL())), redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		for i := range 10 {
			slow.Do(t, "PSUBSCRIBE", "*"+strings.Repeat("a", 500)+"?"+strconv.Itoa(i)+"*b*")
		}
		simple.Do(t, "PSUBSCRIBE", "*a*")
		go func() {
			for _, words := range commands {
				_ = c.Send(words...)
			}
		}()
		slow.Closed(t)
		for i := range messages {
			if got, err := simple.Frame(); err != nil || !strings.HasPrefix(string(got), "*4\r\n$8\r\npmessage\r\n") {
				t.Fatalf("%s: message %d: %.100q, %v", name, i, got, err)
			}
		}
	}
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

// TestLargeMessagesOfTransaction: large messages that a transaction sends to its own client come after its replies, and before
// the messages of later commands.
func TestLargeMessagesOfTransaction(t *testing.T) {
	t.Parallel()
	s, _ := start(t, emulator.Options{})
	large := strings.Repeat("m", redis.LargeValue)
	c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	c.Do(t, "HELLO", "3")
	c.Do(t, "SUBSCRIBE", "ch")
	var all []byte
	for _, words := range [][]string{{"MULTI"}, {"PUBLISH", "ch", large}, {"PUBLISH", "ch", "b"}, {"EXEC"}, {"PUBLISH", "ch", "c"}} {
		all = append(all, redistest.Request(words...)...)
	}
	go func() { _, _ = c.Conn.Write(all) }() // an error shows below
	message := func(payload string) string {
		return fmt.Sprintf(">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$%d\r\n%s\r\n", len(payload), payload)
	}
	for _, want := range []string{"+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "*2\r\n:1\r\n:1\r\n", message(large), message("b"), message("c"), ":1\r\n"} {
		if got, err := c.Frame(); err != nil || string(got) != want {
			t.Fatalf("%.60q (%d bytes), %v, want %.60q", got, len(got), err, want)
		}
	}
}
