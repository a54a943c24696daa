//go:build linux && (386 || s390x)

package socket

import "syscall"

// quickAck is like quickAck in quickack_linux.go, for architectures on which setsockopt is not a system call.
func quickAck(fd uintptr) {
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
}
