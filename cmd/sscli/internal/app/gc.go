package app

import (
	"runtime"
	"runtime/debug"
)

// CollectLess lets garbage take twice the memory of live data, where Go's default is as much as
// live data, until restore is called. It is for commands that may run at a high rate: they have
// little live data, so it costs a few megabytes and saves a tenth of the CPU time.
func CollectLess() (restore func()) {
	before := debug.SetGCPercent(200)
	return func() { debug.SetGCPercent(before) }
}

// OneCore lets goroutines run one at a time, until restore is called. It is for a command that
// hands many small pieces of work from one goroutine to the next: on several cores that wakes a
// thread and moves memory between caches each time, which costs more than working side by side
// saves. With --embedded it changes nothing: the store in this process needs a core too.
func (a *App) OneCore() (restore func()) {
	if a.Settings.Embedded {
		return func() {}
	}
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}
