package neterr

import "golang.org/x/sys/windows"

// Socket errors.
const (
	InUse   = windows.WSAEADDRINUSE   // another socket listens on the address
	Refused = windows.WSAECONNREFUSED // nobody listens on the address
	Reset   = windows.WSAECONNRESET   // the peer ended the connection, and data may be lost
	Broken  = windows.WSAECONNABORTED // the connection ended before a write
)
