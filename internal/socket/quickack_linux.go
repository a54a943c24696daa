package socket

import "syscall"

// quickAck makes the kernel acknowledge received data immediately. The kernel soon falls back to
// delayed acknowledgements, so callers repeat the call.
func quickAck(fd uintptr) {
	// Ignore the error: the next Read fails too if the socket is broken.
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
}
