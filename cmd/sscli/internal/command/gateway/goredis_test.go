//go:build full

package gateway

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sscli/sscli/emulator"
)

// TestPipelineOfAClient sends a pipeline to a slow store. The client repeats the pipeline if not all replies arrive
// within a minute, but the store executes each command only once.
func TestPipelineOfAClient(t *testing.T) {
	t.Parallel()
	const sets = 300
	store := emulator.Start(t, emulator.Options{Latency: 500 * time.Millisecond})
	f := start(t, store.Addr().String(), timeout, "")
	c := redis.NewClient(&redis.Options{Addr: f.address, DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience})
	defer c.Close()
	replies, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range sets {
			p.Set(t.Context(), "k"+strconv.Itoa(i), i, 0)
		}
		return nil
	})
	if err != nil || len(replies) != sets {
		t.Errorf("%d replies, %v", len(replies), err)
	}
	if n := store.State().Requests; n != sets {
		t.Errorf("the store carried out %d requests for %d SETs", n, sets)
	}
}
