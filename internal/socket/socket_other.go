//go:build !unix

package socket

import "net"

// A Conn is never created on this system.
type Conn struct{}

// New returns nil, so callers use the net.Conn.
func New(net.Conn) *Conn { return nil }

// Read is never called.
func (*Conn) Read([]byte) (int, error) { return 0, net.ErrClosed }

// WasEmpty is never called.
func (*Conn) WasEmpty() bool { return false }

// TryWrite is never called.
func (*Conn) TryWrite([]byte) (int, error) { return 0, net.ErrClosed }

// AcknowledgeQuickly is never called.
func (*Conn) AcknowledgeQuickly() {}
