package emulator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/broker"
	"github.com/sscli/sscli/emulator/store"
)

// Options configure a [Server]. The zero value listens on a free port of the
// loopback interface and lets anybody in.
type Options struct {
	Listen string // host:port; "" is 127.0.0.1:0
	// Listener is where connections come from in place of Listen, perhaps not from a
	// network: with net.Pipe the server also runs in virtual time (testing/synctest).
	// The server closes it.
	Listener  net.Listener
	WebSocket string      // host:port to listen for WebSockets at; "": none
	Redis     string      // host:port to listen for Redis clients at; "": none
	TLS       *tls.Config // of all of them; nil: plain TCP

	// RedisNotify are the flags of notify-keyspace-events at the start, such as KEA.
	RedisNotify string

	Users      map[string]string                           // user name to password; nil: anybody
	CheckLogin func(username string, password []byte) bool // in place of Users
	CheckToken func(token []byte) bool                     // service-account tokens (K8S-SAT); nil: any
	// VerifyToken is in place of CheckToken for tokens that say whose they are and when
	// they end, such as those of an [Issuer]. now is the store's clock.
	VerifyToken func(token []byte, now time.Time) (Login, error)

	Rules []Rule // who may use which keys; none: everybody all
	// Authorize tells whether a client may read or write a key, AuthorizeTopic whether
	// it may subscribe or publish to a topic; nil: everybody. Neither may call the
	// server. Where there are Rules, those must allow it too.
	Authorize      func(clientID, username, key string, write bool) bool
	AuthorizeTopic func(clientID, username, topic string, write bool) bool

	MaxKeys  int           // quota of keys; 0: none
	ScanPage int           // keys on a page of SCAN; 0: 100
	Data     Data          // where the store is kept; zero: in memory only
	Skew     time.Duration // how far the store's clock is ahead of the real one
	Latency  time.Duration // between the arrival of a request and its processing

	Limits Limits

	// RefuseFilters are topic filters that nobody may subscribe to, as they are written: SUBACK
	// 0x80.
	RefuseFilters []string

	Variants Variants
	Log      *slog.Logger // nil: silent

	// Observe is told of every request, as the store saw it, of every command of a Redis
	// client, of every key that expires, and of clients that come and go; nil: nobody is. It
	// is called with the server locked, in the order in which things happened: it must not
	// call the server, and whatever time it takes, all clients wait.
	Observe func(Observation)
}

// Limits bound what clients can ask of the broker.
type Limits = broker.Limits

// A Login is whom a token is for.
type Login struct {
	User    string    // the user name for rules; may be empty
	Expires time.Time // when the token ends; zero: never
}

const (
	defaultListen = "127.0.0.1:0"

	webSocketPath = "/mqtt"
)

// ErrClosed is what a closed server answers with.
var ErrClosed = errors.New("the emulator is closed")

// A Server is an MQTT broker with a state store: package broker, with package store as
// the handler of the request topic. Its methods may be called by several goroutines.
type Server struct {
	opts    Options
	broker  *broker.Broker
	ln      net.Listener
	ended   chan struct{} // closed when the server is closed, or ended by itself
	end     sync.Once     // closes ended
	ws      net.Listener  // nil: no WebSockets
	redisAt net.Listener  // nil: no Redis clients
	port    *redisPort

	// Guarded by broker: what was changed first is told first.
	changed   sync.Cond // the state that Await looks at
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
	stopped   time.Time // what the store's clock shows during a step of Redis commands; zero: it runs
	err       error     // why the server ended by itself

	// Memory that one request after the other uses.
	payload, properties []byte
	answering           request // while the store answers one that came in a packet; else zero
}

