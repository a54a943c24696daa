package emulator

import (
	"cmp"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/broker"
	"github.com/sscli/sscli/emulator/store"
	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/observe"
)

// Options configure a [Server]. The zero value listens on a free port of the
// loopback interface and lets anybody in.
type Options struct {
	Listen string // host:port; "" is 127.0.0.1:0
	// Listener accepts connections in place of Listen, not necessarily from a network: with
	// net.Pipe the server also runs in virtual time (testing/synctest). The server closes it.
	Listener  net.Listener
	WebSocket string      // host:port to listen for WebSockets on; "": none
	Origins   []string    // of web pages that may use WebSocket, see [broker.Options]
	Redis     string      // host:port to listen for Redis clients on; "": none
	TLS       *tls.Config // of all listeners; nil: plain TCP

	// RedisNotify is the initial value of notify-keyspace-events, such as KEA.
	RedisNotify string

	// A client has the user name that its login proves: with Users or CheckLogin the one in
	// CONNECT, with a certificate its common name, with a token its subject. Without a login it
	// has none, whatever CONNECT says.

	Users      map[string]string                           // user name to password; nil: anybody
	CheckLogin func(username string, password []byte) bool // checks the passwords of Users; without Users it may accept any user
	CheckToken func(token []byte) bool                     // service-account tokens (K8S-SAT); nil: any
	// VerifyToken takes the place of CheckToken for tokens that name a user and expire, such as
	// those of an [Issuer]. now is the store's clock.
	VerifyToken func(token []byte, now time.Time) (Login, error)

	Rules []Rule // who may use which keys; none: everybody may use all
	// Authorize reports whether a client may read or write a key, AuthorizeTopic whether
	// it may subscribe or publish to a topic; nil: everybody may. Neither may call the
	// server. Where there are Rules, they must allow the access too.
	Authorize      func(clientID, username, key string, write bool) bool
	AuthorizeTopic func(clientID, username, topic string, write bool) bool

	MaxKeys   int  // quota of keys; 0: none
	MaxStored int  // quota of the memory of keys and values, in bytes; 0: none
	ScanPage  int  // keys on a page of SCAN; 0: 100
	Data      Data // where the store is kept; zero: in memory only

	// Load has keys that the store begins with; nil: none. A key that Data has already stays as
	// it is there. An error ends New with a *[LoadError].
	Load iter.Seq2[Seed, error]

	Skew    time.Duration // how far the store's clock is ahead of the real one
	Latency time.Duration // between the arrival of a request and its processing

	Limits Limits

	// RefuseFilters are topic filters that nobody may subscribe to, compared character by
	// character: SUBACK 0x80.
	RefuseFilters []string

	Variants Variants
	Log      *slog.Logger // nil: silent

	// Observe is called for each request, as the store saw it, each command of a Redis client,
	// each key that expires, and each client that comes or goes; it may be nil. It is called
	// with the server locked, in the order of the events: it must not call the server, and all
	// clients wait while it runs.
	Observe func(observe.Event)
}

// Limits bound what clients can ask of the broker.
type Limits = broker.Limits

// A Login is the user that a token identifies.
type Login struct {
	User    string    // the user name for rules; may be empty
	Expires time.Time // zero: never
}

const (
	defaultListen = "127.0.0.1:0"

	webSocketPath = "/mqtt"
)

// ErrClosed is the error of a server that is closed.
var ErrClosed = errors.New("the emulator is closed")

// A Server is an MQTT broker with a state store: package broker, with package store as
// the handler of the request topic. Its methods may be called by several goroutines.
type Server struct {
	opts    Options
	broker  *broker.Broker
	ln      net.Listener
	ws      net.Listener  // nil: no WebSockets
	redisAt net.Listener  // nil: no Redis clients
	ended   chan struct{} // closed when the server is closed, or has ended by itself
	end     sync.Once     // closes ended
	port    *redisPort
	logins  *admission.Throttle

	// The broker's lock guards the following, so that changes are reported in their order.
	changed   sync.Cond // the state that Await waits for
	store     *store.Store
	journal   *journal // nil: the store is in memory only
	changes   changeLog
	expiry    *broker.Timer // of the next key
	expiresAt time.Time
	intercept func(Request) Action
	refuse    func(clientID, username string) byte
	reauth    func(clientID string, token []byte) byte
	counts    State
	closed    bool
	stopped   time.Time // the store's clock during a step of Redis commands; zero: the clock runs
	err       error     // why the server ended by itself

	// Of the request that the store answers, for Observe.
	responseTopic []byte    // nil: it did not come in a packet
	received      time.Time // zero: not known

	// Reused memory. The broker stays locked while a request is processed.
	request             request
	payload, properties []byte
}

