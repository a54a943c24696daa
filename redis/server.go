package redis

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a [Server].
type Options struct {
	Backend Backend
	Name    string // of the backend, for INFO: emulator, gateway

	// Patterns says that a backend that is no [Engine] reports changes without being asked
	// to by [Backend.Watch], because it was started with a list of keys. Without it, clients
	// may only subscribe to the notifications of single keys.
	Patterns bool
	// Notify are the flags of notify-keyspace-events at the start.
	Notify string

	// Login judges user and password of AUTH and HELLO, and returns whom the client is then
	// taken for; nil: everybody is let in. A password without a user comes with the user
	// "default".
	Login func(user string, password []byte) (as string, ok bool)
	// Identify returns the user that a connection proves by itself, perhaps with a certificate,
	// or the empty string; nil: none does. Such a client need not log in.
	Identify func(net.Conn) string

	// Settle waits until the changes that the backend has made so far are kept, and returns why
	// they cannot be; nil: they are at once. A message about a change leaves after it. It is
	// called without the engine's lock.
	Settle func() error

	Log *slog.Logger // nil: silent

	// Observe is told of each command that was run or refused, and its reply; nil: nobody is.
	// If there is an [Engine] and the command used it, it is locked. It must not call the
	// server.
	Observe func(Seen)
}

// A Server serves Redis clients. Its methods may be called by several goroutines.
type Server struct {
	opts    Options
	log     *slog.Logger
	engine  Engine // nil: the backend is remote
	table   table
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // accept loops, connections and their writers
	started time.Time
	runID   string

	flags       atomic.Uint32 // class, of notify-keyspace-events
	commands    atomic.Int64  // that were run
	connections atomic.Int64  // that were accepted
	expired     atomic.Int64  // keys of the engine

	// Guarded by the engine.
	active  *conn // whose commands are being run
	watched map[string]map[*conn]struct{}

	mu sync.Mutex // after the engine, before output.mu
	hub
	conns     map[*conn]struct{}
	listeners []net.Listener
	lastID    int64
	closed    bool
	cursors   cursors
}

// New returns a server that listens nowhere yet. Close it when done. The error is about
// Options.Notify.
func New(opts Options) (*Server, error) {
	if err := CheckNotify(opts.Notify); err != nil {
		return nil, err
	}
	flags, _ := parseClasses(opts.Notify)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		opts: opts, log: opts.Log, table: newTable(), started: time.Now(), hub: newHub(),
		runID:   fmt.Sprintf("%016x%016x%08x", maphash.Bytes(maphash.MakeSeed(), nil), maphash.Bytes(maphash.MakeSeed(), nil), time.Now().Unix()),
		watched: make(map[string]map[*conn]struct{}), conns: make(map[*conn]struct{}), cursors: newCursors(),
	}
	s.engine, _ = opts.Backend.(Engine)
	if s.engine == nil && flags&(misses|created) != 0 {
		return nil, errors.New(textRemoteFlags)
	}
	s.flags.Store(uint32(flags))
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// acceptPause keeps an accept loop from spinning when the process has no file descriptors
// left.
const acceptPause = 50 * time.Millisecond

// Serve accepts connections until the server is closed, which closes ln. It returns at
// once.
func (s *Server) Serve(ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = ln.Close() // as Close would have done
		return
	}
	s.listeners = append(s.listeners, ln)
	s.running.Go(func() {
		for {
			nc, err := ln.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err == nil:
				s.connect(nc)
				continue
			}
			s.log.Warn("accept", "error", err)
			select {
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
				return
			}
		}
	})
}

// connect runs a new connection.
func (s *Server) connect(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close() // as Close would have done
		return
	}
	c := newConn(s, nc)
	s.lastID++
	c.id = s.lastID
	c.who.ID = "redis-" + itoa(c.id)
	s.conns[c] = struct{}{}
	s.connections.Add(1)
	s.running.Go(func() {
		c.introduce()
		s.log.Debug("redis connection", "client", c.who.ID, "remote", address(nc.RemoteAddr()))
		err := c.serve()
		if errors.Is(err, net.ErrClosed) {
			err = nil // this side has closed it
		}
		c.cut()
		s.leave(c)
		s.log.Debug("redis connection ended", "client", c.who.ID, "error", err)
	})
}

// leave forgets a connection.
func (s *Server) leave(c *conn) {
	c.unwatch()
	for _, name := range c.channels.names() {
		s.end(c, &s.channels, c.channels, name)
	}
	for _, name := range c.patterns.names() {
		s.end(c, &s.patterns, c.patterns, name)
	}
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// Close ends all connections and waits for them. Further calls do nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	listeners := s.listeners
	s.listeners = nil
	conns := s.clients()
	s.mu.Unlock()
	s.cancel()
	var errs []error
	for _, ln := range listeners {
		errs = append(errs, ln.Close())
	}
	for _, c := range conns {
		c.cut()
	}
	s.running.Wait()
	return errors.Join(errs...)
}
