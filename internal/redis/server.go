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

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/shrinkmap"
)

// Options configure a [Server].
type Options struct {
	Backend Backend          // may be a Local
	Name    string           // name of the backend in INFO: emulator or gateway
	Now     func() time.Time // the store's clock; nil = time.Now

	// Turns is how the server's connections share the Local with others. Nil: nobody else uses it.
	Turns Turns

	// Patterns means that a remote Backend always reports the changes of a fixed list of keys. One
	// subscription may then be for the events of all these keys, for example with a pattern. Otherwise
	// a client of a remote store must subscribe to the events of each key by name.
	Patterns bool
	// Notify is the initial value of notify-keyspace-events.
	Notify string

	// Login checks the user and the password of AUTH and HELLO, and returns the user that the client is
	// then logged in as, and until when; the zero time means forever. The server closes the connection at
	// that time. user is "default" if the client sends only a password. Nil: no login is needed.
	Login func(user string, password []byte) (as string, until time.Time, ok bool)
	// At calls do at a time on the store's clock, unless cancel is called first. do does not block. The
	// server calls At and cancel while the Local is not locked. Required if Login returns times.
	At func(t time.Time, do func()) (cancel func())
	// LoggedIn is called when a client's user is known, before the client's first command as that user, while the Local is
	// not locked. It reports whether the user may connect, and may set Value and Memory of the Caller. Nil: not called.
	LoggedIn func(*Caller) (allowed bool)
	// Identify returns the user that the connection itself authenticates, for example with a client
	// certificate, or an empty string. A client with such a certificate need not log in, and cannot
	// log in as another user. Nil: no connection authenticates a user.
	Identify func(net.Conn) string

	// Certified returns the user in the connection's certificate, or an empty string. A client
	// with such a certificate cannot log in as another user. Nil: connections have no certificates.
	Certified func(net.Conn) string

	// Sync waits until all earlier changes are durable, or returns an error. The server calls Sync before it
	// sends replies and messages, without the Local's lock. Nil: the server does not wait for changes to
	// become durable.
	Sync func() error

	// Reserve charges n bytes to the memory for clients, or releases bytes if n is negative. If the
	// budget has too few bytes left, Reserve charges nothing and returns false. It must not block. Nil: the server
	// has its own budget of 1 GiB.
	Reserve func(n int) bool
	// Memory is the size of the budget that Reserve charges, in bytes. A request that needs more memory
	// is refused. 0 = 1 GiB.
	Memory int

	Log *slog.Logger // nil = silent

	// Observe is called after each command that was run, or refused before that. locked reports whether the
	// Local is locked. Observe must not call the server. Nil: not called.
	Observe func(who *Caller, e observe.Event, ran, locked bool)
}

// A Server serves Redis clients. Several goroutines may call its methods.
type Server struct {
	opts    Options
	log     *slog.Logger
	local   Local // nil = the backend is remote
	table   table
	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	running sync.WaitGroup // accept loops, connections and their writers
	started time.Time
	runID   string

	intercept   atomic.Pointer[func(Intercepted) Fault] // nil = not called
	pausesEnded atomic.Int64                            // number of calls of EndPauses
	flags       atomic.Uint32                           // current value of notify-keyspace-events, a class
	commands    atomic.Int64                            // commands so far; CONFIG RESETSTAT resets all three counters
	connections atomic.Int64                            // connections accepted so far
	expired     atomic.Int64                            // expired keys that the backend reported so far

	// Guarded by the Local's lock.
	active  *conn                                     // connection that has locked the Local; nil = none
	watched shrinkmap.Map[string, map[*conn]struct{}] // connections that watch a key, by key

	mu sync.Mutex // locked after the Local and before output.mu
	hub
	conns     map[*conn]struct{}
	listeners []net.Listener
	lastID    int64
	closed    bool
	cursors   cursors

	gate   admission.Gate
	logins *admission.Throttle
}

const (
	maxClients   = 10_000
	loginTimeout = 30 * time.Second
)