// New starts a server. The caller closes it.
func New(opts Options) (*Server, error) {
	if opts.Listen == "" {
		opts.Listen = defaultListen
	}
	if users := opts.Users; users != nil && opts.CheckLogin == nil {
		opts.CheckLogin = func(username string, password []byte) bool {
			want, known := users[username]
			return known && want == string(password)
		}
	}
	if opts.VerifyToken == nil && opts.CheckToken != nil {
		check := opts.CheckToken
		opts.VerifyToken = func(token []byte, _ time.Time) (Login, error) {
			if !check(token) {
				return Login{}, errors.New("the token is not known")
			}
			return Login{}, nil
		}
	}
	authorize := opts.Authorize
	if len(opts.Rules) > 0 {
		authorize = func(clientID, username, key string, write bool) bool {
			return rules(opts.Rules).allowKey(clientID, username, key, write) &&
				(opts.Authorize == nil || opts.Authorize(clientID, username, key, write))
		}
	}
	for _, r := range opts.Rules {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("rule %q: %w", r, err)
		}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts, ended: make(chan struct{})}
	b := broker.Options{
		Login: s.login, Topic: wire.RequestTopic, Handle: s.handle,
		Connected: s.connected, Disconnected: s.disconnected, Refused: s.refused, Changed: s.changed.Broadcast,
		Refuse: opts.RefuseFilters, Limits: opts.Limits,
		Version: "sscli emulator", Log: opts.Log,
	}
	if len(opts.Rules) > 0 || opts.AuthorizeTopic != nil {
		b.Authorize = s.mayUse
	}
	s.broker = broker.New(b)
	s.changed.L = s.broker
	var err error
	so := store.Options{
		Now: s.now, MaxKeys: opts.MaxKeys, ScanPage: opts.ScanPage, Authorize: authorize, Changed: s.note, Variants: opts.Variants,
	}
	if opts.Observe != nil {
		so.Observe = s.observed
	}
	s.store, s.journal, err = openStore(so, opts.Data, s.broker, s.fail)
	if err != nil {
		return nil, errors.Join(err, s.broker.Close())
	}
	s.broker.Lock()
	s.arm()
	s.broker.Unlock()
	if err := s.listen(); err != nil {
		return nil, errors.Join(err, s.broker.Close(), s.journal.close())
	}
	return s, nil
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

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// WebSocketAddr is the address that the server listens for WebSockets on, or nil.
func (s *Server) WebSocketAddr() net.Addr {
	if s.ws == nil {
		return nil
	}
	return s.ws.Addr()
}

// URL is how clients on this machine reach the server.
func (s *Server) URL() string {
	scheme := "mqtt"
	if s.opts.TLS != nil {
		scheme = "mqtts"
	}
	return scheme + "://" + reachable(s.Addr())
}

// reachable is where clients on this machine find a listener.
func reachable(addr net.Addr) string {
	if a, ok := addr.(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port))
	}
	return addr.String()
}

// WebSocketURL is how clients reach the server with WebSockets, or empty.
func (s *Server) WebSocketURL() string {
	if s.ws == nil {
		return ""
	}
	scheme := "ws"
	if s.opts.TLS != nil {
		scheme = "wss"
	}
	return scheme + "://" + reachable(s.ws.Addr()) + webSocketPath
}

// Close tells the clients that the server shuts down, waits until all connections
// are closed and frees the address. Further calls do nothing.
func (s *Server) Close() error {
	closed := false
	s.update(func() { closed, s.closed = s.closed, true })
	if closed {
		return nil
	}
	port := s.port.close()
	// A store that can be kept no longer said why to Err, and answers nobody.
	_ = s.journal.wait()
	defer s.end.Do(func() { close(s.ended) })
	return errors.Join(port, s.broker.Close(), s.journal.close())
}

// Done is closed when the server is closed, or has ended by itself because its store can be
// kept no longer. Err then says why.
func (s *Server) Done() <-chan struct{} { return s.ended }

// Err returns why the server ended by itself, or nil.
func (s *Server) Err() error {
	s.broker.Lock()
	defer s.broker.Unlock()
	return s.err
}

// fail ends the server: what it would answer from now on could be lost.
func (s *Server) fail(err error) {
	s.opts.Log.Error("the store can be kept no longer", "error", err)
	var port *redisPort
	s.update(func() { s.err, port = err, s.port })
	// The listeners are closed; that one was gone before does not matter any more.
	_ = errors.Join(port.close(), s.broker.Close())
	s.end.Do(func() { close(s.ended) })
}

// update changes the server's state and lets those who wait for it look.
func (s *Server) update(change func()) {
	s.broker.Lock()
	change()
	s.broker.Unlock()
	s.changed.Broadcast()
}

// now is the store's clock. The broker is locked.
func (s *Server) now() time.Time {
	if !s.stopped.IsZero() {
		return s.stopped
	}
	now := s.broker.Now()
	if s.opts.Skew != 0 {
		now = now.Add(s.opts.Skew)
	}
	return now
}

// at has something done when the store's clock shows that time.
func (s *Server) at(due time.Time, do func()) *broker.Timer {
	return s.broker.At(due.Add(-s.opts.Skew), do)
}

// after does something later on the store's clock, or at once.
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

// arm sees to it that the next key expires in time.
func (s *Server) arm() {
	due, ok := s.store.NextExpiry()
	if !ok {
		due = time.Time{}
	}
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
