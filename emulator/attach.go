package emulator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// An Attached is a state store that runs as an ordinary MQTT 5 client of another broker, for
// development: it subscribes to the request topic and publishes replies and notifications. The
// package comment lists its limitations.
type Attached struct {
	o      mqtt.Options
	opts   StoreOptions
	cancel context.CancelCauseFunc // ends run; called with the error of a failed commit, or with nil by Close
	wg     sync.WaitGroup
	ended  chan struct{} // closed when run ends

	mu      sync.Mutex // guards the fields below, so that messages are sent in the order of changes
	engine  *store.Store
	journal *journal   // nil = the store is in memory only
	port    *redisPort // nil = no Redis clients
	queue   []mqtt.Message
	queued  int           // estimated memory of queue, in bytes
	watched int           // estimated memory of the registrations of KEYNOTIFY, in bytes
	wake    chan struct{} // signals a message in the queue or a change of expiries; capacity 1
	err     error         // why run ended

	refusals atomic.Int64
	refused  atomic.Pointer[func(error)] // see OnRefused
}

const (
	maxAttachedQueue = 1 << 16 // maximum number of replies and notifications that wait to be sent

	// Requests are refused while more than maxWaiting replies and notifications, or more than
	// maxWaitingBytes of them, wait to be sent.
	maxWaiting      = maxAttachedQueue / 3
	maxWaitingBytes = 256 << 20

	// maxWatched is the maximum estimated memory of all KEYNOTIFY registrations, in bytes. It allows at most
	// 60,000 registrations, so that one step never causes more than maxAttachedQueue notifications.
	maxWatched = 8 << 20

	// attachedRetry is the pause before reconnecting. It is short because brokers on a developer's
	// machine restart quickly.
	attachedRetry = 200 * time.Millisecond
)

var errQueueFull = errors.New("the broker accepts replies and notifications more slowly than requests arrive")

