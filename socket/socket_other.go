//go:build !unix

package socket

import "net"

// A Conn is for systems where a socket can be read and written without waiting.
type Conn struct{}

// New returns nil.
func New(net.Conn) *Conn { return nil }

// Read is never called.
func (*Conn) Read([]byte) (int, error) { return 0, net.ErrClosed }

// TryWrite is never called.
func (*Conn) TryWrite([]byte) (int, error) { return 0, net.ErrClosed }

// AcknowledgeQuickly is never called.
func (*Conn) AcknowledgeQuickly() {}
