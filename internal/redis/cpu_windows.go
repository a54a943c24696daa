package redis

import (
	"syscall"
	"time"
)

// cpuTimes returns the CPU time that this process has used, in the kernel and in user mode.
func cpuTimes() (system, user time.Duration) {
	var created, exited, kernel, inUser syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(self, &created, &exited, &kernel, &inUser) != nil {
		return 0, 0
	}
	const unit = 100 * time.Nanosecond
	span := func(f syscall.Filetime) time.Duration {
		return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * unit
	}
	return span(kernel), span(inUser)
}
