package emulator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/neterr"
	"github.com/sscli/sscli/internal/pipenet"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// Options configure a [Server]. With the zero value, the server listens on a free port of the
// loopback interface and accepts all clients.
//
// The login gives a client its user name: the user name in CONNECT (with CheckLogin), the common name of
// the client's certificate, or the subject of the client's token (with CheckToken). A client that does not
// log in has no user name, even if CONNECT contains a user name.
type Options struct {
	Listen string // host:port; "" = 127.0.0.1:0
	// InProcess makes the server listen on no port: only [Server.Dial] connects to it. This allows tests in
	// virtual time (testing/synctest).
	InProcess bool
	Listener  net.Listener // replaces the listener on the address Listen, unless nil; the server, or New if it returns an error, closes it
	WebSocket string       // host:port to listen for WebSockets on; "" = none
	Origins   []string     // origins of the web pages that may use WebSocket, such as https://dashboard.example
	Redis     string       // host:port to listen for Redis clients on; "" = none
	TLS       *tls.Config  // for all listeners; nil = plain TCP

	// RedisNotify is the initial value of notify-keyspace-events, such as KEA.
	RedisNotify string

	// CheckLogin checks user names and passwords: see [Passwords]; nil = not checked.
	CheckLogin func(username string, password []byte) bool
	// CheckToken checks service-account tokens (K8S-SAT), such as those of an [Issuer], and returns whom they
	// name; nil = not checked. now is the time on the store's clock.
	CheckToken func(token []byte, now time.Time) (Login, error)

	// Policy says what clients may do: connect, publish, subscribe, read and write keys. [ParsePolicy],
	// [ParseRules] and [PolicyFunc] return one. nil = all clients may do everything. Redis clients have its
	// rules for Connect and for keys.
	Policy *Policy

	MaxKeys   int  // maximum number of keys; 0 = no limit
	MaxStored int  // maximum memory of keys and values, in bytes; 0 = no limit
	ScanPage  int  // maximum number of keys on a page of SCAN; 0 = 100
	Data      Data // the data file; zero = the store is in memory only

	// Load yields keys to add to the store before the server listens; nil = none. New does not change
	// keys that the data file already has. Rules about clients do not apply to Load. If Load yields an error,
	// New's error wraps a *[LoadError].
	Load iter.Seq2[Seed, error]

	// Changes makes the server keep the last 1024 changes, with their values, for [Server.Changes].
	// [Start] sets this option.
	Changes bool

	Skew    time.Duration // how far the store's clock is ahead of the real clock
	Latency time.Duration // delay between the arrival of a request and its processing; without memory for it, PUBACK 0x97

	Limits Limits

	// RefuseFilters are topic filters that no client may subscribe to: the client gets SUBACK 0x80. A
	// subscription is refused only if its filter is exactly one of these strings.
	RefuseFilters []string

	Variants Variants
	Log      *slog.Logger // nil = silent

	// Observe, unless nil, is called for each request, each Redis command, each key that expires,
	// and each MQTT client that connects, is refused or disconnects. The calls are in the order of
	// the events, which Observe may keep. The server is locked during a call: Observe must not call the server, and
	// all clients wait while Observe runs.
	Observe func(Event)
}

// Limits bound the resources that clients can use: ReceiveMaximum, MaxPacketSize, TopicAliasMaximum and the longest
// KeepAlive of a client; Outbox and OutboxBytes, of what waits for a connected client, Queue and QueueBytes for one that is
// away; MaxSessions, MaxSubscriptions of one, MaxRetained messages, MaxRetainedBytes, and MaxBytes of all. Zero = the default.
type Limits = broker.Limits

// A Login is the user that a token identifies.
type Login struct {
	User    string    // the user name for rules; may be empty
	Expires time.Time // zero = never
}

const (
	defaultListen = "127.0.0.1:0"

	webSocketPath = "/mqtt"
)

