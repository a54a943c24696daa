//go:build unix && !linux && !darwin && !freebsd && !openbsd

package process

import "time"

// uptime reads the wall clock: no other clock is known to be shared by all processes.
func uptime() time.Duration { return time.Duration(time.Now().UnixNano()) }