// Attach connects to the broker in o and returns a store that is served there until Close is called or
// a permanent error occurs, such as a refused login. After any other error, the store reconnects and
// keeps its contents. ctx limits only the first connection attempt. Attach replaces o.OnMessage and
// o.Subscribe.
func Attach(ctx context.Context, o BrokerOptions, opts StoreOptions, data Data) (*Attached, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	a := &Attached{wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if opts.Reserve == nil {
		opts.Reserve = a.reserve
	}
	a.opts = opts
	changed := opts.Changed
	opts.Changed = func(c *store.Change) {
		a.port.changed(c)
		if changed != nil {
			changed(c)
		}
	}
	if report := opts.Observe; report != nil {
		opts.Observe = func(e observe.Event) {
			if !a.port.collects(e) {
				report(e)
			}
		}
	}
	running, cancel := context.WithCancelCause(context.Background())
	a.cancel = cancel
	var err error
	a.engine, a.journal, err = openStore(opts, data, &a.mu, cancel)
	if err != nil {
		return nil, err
	}
	o.Subscribe, o.OnMessage = []string{wire.RequestTopic}, a.receive
	a.o = o
	conn, err := mqtt.Dial(ctx, o)
	if err != nil {
		return nil, errors.Join(err, a.journal.close())
	}
	a.wg.Go(func() { a.run(running, conn) })
	return a, nil
}

// Done returns a channel that is closed when the store is no longer served. Err then returns the reason.
func (a *Attached) Done() <-chan struct{} { return a.ended }

// Err returns the reason why the store is no longer served: context.Canceled if Close ended it, otherwise
// the error that did. It returns nil while the store is served.
func (a *Attached) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// OnRefused sets a function that is called with the broker's refusal for each reply and
// notification that the broker refuses. The error includes the message's topic. A refused reply
// does not reach its client. f must not block.
func (a *Attached) OnRefused(f func(error)) { a.refused.Store(&f) }

// Refused returns how many replies and notifications the broker has refused.
func (a *Attached) Refused() int64 { return a.refusals.Load() }

// published handles the outcome of a publish: it counts and reports a PUBACK with an error code. run
// handles all other errors.
func (a *Attached) published(err error) {
	if r, ok := errors.AsType[*mqtt.ReasonError](err); !ok || r.Packet != "PUBACK" {
		return
	}
	a.refusals.Add(1)
	if f := a.refused.Load(); f != nil {
		(*f)(err)
	}
}

// Close stops serving Redis clients, disconnects from the broker, and closes the data file.
func (a *Attached) Close() error {
	port := a.port.close()
	_ = a.journal.wait() // Err returns the error of a failed commit
	a.cancel(nil)
	a.wg.Wait()
	err := errors.Join(port, a.journal.close())
	if e := a.Err(); !errors.Is(e, context.Canceled) {
		err = errors.Join(e, err)
	}
	return err
}

// run serves the store, and reconnects when a connection ends, until ctx is done or a permanent
// error occurs.
func (a *Attached) run(ctx context.Context, conn *mqtt.Conn) {
	defer close(a.ended)
	for {
		err := a.serve(ctx, conn)
		_ = conn.Close() // err already says why the connection ended
		for err != nil && ctx.Err() == nil && !final(err) {
			select {
			case <-time.After(attachedRetry):
			case <-ctx.Done():
			}
			conn, err = mqtt.Dial(ctx, a.o)
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err != nil {
			a.mu.Lock()
			a.err = err
			a.mu.Unlock()
			return
		}
	}
}

// final reports whether an error is permanent: a new connection would end with the same error.
func final(err error) bool {
	if errors.Is(err, errQueueFull) {
		return true
	}
	code, ok := mqtt.ReasonCode(err)
	return ok && (code == mqtt.ReasonTakenOver || code == mqtt.ReasonBadLogin || code == mqtt.ReasonNotAuthorized || code == mqtt.ReasonBanned)
}

// serve publishes queued messages and removes expired keys until the connection ends, ctx is done or the
// queue is too long. It returns the reason as an error.
func (a *Attached) serve(ctx context.Context, conn *mqtt.Conn) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-a.wake:
		case <-timer.C:
		case <-conn.Done():
			return conn.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		a.mu.Lock()
		a.engine.ExpireSome() // if more keys have expired, the timer fires immediately
		a.notify()
		queue, full := a.queue, len(a.queue) > maxAttachedQueue
		a.queue, a.queued = nil, 0
		if at, ok := a.engine.NextExpiry(); ok {
			timer.Reset(at.Sub(a.opts.Now()))
		}
		a.mu.Unlock()
		if full {
			return errQueueFull
		}
		for i, m := range queue {
			err := conn.Publish(ctx, m, a.published)
			if _, tooLarge := errors.AsType[*mqtt.TooLargeError](err); tooLarge {
				continue // drop the message, as a broker does if a message is too large for a client
			}
			if err != nil {
				a.putBack(queue[i:])
				return err
			}
		}
	}
}

// putBack returns unsent messages to the front of the queue, for the next connection.
func (a *Attached) putBack(unsent []mqtt.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(unsent, a.queue...)
	for i := range unsent {
		a.queued += memoryOf(&unsent[i])
	}
	a.signal()
}

