//go:build unix && !linux

package socket

// quickAck is nil where a socket cannot be asked to acknowledge at once.
var quickAck func(fd uintptr)
