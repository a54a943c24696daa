//go:build unix

package terminal

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Standard returns standard output and standard error. A write to a pipe whose reader is gone returns
// EPIPE. With os.Stdout and os.Stderr it would end the process by SIGPIPE, even if SIGPIPE is ignored.
func Standard() (stdout, stderr *os.File) {
	duplicate := func(f *os.File) *os.File {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return f
		}
		return os.NewFile(uintptr(fd), f.Name())
	}
	return duplicate(os.Stdout), duplicate(os.Stderr)
}

// Closed reports which of the standard streams were closed when the process started. The Go runtime
// then has opened the null device for each of them, for reading and writing. A stream that somebody
// opened like this looks the same, unless it is open as another standard stream too.
func Closed() (stdin, stdout, stderr bool) {
	var null, shared [3]bool
	for fd := range null {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		null[fd] = err == nil && flags&(unix.O_ACCMODE|unix.O_APPEND|unix.O_NONBLOCK) == unix.O_RDWR && isNull(fd)
		for other := range fd {
			if null[fd] && null[other] && isShared(uintptr(fd), uintptr(other)) {
				shared[fd], shared[other] = true, true
			}
		}
	}
	return null[0] && !shared[0], null[1] && !shared[1], null[2] && !shared[2]
}

func isNull(fd int) bool {
	var null, st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && unix.Stat(os.DevNull, &null) == nil && st.Rdev == null.Rdev
}

// isShared reports whether two descriptors of the null device are duplicates of each other: whether a
// flag that is set on one is set on the other.
func isShared(a, b uintptr) bool {
	if _, err := unix.FcntlInt(a, unix.F_SETFL, unix.O_RDWR|unix.O_APPEND); err != nil {
		return false
	}
	flags, err := unix.FcntlInt(b, unix.F_GETFL, 0)
	_, _ = unix.FcntlInt(a, unix.F_SETFL, unix.O_RDWR)
	return err == nil && flags&unix.O_APPEND != 0
}

// brokenPipes are the errors of a write to a pipe whose reader is gone.
func brokenPipes() []error { return []error{syscall.EPIPE} }
