package emulator

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/store"
)

// An Attached is a store that is an ordinary MQTT 5 client of some broker, which
// thereby has a state store for development: it subscribes to the request topic
// and publishes replies and notifications. It does what a client can do; what it
// cannot know or do is in the package comment.
type Attached struct {
	o      mqtt.Options
	opts   EngineOptions
	cancel context.CancelCauseFunc // with why the store can be kept no longer
	wg     sync.WaitGroup
	ended  chan struct{} // closed when run has ended

	mu      sync.Mutex // engine and queue: what was changed first is told first
	engine  *store.Store
	journal *journal   // nil: the store is in memory only
	port    *redisPort // nil: no Redis clients
	queue   []mqtt.Message
	wake    chan struct{} // the queue has something, or expiries changed; capacity 1
	err     error         // why run has ended

	refusals atomic.Int64
	refused  atomic.Pointer[func(error)] // nil = nobody wants to know
}

// attachedQueue bounds the replies and notifications that wait for the broker.
const attachedQueue = 1 << 16

// attachedRetry is the pause before connecting again; brokers on a developer's
// machine come back fast.
const attachedRetry = 200 * time.Millisecond

var errQueueFull = errors.New("the broker takes replies and notifications more slowly than requests come")

// Attach connects to the broker that o names, within ctx, and serves a store
// there until Close, or until the broker's reason to end the connection is one
// that would not change. A connection that is lost otherwise is made again, with
// the store as it was. OnMessage and Subscribe of o are set by Attach.
func Attach(ctx context.Context, o mqtt.Options, opts EngineOptions, data Data) (*Attached, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	a := &Attached{opts: opts, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	changed := opts.Changed
	opts.Changed = func(c *store.Change) {
		a.port.changed(c)
		if changed != nil {
			changed(c)
		}
	}
	if observe := opts.Observe; observe != nil {
		opts.Observe = func(o store.Observation) {
			if !a.port.collects(o) {
				observe(o)
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

// Done is closed when the store is no longer served; Err then says why.
func (a *Attached) Done() <-chan struct{} { return a.ended }

// Err returns why the store is no longer served, or nil.
func (a *Attached) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// OnRefused has f called for each reply and notification that the broker refuses to
// take, with a *[mqtt.ReasonError] that names its topic. f must not block. The client
// that waits for the reply gets none.
func (a *Attached) OnRefused(f func(error)) { a.refused.Store(&f) }

// Refused returns how many replies and notifications the broker has refused.
func (a *Attached) Refused() int64 { return a.refusals.Load() }

// published is called with each PUBACK, or with the end of the connection, which run
// sees too.
func (a *Attached) published(err error) {
	if r, ok := errors.AsType[*mqtt.ReasonError](err); !ok || r.Packet != "PUBACK" {
		return
	}
	a.refusals.Add(1)
	if f := a.refused.Load(); f != nil {
		(*f)(err)
	}
}

// Close disconnects.
func (a *Attached) Close() error {
	closing := a.port.close()
	// A store that can be kept no longer said why to Err.
	_ = a.journal.wait()
	a.cancel(nil)
	a.wg.Wait()
	err := errors.Join(closing, a.journal.close())
	if e := a.Err(); !errors.Is(e, context.Canceled) {
		err = errors.Join(e, err)
	}
	return err
}

// run serves over one connection after the other.
func (a *Attached) run(ctx context.Context, conn *mqtt.Conn) {
	defer close(a.ended)
	for {
		err := a.serve(ctx, conn)
		// How the connection ended is in err already.
		_ = conn.Close()
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

// final tells whether connecting again would only repeat the end.
func final(err error) bool {
	if errors.Is(err, errQueueFull) {
		return true
	}
	code, ok := mqtt.ReasonCode(err)
	return ok && (code == mqtt.ReasonTakenOver || code == mqtt.ReasonBadLogin || code == mqtt.ReasonNotAuthorized || code == mqtt.ReasonBanned)
}

// serve publishes what is queued, and lets keys expire, until the connection
// ends.
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
		a.engine.Expire()
		a.notify()
		queue, full := a.queue, len(a.queue) > attachedQueue
		a.queue = nil
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
				continue // as a broker does with what is too large for a client
			}
			if err != nil {
				a.putBack(queue[i:])
				return err
			}
		}
	}
}

// putBack keeps what could not be sent for the next connection.
func (a *Attached) putBack(unsent []mqtt.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(unsent, a.queue...)
	a.signal()
}

// receive answers one request. What a broker's store would not answer gets none
// here either.
func (a *Attached) receive(m mqtt.Message) {
	if m.Topic != wire.RequestTopic {
		return
	}
	r := store.Request{ClientID: attachedClient(m), Payload: m.Payload}
	for _, p := range m.User {
		r.SetProperty([]byte(p.Name), []byte(p.Value))
	}
	why := whyIgnored(m.QoS, m.ResponseTopic != "", len(m.Correlation) > 0)
	if why == "" && wire.CheckResponseTopic(m.ResponseTopic) != nil {
		why = "a response topic of the store's own"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if why != "" {
		if a.opts.Observe != nil {
			a.opts.Observe(ignored(r, a.opts.Now(), why))
		}
		return
	}
	a.journal.admit()
	response := a.engine.Do(&r, nil)
	a.notify()
	a.enqueue(a.message(m.ResponseTopic, m.Correlation, response.Payload, response.Properties))
}

// notify wants a.mu.
func (a *Attached) notify() {
	for _, n := range a.engine.TakeNotifications() {
		a.enqueue(a.message(n.Topic, nil, bytes.Clone(n.Payload), n.Properties))
	}
}

// enqueue wants a.mu.
func (a *Attached) enqueue(m mqtt.Message) {
	do := func() {
		a.queue = append(a.queue, m)
		a.signal()
	}
	if a.journal.pending() {
		a.journal.hold(len(m.Payload), do)
		return
	}
	do()
}

func (a *Attached) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *Attached) message(topic string, correlation, payload []byte, properties []store.Property) mqtt.Message {
	m := mqtt.Message{Topic: topic, Payload: payload, Correlation: correlation, ContentType: wire.ContentType}
	if a.opts.Variants.NoContentType {
		m.ContentType = ""
	}
	for _, p := range properties {
		m.User = append(m.User, mqtt.Property{Name: p.Name, Value: string(p.Value)})
	}
	return m
}

// attachedClient finds out whose request it is: a broker does not tell. The
// sender says so in `__srcId`, and in its response topic, where the id stands
// plain or in hexadecimal (protocol.md 1.1).
func attachedClient(m mqtt.Message) string {
	if id, ok := m.Property(wire.PropSource); ok && id != "" {
		return id
	}
	rest, ok := strings.CutPrefix(m.ResponseTopic, "clients/")
	if !ok {
		return m.ResponseTopic
	}
	level, rest, _ := strings.Cut(rest, "/")
	if strings.HasPrefix(rest, "statestore/v1/") && strings.HasSuffix(rest, "/response") {
		if id, err := hex.DecodeString(level); err == nil {
			return string(id)
		}
	}
	return level
}
