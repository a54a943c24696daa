package redis_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestIdleMemory: clients that are idle after a large request keep no memory for it, and the store keeps no
// overwritten values.
func TestIdleMemory(t *testing.T) {
	const clients, size = 8, 16 << 20
	s, err := emulator.New(emulator.Options{Redis: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	dial := func() *redistest.Client { return redistest.Dial(t, "tcp", redistest.Address(s.RedisURL())) }
	value := strings.Repeat("v", size)
	dial().Expect(t, "+OK\r\n", "SET", "k", value)
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	for range clients {
		dial().Expect(t, "+OK\r\n", "SET", "k", value)
	}
	for deadline := time.Now().Add(redistest.Patience); ; time.Sleep(10 * time.Millisecond) {
		grown := heap() - before
		if grown < 2*size {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d idle clients keep %d MiB of requests of %d MiB each", clients, grown>>20, size>>20)
		}
	}
}
