package broker

import (
	"container/list"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/internal/admission"
)

// Options configure a [Broker]. With the zero value, every client may connect without a login,
// subscribe to every topic, and publish to every topic outside $SYS, within the default limits. Each
// function may be nil.
type Options struct {
	// Login decides on each CONNECT and each AUTH. It is called on the connection's goroutine,
	// without the lock. If Login is nil, every client may connect, except one whose CONNECT has an
	// Authentication Method.
	Login func(*Login) Verdict

	// Authorize reports whether a client may publish to a topic (write is true), or subscribe to a topic
	// filter (write is false). The filter of a shared subscription begins with $share. If Authorize
	// is nil, both are always allowed. The broker asks again when a session is resumed, when its client
	// authenticates again, after [Broker.Reauthorize], and before it publishes a will. The client may be away.
	Authorize func(who *Identity, topic string, write bool) bool

	// Refuse lists topic filters that no client may subscribe to; SUBACK returns 0x80. A filter is
	// refused only if it equals an entry exactly.
	Refuse []string

	// Origins lists the origins of web pages that may open a WebSocket, such as
	// https://dashboard.example. Pages from the listener's own address are always
	// allowed.
	Origins []string

	// Topic is the topic whose messages go to Handle; empty = none. Messages that clients publish to
	// it are not retained and reach no subscriber. A will for this topic is dropped.
	Topic string

	// Handle is called for each message that an authorized client publishes to Topic. It returns
	// the reason code of PUBACK or PUBREC, or [Later] if [Client.Ack] will send the PUBACK.
	// Handle may unlock the broker and lock it again; the client may have disconnected by then,
	// see [Client.Connected].
	Handle func(c *Client, p *Publish) byte

	// Connected and Disconnected are each called once for every connection that the broker accepts
	// in CONNACK. In a takeover, Disconnected is called for the old connection first.
	// [Client.Ended] returns the reason.
	Connected, Disconnected func(*Client)

	// Refused is called for each connection that the broker refuses in CONNACK.
	Refused func(*Client, Verdict)

	// Changed is called by Unlock, without the lock, if Handle, Publish or Send was called or
	// [Stats] changed since the last Unlock. It is not called if only the counts of messages and
	// bytes changed.
	Changed func()

	Limits

	Skew    time.Duration // how far the broker's clock is ahead of the real clock
	Version string        // for $SYS/broker/version
	Log     *slog.Logger  // nil = silent
}

// Later is a result of [Options].Handle that delays the PUBACK until [Client.Ack] is called. A QoS 2
// message has no PUBACK: it gets PUBREC 0x00 immediately.
const Later byte = 0xFF

// Stats are a broker's current figures and its totals since the start.
type Stats struct {
	Connections int // open connections, including those that have not sent CONNECT
	Clients     int // connected clients that have a session
	Sessions    int // including sessions whose client is away

	Subscriptions int
	Retained      int

	Kept int // bytes charged against Limits.MaxBytes

	MessagesReceived, MessagesSent uint64 // PUBLISH packets
	BytesReceived, BytesSent       uint64
}

