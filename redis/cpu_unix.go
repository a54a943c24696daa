//go:build unix

package redis

import (
	"syscall"
	"time"
)

// cpuTimes returns the processor time that the process has used.
func cpuTimes() (system, user time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Stime.Nano()), time.Duration(u.Utime.Nano())
}
