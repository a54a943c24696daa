package app

import (
	"runtime"
	"runtime/debug"
)

// CollectLess makes garbage collections half as frequent until restore is called. It is for commands
// that may run at a high rate: they have little live data, so fewer collections cost a few megabytes
// and save a tenth of the CPU time.
func CollectLess() (restore func()) {
	before := debug.SetGCPercent(200)
	return func() { debug.SetGCPercent(before) }
}

// OneCore lets goroutines run one at a time, until restore is called. It is for a command that
// hands many small pieces of work from one goroutine to the next: on several cores each of them wakes
// a thread and moves memory between caches, which costs more than parallel work saves. With --embedded it changes nothing: the store in this process needs a core too.
func (a *App) OneCore() (restore func()) {
	if a.Settings.Embedded {
		return func() {}
	}
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}

// large is the size in bytes from which the memory for a few copies of a value matters.
const large = 16 << 20

// SaveMemory lets values of a size be collected soon after their last use, if they are large, until
// restore is called.
func SaveMemory(size int) (restore func()) {
	if size < large {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(size) * 5 / 2)
	return func() { debug.SetMemoryLimit(before) }
}

// FreeMemory gives back the memory of what is not used any more, before a value of a size is copied,
// if it is large.
func FreeMemory(size int) {
	if size >= large {
		debug.FreeOSMemory()
	}
}