// A Broker serves MQTT. Several goroutines may call its methods. The caller must hold the lock for
// methods that require it.
type Broker struct {
	opts    Options
	log     *slog.Logger
	running sync.WaitGroup // all goroutines
	done    chan struct{}  // closed by Close
	gate    admission.Gate

	endings      endings
	longDelivery sync.Mutex // held while many retained messages are sent; locked before mu

	line    admission.Line // see Line; locked before mu
	waiting atomic.Int32   // goroutines that wait in Lock

	mu          sync.Mutex
	inLine      bool                  // the goroutine that has locked mu has locked line too
	clients     map[*Client]struct{}  // all connections
	sessions    map[string]*session   // by client id
	away        map[string]*list.List // sessions whose clients are away, by user; in the order in which they left
	owned       map[string]int        // number of sessions, by user
	tree        node
	generation  uint64            // increases with each change of a subscription
	rights      uint64            // increases with each call of Reauthorize
	routes      map[string]*route // by topic
	lastRoute   *route            // the route that Publish used last
	routeBytes  int
	stats       Stats
	retained    int          // bytes of retained messages
	kept        atomic.Int64 // bytes charged to the budget, see budget.go; also changed without mu
	sequence    uint64       // sequence number of the newest retained message
	unawaited   int          // bytes of messages that publishUnawaited has yet to send
	sysSubs     int          // subscriptions to $SYS
	sysTimer    *Timer
	started     time.Time
	jobs        []func()  // queued by later
	spares      [][]byte  // empty buffers for outboxes
	dirty       []*Client // clients whose outbox Unlock must send
	toClose     []net.Conn
	changed     bool      // Unlock must call Options.Changed
	releasing   bool      // Release is calling a function
	readTime    time.Time // result of Now while packets are handled; zero = Now reads the clock
	own         message   // the message that Publish or Send is sending, see takeOwn
	ownInUse    bool
	timers      timerQueue
	messages    slots[message] // that deliveries in inflight and pending hold
	identifiers slots[identifierList]
	groups      slots[group]
	slotBytes   int // memory of these three, in bytes
	listeners   []net.Listener
	closed      bool
}

// New returns a broker that does not listen yet. The caller must call [Broker.Close].
func New(opts Options) *Broker {
	opts.Limits.setDefaults()
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	b := &Broker{
		opts: opts, log: opts.Log, done: make(chan struct{}), timers: newTimerQueue(opts.Skew),
		clients: make(map[*Client]struct{}), sessions: make(map[string]*session), away: make(map[string]*list.List), owned: make(map[string]int), routes: make(map[string]*route), sequence: sysSequences,
	}
	b.gate.PendingBytes = max(minPendingBytes, opts.MaxBytes/64)
	b.started = b.Now()
	b.running.Go(b.runTimers)
	return b
}

// minPendingBytes is the minimum memory, in bytes, for the packets of all clients that have not
// logged in. It has room for two CONNECTs of the largest size.
const minPendingBytes = 4 * maxBeforeLogin

// Lock locks the broker, for methods that require the lock. [Broker.Unlock] unlocks it.
func (b *Broker) Lock() {
	if !b.mu.TryLock() {
		b.waiting.Add(1)
		b.mu.Lock()
		b.waiting.Add(-1)
	}
}

// Stats returns the broker's figures. It requires the lock.
func (b *Broker) Stats() Stats {
	st := b.stats
	st.Connections, st.Sessions, st.Kept = len(b.clients), len(b.sessions), int(b.kept.Load())
	return st
}

// Client returns the connected client with the given client id, or nil if there is none.
// It requires the lock.
func (b *Broker) Client(id string) *Client {
	if s := b.sessions[id]; s != nil {
		return s.client
	}
	return nil
}

// Clients calls f for each open connection, including those that have not sent CONNECT. It requires
// the lock.
func (b *Broker) Clients(f func(*Client)) {
	for c := range b.clients {
		f(c)
	}
}

// acceptPause is the pause after Accept fails. It keeps the accept loop from spinning when the
// process has no file descriptors left.
const acceptPause = 50 * time.Millisecond

// ListenTLS is [admission.ListenTLS] with the broker's line.
func (b *Broker) ListenTLS(ln net.Listener, config *tls.Config) net.Listener {
	return admission.ListenTLS(ln, config, &b.line)
}

// Serve starts accepting connections on ln and returns immediately. Closing the broker closes ln.
func (b *Broker) Serve(ln net.Listener) { b.serve(ln, "") }

// ServeWebSocket is like [Broker.Serve], but accepts MQTT over WebSocket (MQTT 5, 6) at a URL path
// such as /mqtt.
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
// are closed. It returns the errors of closing the listeners. Further calls return nil without
// waiting. The caller must not hold the lock.
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
