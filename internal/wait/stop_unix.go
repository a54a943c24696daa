//go:build unix

package wait

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Stopped stops the process group with sig, such as SIGTTIN, as the terminal does for Ctrl-Z, and returns when the process
// is continued, or after the time of [ForContinue].
func Stopped(sig syscall.Signal) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	patience := ForContinue()
	_ = unix.Kill(0, sig) // a process may signal its own group
	select {
	case <-continued:
	case <-time.After(patience):
	}
}

// ForContinue returns how long a process that has sent its process group a stop signal, such as SIGTTIN, should wait to
// be continued. The kernel discards the signal if the group is orphaned, so that no shell could continue it: the wait is
// short then. Otherwise the wait is longer, because a busy machine may stop the process late: a process that had gone on
// to draw on the terminal, or had made it raw, would be stopped in the middle of that. It has an end, because the signal
// may be ignored. After an error, and if only another member of the group has a parent that could continue it,
// ForContinue takes the group for orphaned.
func ForContinue() time.Duration {
	const orphaned, other = 500 * time.Millisecond, 5 * time.Second
	parent := unix.Getppid()
	session, err := unix.Getsid(0)
	if err != nil {
		return orphaned
	}
	if of, err := unix.Getsid(parent); err != nil || of != session {
		return orphaned
	}
	if group, err := unix.Getpgid(parent); err != nil || group == unix.Getpgrp() {
		return orphaned
	}
	return other
}