// ErrClosed means that the server is closed.
var ErrClosed = errors.New("the emulator is closed")

// A Server is an MQTT broker with a state store. The store answers
// requests to the request topic. Its methods are safe for concurrent use.
type Server struct {
	opts    Options
	zero    sync.Once // see lock
	broker  *broker.Broker
	ln      net.Listener
	ws      net.Listener      // nil = no WebSockets
	redisAt net.Listener      // nil = no Redis clients
	pipes   *pipenet.Listener // ln with Options.InProcess
	ended   chan struct{}     // closed when the server is closed or ends after an error
	end     sync.Once         // closes ended
	port    *redisPort
	logins  *admission.Throttle
	sending sync.WaitGroup // waits for sendBacklog

	// The broker's lock guards the fields below, so that changes are reported in order.
	changed   sync.Cond // signals a change of the state that Await waits for
	store     *store.Store
	journal   *journal      // nil = the store is in memory only
	changes   []Change      // the latest changes, oldest first
	expiry    *broker.Timer // removes the next key that expires; nil = no key expires
	expiresAt time.Time     // when expiry is due; zero = never
	backlog   backlog       // notifications and replies to be sent
	notified  sync.Cond     // signals that a part of the backlog was sent
	intercept func(Request) Action
	onNotify  func(Notification) NotificationAction
	refuse    func(clientID, username string) byte
	reauth    func(clientID string, token []byte) byte
	counts    State
	delayed   map[*broker.Timer]int // what after has scheduled, with its memory in bytes
	late      map[string]func()     // sends a notification that must follow the next one, by client id
	faults    []*fault
	policy    *policy.Policy // nil = all clients may do everything
	explained explanations
	absent    *member // the last client that was not connected when its access to a key was judged
	loading   bool    // the rules do not apply to the request that the store is answering
	closed    bool
	stopped   time.Time // the store's clock during a step of Redis commands; zero = the clock runs
	err       error     // why the server ended, if not by Close

	// For Observe: facts about the request that the store is answering.
	responseTopic []byte    // nil = the request did not come in a packet
	received      time.Time // arrival time on the real clock; zero = not known

	// Buffers that each request reuses. This is safe because the server processes one request at a time.
	request             request
	payload, properties []byte
}

// New starts a server. The caller must call Close.
func New(opts Options) (*Server, error) {
	s, err := start(opts)
	if err != nil && opts.Listener != nil {
		opts.Listener.Close() // perhaps again; its error would add nothing to err
	}
	return s, err
}

func start(opts Options) (*Server, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	s := &Server{opts: opts, ended: make(chan struct{}), logins: admission.NewThrottle(), delayed: make(map[*broker.Timer]int), late: make(map[string]func())}
	b := broker.Options{
		Login: s.login, Topic: wire.RequestTopic, Handle: s.handle,
		Connected: s.connected, Disconnected: s.disconnected, Refused: s.refused, Changed: s.changed.Broadcast,
		Refuse: opts.RefuseFilters, Origins: opts.Origins, Limits: opts.Limits, Skew: opts.Skew, Version: "sscli emulator", Log: opts.Log,
	}
	s.policy = opts.policy()
	if s.policy != nil {
		b.Authorize = s.mayUse
	}
	s.broker = broker.New(b)
	s.changed.L, s.notified.L = s.broker, s.broker
	so := store.Options{
		Now: s.now, MaxKeys: opts.MaxKeys, ScanPage: opts.ScanPage, Changed: s.note, Variants: opts.Variants,
		Reserve: s.broker.Reserve, MaxBytes: opts.MaxStored,
	}
	if s.policy != nil {
		so.Authorize = s.mayUseKey
	}
	if opts.Observe != nil {
		so.Observe = s.observed
	}
	var err error
	s.store, s.journal, err = openStore(so, opts.Data, s.broker, s.fail)
	if err != nil {
		return nil, errors.Join(err, s.broker.Close())
	}
	s.broker.Lock()
	s.arm()
	s.broker.Unlock()
	if err = s.load(); err == nil {
		err = s.listen()
	}
	if err != nil {
		return nil, errors.Join(err, s.broker.Close(), s.journal.close())
	}
	return s, nil
}

