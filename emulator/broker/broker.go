package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/internal/admission"
)

// Options configure a [Broker]. With the zero value everybody may do everything, within the
// default limits. Each function may be nil.
type Options struct {
	// Login decides on each CONNECT, and on each AUTH. It is called on the connection's
	// goroutine, without the lock. If it is nil, everybody may connect, except with an
	// authentication method.
	Login func(*Login) Verdict

	// Authorize reports whether a client may publish to a topic (write), or subscribe to a
	// filter. The filter of a shared subscription begins with $share. If it is nil, everybody
	// may.
	Authorize func(c *Client, topic string, write bool) bool

	// Refuse lists topic filters that nobody may subscribe to: SUBACK 0x80. They are compared as
	// strings.
	Refuse []string

	// Origins lists the origins of web pages that may connect to a WebSocket, such as
	// https://dashboard.example. A page that the listener's own address serves may always connect.
	Origins []string

	// Topic is the topic of Handle. Messages to it are not retained and reach no subscriber. A
	// will to it is dropped.
	Topic string

	// Handle is called for each message that an authorized client publishes to Topic. It returns
	// the reason code of PUBACK or PUBREC, or [Later] to send no PUBACK before it calls
	// [Client.Ack]. Handle may unlock the broker and lock it again. Then the client may have
	// disconnected, see [Client.Connected].
	Handle func(c *Client, p *Publish) byte

	// Connected and Disconnected are called once each for a connection that CONNACK accepts.
	// In a take-over, Disconnected of the old connection comes first. [Client.Ended] returns
	// the reason.
	Connected, Disconnected func(*Client)

	// Refused is called for each connection that is refused before or in CONNACK.
	Refused func(*Client, Verdict)

	// Changed is called after changes to [Stats], but not after changes to the counts of messages
	// and bytes. It is called without the lock.
	Changed func()

	Limits

	Version string       // for $SYS/broker/version
	Log     *slog.Logger // nil: silent
}

func (o *Options) setDefaults() {
	o.Limits.setDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Later is returned by a handler that calls [Client.Ack] itself, or never.
const Later byte = 0xFF

// Stats are the figures of a broker.
type Stats struct {
	Connections int // open, including connections before CONNECT
	Clients     int // connected, with a session
	Sessions    int // including sessions whose client is away

	Subscriptions int
	Retained      int

	Kept int // bytes charged against Limits.MaxBytes

	MessagesReceived, MessagesSent uint64 // PUBLISH packets
	BytesReceived, BytesSent       uint64
}

// A Broker serves MQTT. Several goroutines may call its methods. Some methods require the lock.
type Broker struct {
	opts    Options
	log     *slog.Logger
	running sync.WaitGroup // all goroutines
	done    chan struct{}  // closed by Close
	gate    admission.Gate

	longDelivery sync.Mutex // locked before mu

	mu         sync.Mutex
	clients    map[*Client]struct{} // all connections
	sessions   map[string]*session  // by client id
	tree       node
	generation uint64            // changes with each subscription
	routes     map[string]*route // by topic
	lastRoute  *route            // of Publish
	routeBytes int
	stats      Stats
	retained   int          // bytes of retained messages
	kept       atomic.Int64 // bytes of everything, see budget.go; changed also without mu
	sequence   uint64       // of retained messages
	unawaited  int          // bytes of messages that wait in publishUnawaited
	sysSubs    int          // subscriptions to $SYS
	sysTimer   *Timer
	started    time.Time
	jobs       []func()  // see later
	spares     [][]byte  // empty buffers for outboxes
	dirty      []*Client // clients whose outbox Unlock must look at
	toClose    []net.Conn
	changed    bool      // Options.Changed is to be called
	readTime   time.Time // Now while packets are handled; zero: none are
	own        message   // of Publish and Send
	timers     timerQueue
	listeners  []net.Listener
	closed     bool
}

// New returns a broker that does not listen yet. The caller closes it.
func New(opts Options) *Broker {
	opts.setDefaults()
	b := &Broker{
		opts: opts, log: opts.Log, done: make(chan struct{}), timers: newTimerQueue(),
		clients: make(map[*Client]struct{}), sessions: make(map[string]*session), routes: make(map[string]*route), sequence: sysSequences,
	}
	b.gate.PendingBytes = max(minPendingBytes, opts.MaxBytes/64)
	b.started = b.Now()
	b.running.Go(b.runTimers)
	return b
}

// minPendingBytes is the least memory that clients without a login share. It has room for two
// large CONNECTs.
const minPendingBytes = 4 * maxBeforeLogin

// Lock locks the broker, for methods that require the lock. [Broker.Unlock] unlocks it.
func (b *Broker) Lock() { b.mu.Lock() }

// Stats returns the present figures. It requires the lock.
func (b *Broker) Stats() Stats {
	st := b.stats
	st.Connections, st.Sessions, st.Kept = len(b.clients), len(b.sessions), int(b.kept.Load())
	return st
}

// Client returns the connected client with that id, or nil. It requires the lock.
func (b *Broker) Client(id string) *Client {
	if s := b.sessions[id]; s != nil {
		return s.client
	}
	return nil
}

// Clients calls f for each open connection, including connections before CONNECT. It requires the lock.
func (b *Broker) Clients(f func(*Client)) {
	for c := range b.clients {
		f(c)
	}
}

// acceptPause keeps an accept loop from spinning when the process has no file descriptors
// left.
const acceptPause = 50 * time.Millisecond

// Serve accepts connections from ln until the broker is closed, which closes ln. It returns at
// once.
func (b *Broker) Serve(ln net.Listener) { b.serve(ln, "") }

// ServeWebSocket is [Broker.Serve] for WebSockets (MQTT 5, 6) at a path such as /mqtt.
func (b *Broker) ServeWebSocket(ln net.Listener, path string) { b.serve(ln, path) }

func (b *Broker) serve(ln net.Listener, path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = ln.Close()
		return
	}
	b.listeners = append(b.listeners, ln)
	b.running.Go(func() {
		for {
			nc, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				b.serveConn(nc, path)
				continue
			}
			b.log.Warn("accept", "error", err)
			select {
			case <-time.After(acceptPause):
			case <-b.done:
				return
			}
		}
	})
}

// Close disconnects all clients with 0x8B (Server shutting down) and waits until all connections
// are closed. Further calls do nothing.
func (b *Broker) Close() error {
	b.Lock()
	if b.closed {
		b.Unlock()
		return nil
	}
	b.closed = true
	for c := range b.clients {
		c.disconnect(ServerShuttingDown, "")
	}
	var err error
	for _, ln := range b.listeners {
		if e := ln.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, fmt.Errorf("close %s: %w", ln.Addr(), e))
		}
	}
	close(b.done)
	b.Unlock()
	b.running.Wait()
	return err
}
