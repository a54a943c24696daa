// Package tune adapts Go's scheduler and garbage collector to what a command does.
package tune

import (
	"runtime"
	"runtime/debug"
)

// CollectLess makes garbage collections half as frequent until restore is called. It is for commands
// with a high rate of requests and little live data: fewer collections save a tenth of the CPU time
// for a few megabytes of memory.
func CollectLess() (restore func()) {
	before := debug.SetGCPercent(200)
	return func() { debug.SetGCPercent(before) }
}

// OneCore lets only one goroutine run at a time until restore is called. It is for a command that
// passes many small pieces of work from one goroutine to the next. On several cores, each handover
// wakes a thread and moves memory between caches, which costs more than parallel work saves. Do not
// call it with --embedded, because the store in this process needs a core too.
func OneCore() (restore func()) {
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}

// large is the size in bytes from which SaveMemory and FreeMemory limit the copies of a value.
const large = 16 << 20

// SaveMemory sets a memory limit of 2.5 times size until restore is called, if values of this size
// are large. The garbage collector then frees them soon after their last use.
func SaveMemory(size int) (restore func()) {
	if size < large {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(size) * 5 / 2)
	return func() { debug.SetMemoryLimit(before) }
}

// FreeMemory collects garbage and returns the memory to the system, if a value of this size is
// large. Call it before copying such a value.
func FreeMemory(size int) {
	if size >= large {
		debug.FreeOSMemory()
	}
}
