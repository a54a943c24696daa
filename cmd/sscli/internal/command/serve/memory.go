package serve

import (
	"runtime/debug"
	"time"
)

// collectorMemory is the amount of garbage, in bytes, that may remain uncollected while clients use all
// the memory that the limits of a server allow.
const collectorMemory = 36 << 20

// boundMemory makes the garbage collector keep the process's memory near the number of bytes that bound
// returns. It calls bound every second, until stop is called. Without boundMemory, the limits of a
// server apply only to live memory.
func boundMemory(bound func() int) (stop func()) {
	const interval = time.Second
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			debug.SetMemoryLimit(int64(bound()) + collectorMemory)
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended) }
}
