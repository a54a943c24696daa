//go:build !windows

package neterr

import "syscall"

// Socket errors.
const (
	InUse   = syscall.EADDRINUSE   // another socket listens on the address
	Refused = syscall.ECONNREFUSED // nobody listens on the address
	Reset   = syscall.ECONNRESET   // the peer ended the connection, and data may be lost
	Broken  = syscall.EPIPE        // the connection ended before a write
)
