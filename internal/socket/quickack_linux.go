//go:build linux && !386 && !s390x

package socket

import (
	"syscall"
	"unsafe"
)

// quickAck makes the kernel acknowledge received data immediately. The kernel soon falls back to
// delayed acknowledgements, so callers repeat the call. Like read and write, it does not tell Go's scheduler.
func quickAck(fd uintptr) {
	on := int32(1)
	// Ignore the error: the next Read fails too if the socket is broken.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, uintptr(unsafe.Pointer(&on)), unsafe.Sizeof(on), 0)
}
