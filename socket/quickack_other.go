//go:build unix && !linux

package socket

// quickAck is nil: this system has no such option.
var quickAck func(fd uintptr)
