package emulator

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/mochi-mqtt/server/v2/listeners"
)

// listener gives mochi its connections, each behind a link. mochi has listeners of
// its own, but nobody waits for the goroutines that they start.
type listener struct {
	net.Listener
	s            *Server
	id, protocol string
	wrap         func(net.Conn) net.Conn // what the link sits on; nil: the connection itself
}

var _ listeners.Listener = (*listener)(nil)

func (ln *listener) Init(*slog.Logger) error { return nil }

func (ln *listener) ID() string { return ln.id }

func (ln *listener) Address() string { return ln.Addr().String() }

func (ln *listener) Protocol() string { return ln.protocol }

// Close is called by mochi when [Server.Close] has closed everything.
func (ln *listener) Close(listeners.CloseFn) {}

// acceptPause keeps the loop from spinning when the process is out of file
// descriptors.
const acceptPause = 50 * time.Millisecond

// Serve runs until the listener is closed; New has counted it in Server.running.
func (ln *listener) Serve(establish listeners.EstablishFn) {
	defer ln.s.running.Done()
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			ln.s.log.Warn("accept", "error", err)
			select {
			case <-time.After(acceptPause):
			case <-ln.s.done:
				return
			}
			continue
		}
		if ln.wrap != nil {
			conn = ln.wrap(conn)
		}
		ln.s.serve(conn, func(l *link) error { return establish(ln.ID(), l) })
	}
}
