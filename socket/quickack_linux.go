package socket

import "syscall"

// quickAck has to be asked for each time: the kernel forgets it.
func quickAck(fd uintptr) {
	// Read returns the same error.
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
}
