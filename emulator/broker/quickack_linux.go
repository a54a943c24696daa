package broker

import "syscall"

// quickAck has to be asked for each time: the kernel forgets it.
func quickAck(fd uintptr) {
	// An error would be that of a connection that is over, which Read tells.
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
}
