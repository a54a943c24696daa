package emulator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

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
	TLS       *tls.Config // of both; nil: plain TCP

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
	Skew     time.Duration // how far the store's clock is ahead of the real one
	Latency  time.Duration // between the arrival of a request and its processing

	MaxPacketSize  uint32 // of packets from clients; 0: no limit
	ReceiveMaximum uint16 // requests that a client may have unacknowledged; 0: 1024
	Outbox         int    // packets that may wait for a client; 0: 65536

	Variants Variants
	Log      *slog.Logger // nil: silent
}

// A Login is whom a token is for.
type Login struct {
	User    string    // the user name for rules; may be empty
	Expires time.Time // when the token ends; zero: never
}

const (
	defaultListen         = "127.0.0.1:0"
	defaultReceiveMaximum = 1024
	defaultOutbox         = 1 << 16

	// quietSeconds spaces out the $SYS messages, each of which stops the world to
	// read memory statistics.
	quietSeconds = 24 * 60 * 60

	// readBuffer holds some dozens of requests, which are then answered in one
	// write.
	readBuffer = 16 << 10
)

// ErrClosed is what a closed server answers with.
var ErrClosed = errors.New("the emulator is closed")

// A Server is an MQTT 5 broker with a state store. Its methods may be called by
// several goroutines.
type Server struct {
	opts   Options
	log    *slog.Logger
	broker *mqtt.Server
	ln     net.Listener
	ws     net.Listener // nil: no WebSockets

	running sync.WaitGroup // the accept loops, the timer, two goroutines for each connection
	done    chan struct{}

	mu        sync.Mutex // engine and outboxes: what was changed first is told first
	changed   sync.Cond  // the state that Await looks at
	engine    *store.Store
	history   history
	offset    time.Duration    // of the store's clock
	links     map[string]*link // by client id, those with a session
	latest    map[string]*link // by client id, the last that had one, until mochi is done with it
	conns     map[*link]struct{}
	agenda    agenda
	timer     *time.Timer
	armed     time.Time // what the timer is set to; zero: nothing
	loginsDue time.Time // when tokens are looked at next; zero: never
	intercept func(Request) Action
	refuse    func(clientID, username string) byte
	reauth    func(clientID string, token []byte) byte
	counts    State
	closed    bool
}

// New starts a server. It is to be closed.
func New(opts Options) (*Server, error) {
	if opts.Listen == "" {
		opts.Listen = defaultListen
	}
	if opts.ReceiveMaximum == 0 {
		opts.ReceiveMaximum = defaultReceiveMaximum
	}
	if opts.Outbox <= 0 {
		opts.Outbox = defaultOutbox
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
	s := &Server{
		opts: opts, log: opts.Log, done: make(chan struct{}), offset: opts.Skew,
		links: make(map[string]*link), latest: make(map[string]*link), conns: make(map[*link]struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.changed.L = &s.mu
	s.engine = store.New(store.Options{
		Now: s.now, MaxKeys: opts.MaxKeys, ScanPage: opts.ScanPage, Authorize: authorize, Changed: s.history.add, Variants: opts.Variants,
	})
	if err := s.listen(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) listen() error {
	var err error
	if s.ln, err = s.listenOn(s.opts.Listen, s.opts.Listener); err != nil {
		return err
	}
	all := []listeners.Listener{&listener{Listener: s.ln, s: s, id: "emulator", protocol: "tcp"}}
	if s.opts.WebSocket != "" {
		if s.ws, err = s.listenOn(s.opts.WebSocket, nil); err != nil {
			return errors.Join(err, s.ln.Close())
		}
		all = append(all, &listener{Listener: s.ws, s: s, id: "emulator-ws", protocol: "ws", wrap: newWebSocket})
	}
	capabilities := mqtt.NewDefaultServerCapabilities()
	capabilities.ReceiveMaximum = s.opts.ReceiveMaximum
	capabilities.MaximumInflight = math.MaxUint16
	// mochi would send a PUBLISH's user properties back in its PUBACK.
	capabilities.Compatibilities.NoInheritedPropertiesOnAck = true
	s.broker = mqtt.New(&mqtt.Options{Capabilities: capabilities, Logger: s.log, SysTopicResendInterval: quietSeconds, ClientNetReadBufferSize: readBuffer})
	err = s.broker.AddHook(&hook{s: s}, nil)
	for _, ln := range all {
		err = errors.Join(err, s.broker.AddListener(ln))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start the broker: %w", err), s.closeListeners())
	}
	s.timer = time.NewTimer(math.MaxInt64)
	s.running.Go(s.keepTime)
	s.running.Add(len(all)) // listener.Serve
	if err := s.broker.Serve(); err != nil {
		s.running.Add(-len(all)) // the listeners have not been started
		return errors.Join(fmt.Errorf("start the broker: %w", err), s.Close())
	}
	return nil
}

func (s *Server) listenOn(address string, ln net.Listener) (net.Listener, error) {
	var err error
	if ln == nil {
		ln, err = net.Listen("tcp", address)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: the address is taken: %w", address, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	case s.opts.TLS != nil:
		return tls.NewListener(ln, s.opts.TLS), nil
	default:
		return ln, nil
	}
}

func (s *Server) closeListeners() error {
	err := s.ln.Close()
	if s.ws != nil {
		err = errors.Join(err, s.ws.Close())
	}
	return err
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
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for l := range s.conns {
		if l.client == nil {
			l.cut()
			continue
		}
		l.disconnect(packets.ErrServerShuttingDown.Code)
	}
	s.mu.Unlock()
	s.changed.Broadcast()
	close(s.done)
	err := s.closeListeners()
	s.running.Wait()
	return errors.Join(err, s.broker.Close())
}

// serve runs a new connection: mochi's reader and the link's writer.
func (s *Server) serve(conn net.Conn, establish func(*link) error) {
	l := newLink(conn, s.opts.Outbox)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.cut()
		return
	}
	s.conns[l] = struct{}{}
	s.running.Go(l.run)
	s.running.Go(func() {
		if err := establish(l); err != nil {
			s.log.Debug("connection ended", "remote", conn.RemoteAddr(), "error", err)
		}
		l.settle()
		s.leave(l)
	})
}

// update changes the server's state and lets those who wait for it look.
func (s *Server) update(change func()) {
	s.mu.Lock()
	change()
	s.arm()
	s.mu.Unlock()
	s.changed.Broadcast()
}
