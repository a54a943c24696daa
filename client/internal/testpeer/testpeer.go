// Package testpeer accepts connections in tests: as a broker, or as a proxy in front of one.
package testpeer

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// Serve listens on the loopback interface for the length of the test and returns the
// address. It runs handle for each connection, in a goroutine of its own; n counts the
// connections from 0. A connection is closed when handle returns, and when the test ends.
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

// Relay connects to an address and copies bytes both ways until one side ends. toServer and
// toClient copy; nil = io.Copy.
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
