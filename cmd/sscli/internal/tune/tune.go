// Package tune adapts Go's scheduler and garbage collector to what a command does.
package tune

import (
	"runtime"
	"runtime/debug"
	"time"
)

// CollectLess makes garbage collections half as frequent until restore is called. It is for commands
// with a high rate of requests and little live data: fewer collections save a tenth of the CPU time,
// at the cost of a few megabytes of memory.
func CollectLess() (restore func()) {
	before := debug.SetGCPercent(200)
	return func() { debug.SetGCPercent(before) }
}

// OneCore lets only one goroutine run at a time until restore is called. It is for a command that
// passes many small pieces of work from one goroutine to the next. On several cores, each handover
// wakes a thread and moves memory between caches, which costs more than parallel work saves. Do not
// call OneCore with --embedded, because the embedded store needs a core too.
func OneCore() (restore func()) {
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}

// collectorMemory is the amount of garbage, in bytes, that may remain uncollected while clients use all
// the memory that the limits of a server allow.
const collectorMemory = 36 << 20

// BoundMemory makes the garbage collector keep the process's memory near the number of bytes that bound
// returns. It calls bound every second, until stop is called. Without BoundMemory, the limits of a
// server apply only to live memory.
func BoundMemory(bound func() int) (stop func()) {
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

// large is the minimum size of a value, in bytes, for which SaveMemory and FreeMemory have an effect.
const large = 16 << 20

// SaveMemory sets a memory limit of 2.5 times size, in bytes, until restore is called. The garbage
// collector then frees values of this size soon after their last use. SaveMemory does nothing if
// size is less than the constant large.
func SaveMemory(size int) (restore func()) {
	if size < large {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(size) * 5 / 2)
	return func() { debug.SetMemoryLimit(before) }
}

// FreeMemory collects garbage and returns the memory to the system. Call it before copying a value of
// this size. FreeMemory does nothing if size is less than the constant large.
func FreeMemory(size int) {
	if size >= large {
		debug.FreeOSMemory()
	}
}
