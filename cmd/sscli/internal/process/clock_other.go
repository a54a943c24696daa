//go:build unix && !linux && !darwin && !freebsd && !openbsd

package process

import "time"

// uptime is the wall clock where no other clock is known that is the same in every
// process.
func uptime() time.Duration { return time.Duration(time.Now().UnixNano()) }
