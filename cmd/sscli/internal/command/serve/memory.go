package serve

import (
	"runtime"
	"runtime/debug"
	"time"
)

// collectorMemory is the amount of garbage, in bytes, that may remain uncollected while clients use all
// the memory that the limits of a server allow.
const collectorMemory = 36 << 20

// forClients returns how much of --limit memory clients may use: the larger it is, the more garbage there is when a
// collection ends.
func forClients(limit int) int { return limit - limit/32 }

// boundMemory makes the garbage collector keep the process's memory near the number of bytes that clients
// may use, limit, and that the store uses, stored. It calls stored every second, until stop is called.
// Without boundMemory, the limits of a server apply only to live memory, and a large store may be
// followed by as much garbage. boundMemory also gives memory back to the system after the server needed
// much and while it does little.
func boundMemory(limit int, stored func() int) (stop func()) {
	const interval = time.Second
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		percent := 0
		var unused unused
		for seconds := 0; ; seconds++ {
			n := stored()
			debug.SetMemoryLimit(int64(limit) + int64(n)*9/8 + collectorMemory)
			if p := garbagePercent(n); p != percent {
				percent = p
				debug.SetGCPercent(p)
			}
			if unused.note(n); seconds%quietTime == 0 {
				unused.giveBack()
			}
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended) }
}

// garbagePercent returns the garbage at which to collect, in percent of the live memory, for a store of n
// bytes. A collection passes over the records of the store quickly, because they have no pointers. So a large
// store can have frequent collections, and little garbage.
func garbagePercent(n int) int {
	const most, least = 24 << 20, 12
	percent := 100
	for percent/2 >= least && n/100*percent > most {
		percent /= 2
	}
	return percent
}

const (
	quietTime = 15       // seconds between calls to giveBack
	minUnused = 32 << 20 // bytes; less unused memory is not worth a collection
	minUse    = 1 << 20  // bytes; a server that allocates less in some minutes is idle
)

// unused knows what happened since memory was last given back.
type unused struct {
	checked uint64 // bytes allocated until the last call of giveBack
	given   uint64 // bytes allocated until memory was given back
	stored  int    // bytes in the store
	most    int    // most bytes in the store since memory was given back
}

func (u *unused) note(stored int) { u.stored, u.most = stored, max(u.most, stored) }

// giveBack gives unused memory back to the system, if the server has done something since it last gave
// memory back, but has done little since the last call.
func (u *unused) giveBack() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m) // not package runtime/metrics, whose tables would cost 0.07 ms at each start of sscli
	allocated, held := m.TotalAlloc, int(m.Sys-m.HeapReleased)
	quiet := allocated-u.checked < uint64(u.stored/4)+minUnused
	used := allocated-u.given > minUse || u.most-u.stored > minUnused
	if u.checked = allocated; quiet && used && held > minUnused {
		debug.FreeOSMemory()
		u.given, u.most = allocated, u.stored
	}
}
