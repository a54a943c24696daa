//go:build linux && !race

package socket

import (
	"syscall"
	"unsafe"
)

// read reads from a nonblocking socket. If tell is true, Go's scheduler learns of the system
// call.
func read(fd uintptr, p []byte, tell bool) (int, error) {
	if tell {
		return syscall.Read(int(fd), p)
	}
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return result(n, errno)
}

// write writes to a nonblocking socket without telling Go's scheduler.
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
