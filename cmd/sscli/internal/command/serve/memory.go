package serve

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// collectorMemory is the amount of garbage, in bytes, that may remain uncollected while clients use all
// the memory that the limits of a server allow.
const collectorMemory = 36 << 20

// boundMemory makes the garbage collector keep the process's memory near the number of bytes that bound
// returns. It calls bound every second, until stop is called. Without boundMemory, the limits of a
// server apply only to live memory. boundMemory also gives memory back to the system after the server needed
// much and while it does little.
func boundMemory(bound func() int) (stop func()) {
	const interval = time.Second
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		var allocated uint64
		for seconds := 0; ; seconds++ {
			if seconds%quietTime == 0 {
				allocated = giveBack(allocated)
			}
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

const (
	quietTime = 15       // seconds between calls to giveBack
	minUnused = 32 << 20 // bytes; less unused memory is not worth a collection
)

// giveBack returns unused memory to the system if there is much of it, and if the process has allocated
// little since the last call, when it had allocated the given number of bytes. It returns the present number.
func giveBack(before uint64) (allocated uint64) {
	m := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	allocated, live, held := m[0].Value.Uint64(), m[1].Value.Uint64(), m[2].Value.Uint64()-m[3].Value.Uint64()
	if allocated-before < live/4+minUnused && held > live*5/4+minUnused {
		debug.FreeOSMemory()
	}
	return allocated
}