// New starts a server. The caller closes it.
func New(opts Options) (*Server, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	s := &Server{opts: opts, ended: make(chan struct{}), logins: admission.NewThrottle()}
	b := broker.Options{
		Login: s.login, Topic: wire.RequestTopic, Handle: s.handle,
		Connected: s.connected, Disconnected: s.disconnected, Refused: s.refused, Changed: s.changed.Broadcast,
		Refuse: opts.RefuseFilters, Origins: opts.Origins, Limits: opts.Limits, Version: "sscli emulator", Log: opts.Log,
	}
	if len(opts.Rules) > 0 || opts.AuthorizeTopic != nil {
		b.Authorize = s.mayUse
	}
	s.broker = broker.New(b)
	s.changed.L = s.broker
	so := store.Options{
		Now: s.now, MaxKeys: opts.MaxKeys, ScanPage: opts.ScanPage, Authorize: opts.Authorize, Changed: s.note, Variants: opts.Variants,
		Reserve: s.broker.Reserve, MaxBytes: opts.MaxStored,
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

// complete sets the defaults, and CheckLogin, VerifyToken and Authorize from the options that
// they stand for.
func (o *Options) complete() error {
	for _, r := range o.Rules {
		if err := cmp.Or(r.check(), o.checkProvable(r)); err != nil {
			return &RuleError{r, err}
		}
	}
	if o.Listen == "" {
		o.Listen = defaultListen
	}
	if users := o.Users; users != nil && o.CheckLogin == nil {
		o.CheckLogin = func(username string, password []byte) bool {
			want, known := users[username]
			return subtle.ConstantTimeCompare([]byte(want), password) == 1 && known
		}
	}
	if check := o.CheckToken; check != nil && o.VerifyToken == nil {
		o.VerifyToken = func(token []byte, _ time.Time) (Login, error) {
			if !check(token) {
				return Login{}, errors.New("the token is not known")
			}
			return Login{}, nil
		}
	}
	if all, authorize := rules(o.Rules), o.Authorize; len(all) > 0 {
		o.Authorize = func(clientID, username, key string, write bool) bool {
			return all.allowKey(clientID, username, key, write) && (authorize == nil || authorize(clientID, username, key, write))
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (s *Server) listen() error {
	var err error
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
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: %w", address, syscall.EADDRINUSE)
	case err != nil:
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // the address is in the message already
		}
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	case s.opts.TLS != nil:
		return tls.NewListener(ln, s.opts.TLS), nil
	default:
		return ln, nil
	}
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// WebSocketAddr returns the address that the server listens for WebSockets on, or nil.
func (s *Server) WebSocketAddr() net.Addr {
	if s.ws == nil {
		return nil
	}
	return s.ws.Addr()
}

// URL returns the URL for clients on this machine.
func (s *Server) URL() string { return s.url("mqtt", s.ln) }

// WebSocketURL returns the URL for clients that use WebSockets, or "" if the server does not
// listen for them.
func (s *Server) WebSocketURL() string {
	if s.ws == nil {
		return ""
	}
	return s.url("ws", s.ws) + webSocketPath
}

func (s *Server) url(scheme string, ln net.Listener) string {
	if s.opts.TLS != nil {
		scheme += "s"
	}
	return scheme + "://" + reachable(ln.Addr())
}

// reachable returns host and port of a listener for clients on this machine.
func reachable(addr net.Addr) string {
	if a, ok := addr.(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port))
	}
	return addr.String()
}

// Close tells the clients that the server is shutting down, waits until all connections
// are closed, and frees the address. Further calls do nothing.
func (s *Server) Close() error {
	closed := false
	s.update(func() { closed, s.closed = s.closed, true })
	if closed {
		return nil
	}
	s.logins.Close()
	port := s.port.close()
	_ = s.journal.wait() // Err returns its error
	defer s.end.Do(func() { close(s.ended) })
	return errors.Join(port, s.broker.Close(), s.journal.close())
}

// Done returns a channel that is closed when the server is closed, or has ended by itself because
// it cannot write its data file. Err then says why.
func (s *Server) Done() <-chan struct{} { return s.ended }

// Err returns why the server ended by itself, or nil.
func (s *Server) Err() error {
	s.broker.Lock()
	defer s.broker.Unlock()
	return s.err
}

// fail ends the server, because the changes of later requests could be lost.
func (s *Server) fail(err error) {
	s.opts.Log.Error("the data file cannot be written", "error", err)
	var port *redisPort
	s.logins.Close()
	s.update(func() { s.err, port = err, s.port })
	// The errors of closing are of no use now.
	_ = errors.Join(port.close(), s.broker.Close())
	s.end.Do(func() { close(s.ended) })
}

// update changes the server's state and wakes Await.
func (s *Server) update(change func()) {
	s.broker.Lock()
	change()
	s.broker.Unlock()
	s.changed.Broadcast()
}

// now returns the store's clock. The broker is locked.
func (s *Server) now() time.Time {
	if !s.stopped.IsZero() {
		return s.stopped
	}
	return s.broker.Now().Add(s.opts.Skew)
}

// at calls do when the store's clock reaches due.
func (s *Server) at(due time.Time, do func()) *broker.Timer {
	return s.broker.At(due.Add(-s.opts.Skew), do)
}

// after calls do when d has passed on the store's clock, or at once.
func (s *Server) after(d time.Duration, do func()) {
	if d <= 0 {
		do()
		return
	}
	s.counts.Delayed++
	s.at(s.now().Add(d), func() {
		s.counts.Delayed--
		do()
	})
}

// arm sets the timer of the next key that expires.
func (s *Server) arm() {
	due, ok := s.store.NextExpiry()
	if due.Equal(s.expiresAt) {
		return
	}
	s.broker.Cancel(s.expiry)
	s.expiry, s.expiresAt = nil, due
	if ok {
		s.expiry = s.at(due, func() {
			s.expiresAt = time.Time{}
			s.store.Expire()
			s.notify()
			s.arm()
		})
	}
}
