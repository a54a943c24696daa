//go:build !linux

package mqtt

import (
	"net"
	"sync/atomic"
)

// quickAck returns nc unchanged, because only Linux has TCP_QUICKACK.
func quickAck(nc net.Conn, _ *atomic.Int64) net.Conn { return nc }