// complete checks the rules and sets defaults.
func (o *Options) complete() error {
	if err := o.checkProvable(); err != nil {
		return err
	}
	if o.InProcess && o.Listener != nil {
		return errors.New("InProcess cannot be combined with Listener")
	}
	if o.Listen == "" {
		o.Listen = defaultListen
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Observe = copying(o.Observe)
	return nil
}

func (s *Server) listen() error {
	var err error
	if s.opts.InProcess {
		s.pipes = pipenet.Listen()
		s.opts.Listener = s.pipes
	}
	if s.ln, err = s.listenOn(s.opts.Listen, s.opts.Listener); err != nil {
		return err
	}
	if s.opts.WebSocket != "" {
		if s.ws, err = s.listenOn(s.opts.WebSocket, nil); err != nil {
			return errors.Join(err, s.ln.Close())
		}
		s.broker.ServeWebSocket(s.ws, webSocketPath)
	}
	s.broker.Serve(s.ln)
	return s.listenRedis()
}

func (s *Server) listenOn(address string, ln net.Listener) (net.Listener, error) {
	var err error
	if ln == nil {
		ln, err = net.Listen("tcp", address)
	}
	switch {
	case errors.Is(err, neterr.InUse):
		return nil, fmt.Errorf("listen on %s: %w", address, syscall.EADDRINUSE)
	case err != nil:
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // the error below already includes the address
		}
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	case s.opts.TLS != nil:
		return s.broker.ListenTLS(ln, s.opts.TLS), nil
	default:
		return ln, nil
	}
}

// Addr returns the address that the server listens on; nil for a zero Server.
func (s *Server) Addr() net.Addr {
	if s.ln == nil {
		return nil
	}
	return s.ln.Addr()
}

// WebSocketAddr returns the address on which the server listens for WebSockets, or nil if there is none.
func (s *Server) WebSocketAddr() net.Addr {
	if s.ws == nil {
		return nil
	}
	return s.ws.Addr()
}

// Dial connects to the server, through memory with Options.InProcess, else by TCP. It ignores the network and
// the address, so that it can be the Dial of client.Options:
//
//	store, err := emulator.New(emulator.Options{InProcess: true})
//	…
//	s, err := client.New(client.Options{Dial: store.Dial})
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	switch {
	case s.pipes != nil:
		return s.pipes.Dial(ctx, network, address)
	case s.ln == nil:
		return nil, ErrClosed
	}
	return new(net.Dialer).DialContext(ctx, s.Addr().Network(), s.Addr().String())
}

// URL returns the URL for MQTT clients on this machine.
func (s *Server) URL() string { return localURL("mqtt", s.ln, s.opts.TLS != nil, "") }

// WebSocketURL returns the URL for clients that use WebSockets, or "" if the server does not
// listen for them.
func (s *Server) WebSocketURL() string { return localURL("ws", s.ws, s.opts.TLS != nil, webSocketPath) }

// localURL returns the URL of a listener for clients on this machine, or "" if ln is nil. With TLS, it
// adds an s to the scheme.
func localURL(scheme string, ln net.Listener, secure bool, path string) string {
	if ln == nil {
		return ""
	}
	if secure {
		scheme += "s"
	}
	return admission.URL(scheme, ln.Addr()) + path
}

// Close tells the clients that the server is shutting down, stops listening, waits until all
// connections are closed, and closes the data file. Further calls do nothing.
func (s *Server) Close() error {
	closed := false
	s.update(func() { closed, s.closed = s.closed, true })
	if closed {
		return nil
	}
	s.logins.Close()
	port := s.port.close()
	_ = s.journal.wait() // Err returns the error of a failed commit
	defer s.end.Do(func() { close(s.ended) })
	err := s.broker.Close()
	s.sending.Wait()
	return errors.Join(port, err, s.journal.close())
}

