package redis_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestManyOptions: options are read with the store locked, so a command has at most 64 arguments unless it takes any
// number of keys or names.
func TestManyOptions(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	c.Expect(t, "+OK\r\n", "SET", "k", "v")
	for _, command := range []string{"SET k v", "GETEX k", "EXPIRE k 10", "COPY k k2", "SCAN 0", "MEMORY USAGE k", "SS.SET k v"} {
		option := map[string][]string{
			"SET k v": {"NX"}, "GETEX k": {"EX", "1"}, "EXPIRE k 10": {"NX"}, "COPY k k2": {"REPLACE"}, "SCAN 0": {"MATCH", "x*"},
			"MEMORY USAGE k": {"SAMPLES", "1"}, "SS.SET k v": {"NX"},
		}[command]
		c.Expect(t, "-ERR syntax error\r\n", append(strings.Fields(command), slices.Repeat(option, 65)...)...)
	}
	c.Expect(t, ":1000\r\n", append([]string{"EXISTS"}, slices.Repeat([]string{"k"}, 1000)...)...)
	c.Expect(t, "$30\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n", append([]string{"INFO"}, slices.Repeat([]string{"cluster"}, 1000)...)...)
	c.Expect(t, "*2\r\n$9\r\ndatabases\r\n$1\r\n1\r\n", append([]string{"CONFIG", "GET"}, slices.Repeat([]string{"data*"}, 1000)...)...)
	c.Expect(t, "*1000\r\n"+strings.Repeat("$1\r\nk\r\n", 1000), append([]string{"COMMAND", "GETKEYS", "MGET"}, slices.Repeat([]string{"k"}, 1000)...)...)
}

// TestManyMessages: a command that would send too many messages in one step is refused, and changes nothing.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	s, c := start(t, emulator.Options{RedisNotify: "KEA"})
	const refused = "-ERR the messages of one step to all subscribers would be too much work\r\n"
	var keys, pairs []string
	for i := range 16_383 {
		key := fmt.Sprint("k", i)
		keys, pairs = append(keys, key), append(pairs, key, "v")
	}
	mset, del := append([]string{"MSET"}, pairs...), append([]string{"DEL"}, keys...)
	c.Expect(t, "+OK\r\n", mset...)
	exec := func(commands ...[]string) []string {
		t.Helper()
		c.Expect(t, "+OK\r\n", "MULTI")
		for _, words := range commands {
			c.Expect(t, "+QUEUED\r\n", words...)
		}
		return strings.SplitAfter(c.Do(t, "EXEC"), "\r\n")[1:]
	}
	var subscribers []*redistest.Client
	subscribe := func(words ...string) {
		for range 50 {
			sub := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
			sub.Do(t, words...)
			subscribers = append(subscribers, sub)
		}
	}
	subscribe("PSUBSCRIBE", "_*")
	c.Expect(t, refused, mset...)
	c.Expect(t, refused, append([]string{"MSETNX"}, mset[1:]...)...)
	if got := exec(mset, del, []string{"FLUSHALL"}, []string{"SET", "new", "v"}, []string{"DBSIZE"}); !slices.Equal(got, []string{refused, refused, refused, "+OK\r\n", ":16384\r\n", ""}) {
		t.Errorf("EXEC with many subscribers: %.200q", got)
	}
	c.Expect(t, "+OK\r\n", mset[:2001]...)
	c.Expect(t, ":16384\r\n", "DBSIZE")
	subscribe("SUBSCRIBE", "ch")
	got := exec(slices.Repeat([][]string{{"PUBLISH", "ch", strings.Repeat("m", 10_000)}}, 400)...)
	sent := slices.Index(got, refused)
	if sent < 200 || sent > 300 {
		t.Errorf("%d messages of 10,000 bytes to 50 subscribers in one step", sent)
	}
	c.Expect(t, ":50\r\n", "PUBLISH", "ch", "m")
	for _, sub := range subscribers {
		sub.Conn.Close()
	}
}

// TestManySettings: CONFIG GET keeps one parsed pattern in memory at a time.
func TestManySettings(t *testing.T) {
	_, c := start(t, emulator.Options{})
	request := redistest.Request(append([]string{"CONFIG", "GET"}, slices.Repeat([]string{"q"}, 300_000)...)...)
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before, most := heap(), 0
	replied := make(chan error)
	go func() {
		_, err := c.Conn.Write(request)
		if err == nil {
			_, err = c.Frame()
		}
		replied <- err
	}()
	for done := false; !done; {
		select {
		case err := <-replied:
			if done = true; err != nil {
				t.Error(err)
			}
		default:
			most = max(most, heap()-before)
		}
	}
	// All patterns together take 210 MiB. On a busy machine, garbage is in use too.
	if limit := 120 << 20; most > limit {
		t.Errorf("%d bytes are in use, want at most %d", most, limit)
	}
}
