package redis

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
)

// Options configure a [Server].
type Options struct {
	Backend Backend
	Name    string // of the backend, for INFO: emulator, gateway

	// Patterns says that the backend reports changes of all keys that it ever will without
	// [Backend.Watch]: all there are, or those that it was started with. Without it, clients may
	// only subscribe to the notifications of single keys.
	Patterns bool
	// Notify are the flags of notify-keyspace-events at the start.
	Notify string

	// Login judges user and password of AUTH and HELLO; nil: everybody is let in. A password
	// without a user comes with the user "default".
	Login func(user string, password []byte) bool
	// Identify returns the user that a connection proves by itself, perhaps with a certificate,
	// or the empty string; nil: none does.
	Identify func(net.Conn) string

	TLS *tls.Config  // nil: plain TCP
	Log *slog.Logger // nil: silent
}

// A Server serves Redis clients. Its methods may be called by several goroutines.
type Server struct {
	opts Options
	ctx  context.Context
}

// New returns a server that listens nowhere yet. It is to be closed. The error is about
// Options.Notify.
func New(opts Options) (*Server, error) { return &Server{opts: opts, ctx: context.Background()}, nil }

// Serve accepts connections until the server is closed, which closes ln. It returns at
// once.
func (s *Server) Serve(ln net.Listener) {}

// Close ends all connections and waits for them.
func (s *Server) Close() error { return nil }

// Changed tells the clients of a change. Changes must be reported in the order in which
// they happened.
func (s *Server) Changed(c Change) {}

// Lost says that changes of a key, of any key if it is nil, may have been missed. It closes
// the connections that are subscribed to them.
func (s *Server) Lost(key []byte, reason string) {}
