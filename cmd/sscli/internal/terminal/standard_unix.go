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

// InputClosed reports whether standard input was closed when the process started. The Go runtime
// then has opened the null device for it, for reading and writing. An input that somebody
// opened like this looks the same, unless it is open as another standard stream too. Output is discarded in both
// cases, because programs such as Python and Node.js open the null device like this to discard it.
func InputClosed() bool {
	isClosed := func(fd int) bool {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		return err == nil && flags&(unix.O_ACCMODE|unix.O_APPEND|unix.O_NONBLOCK) == unix.O_RDWR && isNull(fd)
	}
	return isClosed(0) && !(isClosed(1) && isShared(0, 1)) && !(isClosed(2) && isShared(0, 2))
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
