//go:build unix && !linux

package broker

// quickAck is nil where a socket cannot be asked to acknowledge at once.
var quickAck func(fd uintptr)
