package gateway

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/redis"
)

// limited returns options with a memory budget of size bytes.
func limited(size int) redis.Options {
	var used atomic.Int64
	return redis.Options{Notify: "KEA", Reserve: func(n int) bool {
		if used.Add(int64(n)) > int64(size) && n > 0 {
			used.Add(int64(-n))
			return false
		}
		return true
	}}
}

// TestMemoryOfWatches: the memory for clients limits the number of keys that a client can watch.
func TestMemoryOfWatches(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	f := startWith(t, store.Addr().String(), patience, limited(2<<20))
	c := f.connect(t)
	words := []string{"SUBSCRIBE"}
	for i := range 1000 {
		words = append(words, "__keyspace@0__:"+strings.Repeat("k", i+1))
	}
	c.send(words...)
	for n := 0; ; n++ {
		reply, err := c.reply()
		if err != nil || n > 256 {
			t.Fatalf("after %d subscriptions: %q, %v", n, reply, err)
		}
		if strings.HasPrefix(reply, "-OOM") {
			break
		}
	}
	f.connect(t).do("+PONG", "PING")
}

// TestMemoryOfReplies: replies that wait for earlier replies of their pipeline count towards the memory for clients.
func TestMemoryOfReplies(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	const size = 4 << 20
	if _, err := store.Set("large", strings.Repeat("v", size)); err != nil {
		t.Fatal(err)
	}
	store.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{Drop: r.Key() == "first"} })
	f := startWith(t, store.Addr().String(), patience, limited(2*size))
	c := f.connect(t)
	c.pipelined("GET first", "GET large", "STRLEN large", "GET large", "GET large", "GET large")
	c.closed()
	f.log.await(t, "the memory for clients is exhausted")
	f.connect(t).do("+PONG", "PING")
}