// receive answers one request. It ignores a request with a QoS other than 1, without a response topic or
// correlation data, with a forbidden response topic, or with two different client ids.
func (a *Attached) receive(m mqtt.Message) {
	if m.Topic != wire.RequestTopic {
		return
	}
	id, consistent := attachedClient(m)
	r := NewRequest(id, m.Payload, m.User...).forStore()
	why := whyIgnored(m.QoS, m.ResponseTopic != "", len(m.Correlation) > 0)
	switch {
	case why != "":
	case wire.CheckResponseTopic(m.ResponseTopic) != nil, strings.HasPrefix(m.ResponseTopic, "$"):
		why = "a response topic of the store's own"
	case !consistent:
		why = "a response topic of another client than " + wire.PropSource
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if why != "" {
		if a.opts.Observe != nil {
			a.opts.Observe(ignored(*r, a.opts.Now(), why))
		}
		return
	}
	a.journal.admit()
	if len(a.queue) > maxWaiting || a.queued > maxWaitingBytes {
		status := []store.Property{{Name: wire.PropStatus, Value: []byte(wire.StatusOK)}}
		a.enqueue(a.message(m.ResponseTopic, m.Correlation, wire.AppendError(nil, wire.TextQuota), status))
		return
	}
	response := a.engine.Do(r, nil)
	a.notify()
	a.enqueue(a.message(m.ResponseTopic, m.Correlation, store.Whole(response.Payload, response.Value), response.Properties))
}

// notify queues the store's pending notifications. It requires a.mu.
func (a *Attached) notify() {
	var payload, kept []byte // the notifications of a change share one copy of the payload
	notes := a.engine.TakeNotifications()
	for i := range notes {
		n := &notes[i]
		if len(payload) == 0 || &payload[0] != &n.Payload[0] {
			payload, kept = n.Payload, bytes.Clone(store.Whole(n.Payload, n.Value))
		}
		n.Value = nil // the store keeps its notifications for reuse
		a.enqueue(a.message(n.Topic(), nil, kept, n.Properties))
	}
}

// reserve adds n, which may be negative, to the estimated memory of the KEYNOTIFY registrations. If the
// sum would exceed maxWatched, it adds nothing and returns false. It requires a.mu.
func (a *Attached) reserve(n int) bool {
	if n > 0 && a.watched+n > maxWatched {
		return false
	}
	a.watched += n
	return true
}

// enqueue queues a message, but not before all changes made so far are in the data file. It requires
// a.mu.
func (a *Attached) enqueue(m mqtt.Message) {
	if a.journal.pending() {
		a.journal.hold(memoryOf(&m), func() { a.enqueueNow(m) })
		return
	}
	a.enqueueNow(m)
}

func (a *Attached) enqueueNow(m mqtt.Message) {
	a.queue = append(a.queue, m)
	a.queued += memoryOf(&m)
	a.signal()
}

// memoryOf returns the estimated memory of a message, in bytes. The client that sent the request chooses the topic and the
// correlation data of the reply.
func memoryOf(m *mqtt.Message) int {
	n := int(unsafe.Sizeof(*m)) + len(m.Topic) + len(m.Payload) + len(m.Correlation)
	for _, p := range m.User {
		n += int(unsafe.Sizeof(p)) + len(p.Value)
	}
	return n
}

func (a *Attached) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *Attached) message(topic string, correlation, payload []byte, properties []store.Property) mqtt.Message {
	m := mqtt.Message{Topic: topic, Payload: payload, Correlation: correlation, ContentType: wire.ContentType, User: cloneProperties(properties)}
	if a.opts.Variants.NoContentType {
		m.ContentType = ""
	}
	return m
}

// attachedClient returns the id of the client that sent a request. Brokers do not forward client
// ids, so attachedClient must trust the request: it returns `__srcId` or, without that property,
// the id in the response topic, in plain text or hexadecimal (protocol.md 1.1). If the response topic
// is not below clients/, the topic takes the place of that id. consistent is false if `__srcId` and a
// response topic below clients/ name different clients.
func attachedClient(m mqtt.Message) (id string, consistent bool) {
	source, _ := m.Property(wire.PropSource)
	rest, ok := strings.CutPrefix(m.ResponseTopic, "clients/")
	if !ok {
		return cmp.Or(source, m.ResponseTopic), true
	}
	level, _, _ := strings.Cut(rest, "/")
	decoded := level
	if text, err := hex.DecodeString(level); err == nil && m.ResponseTopic == wire.HexResponseTopic(string(text)) {
		decoded = string(text)
	}
	if source == "" {
		return decoded, true
	}
	return source, source == level || source == decoded
}
