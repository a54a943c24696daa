package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime counts the time that the machine slept too, and is the same in every
// process.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}
