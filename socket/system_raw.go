//go:build linux && !race

package socket

import (
	"syscall"
	"unsafe"
)

// read reads from a socket that does not block. It tells the scheduler only if tell is set.
func read(fd uintptr, p []byte, tell bool) (int, error) {
	if tell {
		return syscall.Read(int(fd), p)
	}
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return result(n, errno)
}

// write writes to a socket that does not block. It does not tell the scheduler.
func write(fd uintptr, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return result(n, errno)
}

func result(n uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
