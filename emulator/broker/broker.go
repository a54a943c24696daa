package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"
)

// Options configure a [Broker]. The zero value lets anybody do anything, within limits
// that no ordinary client meets.
type Options struct {
	// Login decides on each CONNECT, and on each AUTH. It is called on the connection's
	// goroutine, without the lock. If it is nil everybody may connect, but not with an
	// authentication method.
	Login func(*Login) Verdict

	// Authorize reports whether a client may publish to a topic (write), or subscribe to a
	// filter; nil: everybody may. The filter of a shared subscription begins with $share.
	Authorize func(c *Client, topic string, write bool) bool

	// Refuse are topic filters that nobody may subscribe to, compared character by character:
	// SUBACK 0x80.
	Refuse []string

	// Topic is the topic of Handle. No message to it reaches a subscriber or is retained. A
	// will to it is dropped.
	Topic string

	// Handle takes each message that an authorized client publishes to Topic. It returns the
	// reason code of PUBACK or PUBREC, or [Later] to have no PUBACK sent until it calls
	// [Client.Ack]. Handle may unlock the broker and lock it again; then the client may have
	// gone, see [Client.Connected].
	Handle func(c *Client, p *Publish) byte

	// Connected and Disconnected are called once each for a connection that CONNACK accepts.
	// In a take-over, the old connection's Disconnected comes first. They may be nil.
	// Why it has ended, Disconnected learns from [Client.Ended].
	Connected, Disconnected func(*Client)

	// Refused is called for each connection that is not let in, after CONNECT or for want of
	// one. It may be nil.
	Refused func(*Client, Verdict)

	// Changed is called, without the lock, when anything else may have changed that
	// [Broker.Stats] returns than messages and bytes. It may be nil.
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
	Connections int // open, also before CONNECT
	Clients     int // connected, with a session
	Sessions    int // of clients that are connected, and that are away

	Subscriptions int
	Retained      int

	Kept int // bytes that clients make the broker keep, about; see Options.MaxBytes

	MessagesReceived, MessagesSent uint64 // PUBLISH packets
	BytesReceived, BytesSent       uint64
}

// A Broker serves MQTT. Its methods may be called by several goroutines; those that want
// the lock say so.
type Broker struct {
	opts    Options
	log     *slog.Logger
	running sync.WaitGroup // accept loops, readers, writers and the timekeeper
	done    chan struct{}

	mu         sync.Mutex
	clients    map[*Client]struct{} // all connections
	sessions   map[string]*session
	tree       node
	generation uint64            // changes with each subscription
	routes     map[string]*route // by topic
	last       *route            // of Publish
	stats      Stats
	routeBytes int
	retained   int    // bytes
	kept       int    // bytes of all kinds; see budget.go
	sequence   uint64 // of retained messages
	sysSubs    int    // subscriptions to $SYS
	sysDue     *Timer
	started    time.Time
	dirty      []*Client // with something in the outbox
	changed    bool      // since Changed was called
	batch      time.Time // of the clock, when the packets at hand were read; zero: none are
	own        message
	agenda     agenda
	listeners  []net.Listener
	closed     bool
}

// New returns a broker that does not listen yet. The caller closes it.
func New(opts Options) *Broker {
	opts.setDefaults()
	b := &Broker{
		opts: opts, log: opts.Log, done: make(chan struct{}),
		clients: make(map[*Client]struct{}), sessions: make(map[string]*session), routes: make(map[string]*route),
	}
	b.agenda.timer = time.NewTimer(math.MaxInt64)
	b.started = b.now()
	b.running.Go(b.keepTime)
	return b
}

// Lock locks the broker, so that methods that want the lock may be called.
func (b *Broker) Lock() { b.mu.Lock() }

// fewWrites is the number of clients that Unlock writes to by itself. The other clients'
// writers do it, in parallel.
const fewWrites = 4

// Unlock sends what was queued and unlocks the broker.
func (b *Broker) Unlock() {
	var few [fewWrites]*Client
	n := 0
	for i, c := range b.dirty {
		b.dirty[i] = nil
		c.dirty = false
		if c.writing {
			continue // who writes looks again
		}
		c.writing = true
		if n < fewWrites && c.direct() {
			c.load()
			few[n] = c
			n++
			continue
		}
		c.handOver()
	}
	b.dirty = b.dirty[:0]
	b.batch = time.Time{}
	b.arm()
	changed := b.changed
	b.changed = false
	b.mu.Unlock()
	if changed && b.opts.Changed != nil {
		b.opts.Changed()
	}
	for _, c := range few[:n] {
		c.writeDirect()
	}
}

// Stats returns the present figures. It wants the lock.
func (b *Broker) Stats() Stats {
	st := b.stats
	st.Connections, st.Sessions, st.Kept = len(b.clients), len(b.sessions), b.kept
	return st
}

// Client returns the client with that id, if it is connected. It wants the lock.
func (b *Broker) Client(id string) *Client {
	if s := b.sessions[id]; s != nil {
		return s.client
	}
	return nil
}

// Clients calls f for each open connection, also those before CONNECT. It wants the lock.
func (b *Broker) Clients(f func(*Client)) {
	for c := range b.clients {
		f(c)
	}
}

// acceptPause keeps an accept loop from spinning when the process has no file
// descriptors left.
const acceptPause = 50 * time.Millisecond

// Serve accepts connections from ln until the broker is closed, which closes ln. It
// returns at once.
func (b *Broker) Serve(ln net.Listener) { b.serve(ln, func(nc net.Conn) net.Conn { return nc }) }

// ServeWebSocket is [Broker.Serve] for WebSockets (MQTT 5, 6) at a path such as /mqtt.
func (b *Broker) ServeWebSocket(ln net.Listener, path string) {
	b.serve(ln, func(nc net.Conn) net.Conn { return newWebSocket(nc, path) })
}

func (b *Broker) serve(ln net.Listener, wrap func(net.Conn) net.Conn) {
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
				b.connection(wrap(nc))
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

// Close tells the clients that the broker shuts down, and waits until all connections
// are closed. Further calls do nothing.
func (b *Broker) Close() error {
	b.Lock()
	if b.closed {
		b.Unlock()
		return nil
	}
	b.closed = true
	for c := range b.clients {
		c.end(ServerShuttingDown, "")
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
