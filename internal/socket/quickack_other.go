//go:build unix && !linux

package socket

// quickAck is nil: this system has no option like TCP_QUICKACK.
var quickAck func(fd uintptr)
