// Package freeport finds TCP ports for servers that start, or start again, at an address that is already known.
//
// The ports are below those that systems give to outgoing connections, which otherwise could take a
// port while nobody listens on it.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

const lowest, count = 20_000, 12_000

// tried counts the ports that were tried. Processes begin at different ones.
var tried, first = atomic.Uint32{}, rand.Uint32N(count)

// Find listens on a free port of 127.0.0.1, so that nobody else finds it until the listener is closed. It returns the same
// port again only after all others.
func Find() (ln net.Listener, err error) {
	for range 100 {
		if ln, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowest+(first+tried.Add(1))%count)); err == nil {
			return ln, nil
		}
	}
	return nil, err
}

// Listen is [Find] for tests.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// Address returns an address, such as 127.0.0.1:20123, that nobody listens on.
func Address(t testing.TB) string {
	t.Helper()
	ln := Listen(t)
	defer ln.Close()
	return ln.Addr().String()
}
