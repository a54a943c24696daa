// Package pipenet connects a client and a server in one process through net.Pipe. Unlike a socket, a pipe lets
// the virtual time of testing/synctest advance.
//
//	l := pipenet.Listen() // in the bubble
//	go server.Serve(l)
//	c, err := l.Dial(ctx, "", "")
package pipenet

import (
	"context"
	"net"
	"sync"
)

// A Listener accepts the connections that its Dial makes.
type Listener struct {
	accept chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// Listen returns an open Listener. In a synctest bubble, only that bubble may use it.
func Listen() *Listener {
	return &Listener{accept: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial returns the client's end of a new pipe when Accept has returned the server's end. It ignores
// the network and the address.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	if err := l.Connect(ctx, server); err != nil {
		return nil, err
	}
	return client, nil
}

// Connect makes Accept return server, for a test that needs a connection other than a net.Pipe. The
// error is the cause of ctx, or net.ErrClosed after Close.
func (l *Listener) Connect(ctx context.Context, server net.Conn) error {
	select {
	case l.accept <- server:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.closed:
		return net.ErrClosed
	}
}

// Accept waits for a call to Dial or Connect.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept, Connect and Dial return net.ErrClosed. It closes no connection. It may be
// called more than once.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a placeholder: a Listener has no address.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
