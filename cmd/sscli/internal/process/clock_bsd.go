//go:build darwin || freebsd || openbsd

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime reads a clock that all processes share. It stops while the machine sleeps.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}
