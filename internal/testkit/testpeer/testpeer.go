// Package testpeer accepts connections in tests: as a broker, or as a proxy in front of a broker.
package testpeer

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// Serve listens on the loopback interface until the test ends and returns the address. It runs
// handle for each connection, in a new goroutine; n counts the connections from 0. A connection is
// closed when handle returns or the test ends.
func Serve(t testing.TB, handle func(n int, nc net.Conn)) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ; n++ {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer nc.Close()
				defer context.AfterFunc(ctx, func() { nc.Close() })()
				handle(n, nc)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		cancel()
		running.Wait()
	})
	return ln.Addr().String()
}

// Relay connects to the server at address and copies bytes both ways until the client or the server
// disconnects. toServer and toClient each copy one direction; nil = io.Copy.
func Relay(client net.Conn, address string, toServer, toClient func(to, from net.Conn)) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		return // the test has stopped the server
	}
	relay := func(forward func(to, from net.Conn), to, from net.Conn) {
		defer client.Close()
		defer server.Close()
		if forward == nil {
			_, _ = io.Copy(to, from)
		} else {
			forward(to, from)
		}
	}
	var running sync.WaitGroup
	running.Go(func() { relay(toServer, server, client) })
	relay(toClient, client, server)
	running.Wait()
}
