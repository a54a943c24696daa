//go:build unix

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime reads sharedClock, or the wall clock if the system lacks that one.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(sharedClock, &ts); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}
