//go:build unix && !linux

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// sharedClock is a clock that reads the same in all processes. It may stop while the machine
// sleeps.
const sharedClock = unix.CLOCK_MONOTONIC

// On these systems sscli cannot find processes that have left the command's group. So adoptOrphans and
// dieWithParent do nothing, and listProcesses returns no processes.

func adoptOrphans(bool) {}

func dieWithParent(*syscall.SysProcAttr) {}

// hasParent always returns true, because the parent of a process is not known.
func hasParent(int, int) bool { return true }

func listProcesses() []process { return nil }