// New returns a server that does not listen yet. The caller must Close it. New returns an error if
// Options.Notify is invalid or names events that a remote store does not report.
func New(opts Options) (*Server, error) {
	if err := CheckNotify(opts.Notify); err != nil {
		return nil, err
	}
	flags, _ := parseClasses(opts.Notify)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Reserve == nil {
		opts.Reserve = localBudget()
	}
	if opts.Memory <= 0 {
		opts.Memory = defaultMemory
	}
	s := &Server{
		opts: opts, log: opts.Log, table: newTable(), started: time.Now(), hub: newHub(),
		runID: fmt.Sprintf("%016x%016x%08x", maphash.Bytes(maphash.MakeSeed(), nil), maphash.Bytes(maphash.MakeSeed(), nil), time.Now().Unix()),
		conns: make(map[*conn]struct{}), cursors: newCursors(),
		gate: admission.Gate{MaxClients: maxClients}, logins: admission.NewThrottle(),
	}
	s.local, _ = opts.Backend.(Local)
	if s.local != nil && opts.Turns == nil {
		s.opts.Turns = new(ownTurns)
	}
	if s.local == nil {
		s.rosters[ofChannels].watchCost = keyWatchCost
	}
	if err := s.checkClasses(flags); err != nil {
		return nil, errors.New(err.(*Error).Text)
	}
	s.flags.Store(uint32(flags))
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

const (
	acceptPause = 50 * time.Millisecond // pause after a failed Accept, for example if no file descriptor is left
	warnPause   = 10 * time.Second      // minimum time between two warnings about a failed Accept
)

// Serve starts accepting connections and returns. Close closes ln.
func (s *Server) Serve(ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = ln.Close() // the server was closed before Serve
		return
	}
	s.listeners = append(s.listeners, ln)
	s.running.Go(func() {
		warned := time.Time{}
		for {
			nc, err := ln.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err == nil:
				s.connect(nc)
				continue
			}
			if time.Since(warned) > warnPause {
				warned = time.Now()
				s.log.Warn("clients cannot connect", "address", ln.Addr(), "error", err)
			}
			select {
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
				return
			}
		}
	})
}

// connect starts serving a new connection.
func (s *Server) connect(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close() // Close was called first
		return
	}
	c := newConn(s, nc)
	evict := func() { s.running.Go(c.close) } // close may block
	if c.ticket = s.gate.Enter(address(nc.RemoteAddr()), evict); c.ticket == nil {
		s.running.Go(func() { c.refuse(errMaxClients) })
		return
	}
	if !s.opts.Reserve(connectionCost) {
		c.ticket.Leave()
		s.running.Go(func() { c.refuse(errMemory) })
		return
	}
	if s.opts.Login == nil {
		c.ticket.LoggedIn()
	}
	s.lastID++
	c.id = s.lastID
	c.who.ID = "redis-" + itoa(c.id)
	s.conns[c] = struct{}{}
	s.connections.Add(1)
	s.running.Go(func() {
		defer time.AfterFunc(loginTimeout, c.endWithoutLogin).Stop()
		c.identify()
		s.log.Debug("redis connection", "client", c.who.ID, "remote", address(nc.RemoteAddr()))
		err := c.serve()
		if errors.Is(err, net.ErrClosed) {
			err = nil // closed by this side
		}
		c.close()
		s.leave(c)
		s.log.Debug("redis connection ended", "client", c.who.ID, "error", err)
	})
}

// refuse replies with the error why the server does not serve the client, and closes the connection.
func (c *conn) refuse(why *Error) {
	c.s.log.Warn("refusing a client", "remote", address(c.nc.RemoteAddr()), "error", why.Text)
	_ = c.nc.SetDeadline(time.Now().Add(time.Second))
	_, _ = c.nc.Write([]byte("-" + why.Error() + "\r\n")) // best effort
	_ = c.nc.Close()
}

// endWithoutLogin closes the connection if the client has not logged in.
func (c *conn) endWithoutLogin() {
	c.s.mu.Lock()
	in := c.authenticated
	c.s.mu.Unlock()
	if !in {
		c.s.log.Info("closing a client that does not log in", "client", c.who.ID, "after", loginTimeout)
		c.close()
	}
}

// leave releases the resources of a connection that has ended.
func (s *Server) leave(c *conn) {
	c.endLoginAt(time.Time{})
	c.ticket.Leave()
	c.input.set(0)
	s.opts.Reserve(-connectionCost)
	c.unwatch()
	s.endSubscriptions(c)
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// Close closes the listeners and all connections, waits for their goroutines, and returns the errors
// of closing the listeners. Later calls close nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	listeners := s.listeners
	s.listeners = nil
	conns := s.clients(anyClient)
	s.mu.Unlock()
	s.cancel()
	s.logins.Close()
	var errs []error
	for _, ln := range listeners {
		errs = append(errs, ln.Close())
	}
	for _, c := range conns {
		c.close()
	}
	s.running.Wait()
	return errors.Join(errs...)
}
