//go:build unix

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns the time on sharedClock, or on the wall clock if the system has no sharedClock.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(sharedClock, &ts); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}
