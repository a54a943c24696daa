//go:build !unix

package broker

import "net"

// A directWriter is for systems where a socket can be written without waiting.
type directWriter struct{}

func newDirectWriter(net.Conn) *directWriter { return nil }

func (*directWriter) write([]byte) (int, error) { return 0, nil }

func (*directWriter) acknowledgeQuickly() {}