// Done returns a channel that is closed when the server is closed, or when it ends because it cannot
// write its data file. In the latter case, Err returns the error.
func (s *Server) Done() <-chan struct{} {
	s.lock()
	defer s.broker.Unlock()
	return s.ended
}

// Err returns the error that ended the server, or nil if the server is running or was closed by Close.
func (s *Server) Err() error {
	s.lock()
	defer s.broker.Unlock()
	return s.err
}

// fail ends the server after a failed commit, because later changes could be lost.
func (s *Server) fail(err error) {
	s.opts.Log.Error("the data file cannot be written", "error", err)
	var port *redisPort
	s.logins.Close()
	s.update(func() { s.err, port = err, s.port })
	// Ignore errors from closing: Err returns the cause.
	_ = errors.Join(port.close(), s.broker.Close())
	s.end.Do(func() { close(s.ended) })
}

// lock locks the broker. It makes a zero Server one that is closed.
func (s *Server) lock() {
	s.zero.Do(func() {
		if s.broker != nil {
			return
		}
		_ = s.opts.complete() // no error is possible
		s.broker, s.store = broker.New(broker.Options{Log: s.opts.Log}), store.New(store.Options{})
		_ = s.broker.Close()
		s.changed.L, s.notified.L = s.broker, s.broker
		s.closed, s.ended = true, make(chan struct{})
		close(s.ended)
	})
	s.broker.Lock()
}

// update changes the server's state and wakes Await.
func (s *Server) update(change func()) {
	s.lock()
	change()
	s.broker.Unlock()
	s.changed.Broadcast()
}

// now returns the time on the store's clock. The broker must be locked.
func (s *Server) now() time.Time {
	if !s.stopped.IsZero() {
		return s.stopped
	}
	return s.broker.Now()
}

// delayOverhead is the estimated memory of what after schedules, in bytes, without what it keeps.
const delayOverhead = 300

// after schedules the function do: the broker calls it when the duration d has passed on the store's
// clock, unless Restart or Reset is called first. If d is 0 or less, after calls do itself, before it returns.
// Until then, size bytes count against the memory limit, and half as many for the unused part of the outbox:
// what was admitted must fit when many are due together. If they exceed the limit, after schedules nothing
// and returns false.
func (s *Server) after(d time.Duration, size int, do func()) bool {
	if d <= 0 {
		do()
		return true
	}
	size += size/2 + delayOverhead
	if !s.broker.Reserve(size) {
		return false
	}
	s.counts.Delayed++
	var timer *broker.Timer
	timer = s.broker.At(s.now().Add(d), func() {
		delete(s.delayed, timer)
		s.counts.Delayed--
		s.broker.Release(size, do)
	})
	s.delayed[timer] = size
	return true
}

// dropDelayed loses what after has scheduled.
func (s *Server) dropDelayed() {
	for timer, size := range s.delayed {
		s.broker.Cancel(timer)
		s.broker.Reserve(-size)
	}
	clear(s.delayed)
	s.counts.Delayed = 0
	clear(s.late)
	if s.port != nil {
		s.port.server.EndPauses()
	}
}

// arm sets the timer for the next key that expires.
func (s *Server) arm() {
	due, ok := s.store.NextExpiry()
	if due.Equal(s.expiresAt) {
		return
	}
	s.broker.Cancel(s.expiry)
	s.expiry, s.expiresAt = nil, due
	if ok {
		s.expiry = s.broker.At(due, func() {
			s.awaitRoom(always)
			s.expiresAt = time.Time{}
			s.store.ExpireSome()
			s.notify()
			s.arm() // the timer fires again immediately if more keys have expired; other clients get their turn between
		})
	}
}
