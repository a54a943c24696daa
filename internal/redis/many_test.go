package redis_test

import (
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

// TestManySettings: CONFIG GET keeps one parsed pattern in memory at a time.
func TestManySettings(t *testing.T) {
	_, c := start(t, emulator.Options{})
	request := redistest.Request(append([]string{"CONFIG", "GET"}, slices.Repeat([]string{"q"}, 100_000)...)...)
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
	if limit := 30 << 20; most > limit {
		t.Errorf("%d bytes are in use, want at most %d", most, limit)
	}
}
