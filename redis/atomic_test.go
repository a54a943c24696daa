package redis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/redis/redistest"
)

// TestLongTransactions: what a transaction, and an MSET, may do in one step is bounded, because
// other clients wait.
func TestLongTransactions(t *testing.T) {
	_, c := start(t, emulator.Options{})
	pairs := func(n int) []string {
		words := []string{"MSET"}
		for i := range n {
			words = append(words, fmt.Sprint(i), "v")
		}
		return words
	}
	c.Expect(t, "-ERR more than 65535 keys cannot be set in one step\r\n", pairs(65_536)...)
	c.Expect(t, "+OK\r\n", pairs(65_535)...)

	c.Expect(t, "+OK\r\n", "MULTI")
	for _, command := range []string{"KEYS *x", "DBSIZE", "KEYS *x", "SCAN 0 COUNT 10000", "FLUSHALL", "SET a b"} {
		c.Expect(t, "+QUEUED\r\n", strings.Fields(command)...)
	}
	const refused = "-ERR the transaction would look at more than 100000 keys\r\n"
	c.Expect(t, "*6\r\n*0\r\n:65535\r\n"+refused+refused+refused+"+OK\r\n", "EXEC")
	c.Expect(t, ":65536\r\n", "DBSIZE")

	c.Expect(t, "+OK\r\n", "MULTI")
	c.Expect(t, "+QUEUED\r\n", pairs(65_535)...)
	c.Expect(t, "-ERR the transaction is too large\r\n", "SET", "a", "b")
	c.Expect(t, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
	c.Expect(t, ":65535\r\n", append([]string{"DEL"}, keysOf(pairs(65_535))...)...)
}

func keysOf(mset []string) (keys []string) {
	for i := 1; i < len(mset); i += 2 {
		keys = append(keys, mset[i])
	}
	return keys
}

// TestManyForeignPatterns: patterns that cannot match cost time too, so a client with more of them than
// may delay others is disconnected.
func TestManyForeignPatterns(t *testing.T) {
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
