package app

import (
	"runtime"
	"runtime/debug"
)

// CollectLess makes garbage collections half as frequent until restore is called. It is for commands
// with a high rate of requests and little live data: fewer collections save a tenth of the CPU time,
// at the cost of a few megabytes of memory.
func CollectLess() (restore func()) {
	before := debug.SetGCPercent(200)
	return func() { debug.SetGCPercent(before) }
}

// CollectMore makes garbage collections twice as frequent until restore is called. It is for commands that keep
// something small for each of many keys, and no pointers to it, so that a collection takes little time.
func CollectMore() (restore func()) {
	before := debug.SetGCPercent(50)
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

// huge is the minimum size of a value, in bytes, for which SaveMemory and FreeMemory have an effect.
const huge = 16 << 20

// SaveMemory sets a memory limit of 2.5 times size, in bytes, until restore is called. The garbage
// collector then frees values of this size soon after their last use. SaveMemory does nothing if
// size is less than the constant huge.
func SaveMemory(size int) (restore func()) {
	if size < huge {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(size) * 5 / 2)
	return func() { debug.SetMemoryLimit(before) }
}

// FreeMemory collects garbage and returns the memory to the system. Call it before copying a value of
// this size. FreeMemory does nothing if size is less than the constant huge.
func FreeMemory(size int) {
	if size >= huge {
		debug.FreeOSMemory()
	}
}
