//go:build unix

package redis

import (
	"syscall"
	"time"
)

// cpuTimes returns the CPU time that this process has used, in the kernel and in user mode.
func cpuTimes() (system, user time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Stime.Nano()), time.Duration(u.Utime.Nano())
}
