package emulator

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wait"
	"github.com/sscli/sscli/internal/wire"
)

// An Attached is a state store that runs as an ordinary MQTT 5 client of another broker, for
// development: it subscribes to the request topic and publishes replies and notifications. The
// package comment lists its limitations.
type Attached struct {
	opts   store.Options
	more   AttachOptions
	cancel context.CancelCauseFunc // ends run; called with the error of a failed commit, or with nil by Close
	wg     sync.WaitGroup
	ended  chan struct{} // closed when run ends

	lookout   *asker // see look; nil = not connected
	ready     chan struct{}
	readyOnce sync.Once
	met       chan identity // stores that looked for other stores; capacity 1

	mu      sync.Mutex // guards the fields below, so that messages are sent in the order of changes
	engine  *store.Store
	journal *journal   // nil = the store is in memory only
	port    *redisPort // nil = no Redis clients
	queue   []mqtt.Message
	queued  int           // estimated memory of queue, in bytes
	watched int           // estimated memory of the registrations of KEYNOTIFY, in bytes
	wake    chan struct{} // signals a message in the queue or a change of expiries; capacity 1
	err     error         // why run ended

	identity  identity
	proven    time.Time       // when the last request was sent that no other store answered; zero = not on this connection
	held      []held          // requests that wait until proven is recent
	heldBytes int             // estimated memory of held, in bytes
	known     map[string]bool // other stores that were reported, by id

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

	// attachedRetry is the shortest pause before reconnecting; the longest is twice as long. It is short because brokers
	// on a developer's machine restart quickly.
	attachedRetry = 200 * time.Millisecond
)

var errQueueFull = errors.New("the broker accepts replies and notifications more slowly than requests arrive")

// Attach connects to the broker in o and returns a store that is served there until Close is called,
// another store serves on the broker (see [OtherStoreError]), or a permanent error occurs, such as a
// refused login. After any other error, the store reconnects and keeps its contents.
//
// Attach returns when the store answers, or immediately with AttachOptions.Standby: see [Attached.Ready].
// ctx limits only that wait. Two stores with the same client id never both have requests, because the
// broker disconnects the older one; stores that start later give way to the one that answers.
func Attach(ctx context.Context, o AttachOptions) (*Attached, error) {
	a := &Attached{more: o.withDefaults(), wake: make(chan struct{}, 1), ended: make(chan struct{}), ready: make(chan struct{}), met: make(chan identity, 1), known: make(map[string]bool)}
	a.identity = identity{id: rand.Text(), name: a.more.Name}
	opts := store.Options{
		Now: func() time.Time { return time.Now().Add(o.Skew) }, MaxKeys: o.MaxKeys, ScanPage: o.ScanPage, Variants: o.Variants,
		Reserve: a.reserve, Changed: func(c *store.Change) { a.port.changed(c) },
	}
	if o.Policy != nil {
		opts.Authorize = o.Policy.engine().AllowsKey
	}
	if report := copying(o.Observe); report != nil {
		opts.Observe = func(e observe.Event) {
			if !a.port.collects(e) {
				report(e)
			}
		}
	}
	a.opts = opts
	running, cancel := context.WithCancelCause(context.Background())
	a.cancel = cancel
	var err error
	a.engine, a.journal, err = openStore(opts, o.Data, &a.mu, cancel)
	if err != nil {
		return nil, err
	}
	k, err := a.join(ctx)
	if err != nil && (a.more.Standby == 0 || !isOther(err)) {
		a.endLook()
		return nil, errors.Join(err, a.journal.close())
	}
	a.wg.Go(func() { a.run(running, k, err) })
	if a.more.Standby > 0 {
		return a, nil
	}
	select {
	case <-a.ready:
		return a, nil
	case <-a.ended:
		return nil, a.Close()
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), a.Close())
	}
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

// notified handles the outcome of a notification. If nobody subscribed to its topic, the client has disconnected,
// and its registration ends (protocol.md 2.5).
func (a *Attached) notified(topic string, err error) {
	if err != mqtt.ErrNoSubscribers {
		a.published(err)
		return
	}
	if id, key, ok := wire.ParseNotifyTopic(topic); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.engine.Unwatch(id, key)
	}
}

// Close stops serving Redis clients, disconnects from the broker, and closes the data file.
func (a *Attached) Close() error {
	if a.cancel == nil {
		return ErrClosed // a zero Attached
	}
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

// join connects to the broker, unless another store answers there. It tries again if the connection is lost at once,
// since that may be due to a store with the same client id that started at the same time.
func (a *Attached) join(ctx context.Context) (k *asker, err error) {
	for range 3 {
		slow := time.AfterFunc(time.Second, func() {
			a.more.Log.Info("a client is subscribed to requests: waiting for its answer, since it may be a state store", "for", maxUnproven)
		})
		err = a.look(ctx)
		slow.Stop()
		if err != nil {
			return nil, err
		}
		a.endLook()
		a.mu.Lock()
		a.identity.since, a.proven = time.Now(), time.Time{}
		a.held, a.heldBytes = nil, 0
		a.mu.Unlock()
		if k, err = a.newAsker(ctx, a.more.ClientID, true); err == nil || a.isFinal(err) || !wait.For(ctx, retryPause()) {
			break
		}
	}
	return k, err
}

// retryPause returns how long to wait before connecting again. It is random, so that two stores do not keep step.
func retryPause() time.Duration { return attachedRetry + mathrand.N(attachedRetry) }

// run serves the store, and reconnects when a connection ends, until ctx is done or a permanent
// error occurs. k is nil if another store answers, as err says.
func (a *Attached) run(ctx context.Context, k *asker, err error) {
	defer close(a.ended)
	defer a.endLook()
	for {
		if err == nil {
			err = a.serve(ctx, k)
			_ = k.conn.Close() // err already says why the connection ended
		}
		if k, err = a.rejoin(ctx, err); err != nil {
			a.mu.Lock()
			a.err = err
			a.mu.Unlock()
			return
		}
	}
}

// rejoin connects to the broker again after err. It waits while another store answers if AttachOptions.Standby is set.
func (a *Attached) rejoin(ctx context.Context, err error) (*asker, error) {
	if code, _ := mqtt.ReasonCode(err); code == mqtt.ReasonTakenOver {
		if other := a.look(ctx); isOther(other) {
			err = other
		}
	}
	var lost, quiet time.Time // since when there is no connection, and no other store
	back := func() {
		if !lost.IsZero() {
			a.more.Log.Info("connected to the broker again", "after", time.Since(lost).Round(time.Millisecond))
			lost = time.Time{}
		}
	}
	for standing := false; ; {
		pause, other := retryPause(), isOther(err)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case other && a.more.Standby == 0, a.isFinal(err):
			return nil, err
		case err == nil, other:
			back()
		case lost.IsZero():
			a.more.Log.Warn("the connection to the broker was lost, trying again", "error", err)
			lost = time.Now()
		}
		if other {
			if !standing {
				a.more.Log.Warn("standing by", "error", err)
			}
			standing, quiet, pause = true, time.Time{}, probeEvery
		}
		if !wait.For(ctx, pause) {
			continue
		}
		if standing {
			if err = a.look(ctx); err != nil {
				quiet = time.Time{}
				continue
			}
			if quiet.IsZero() {
				quiet = time.Now()
			}
			if time.Since(quiet) < a.more.Standby {
				continue
			}
		}
		var k *asker
		if k, err = a.join(ctx); err != nil {
			continue
		}
		back()
		if standing {
			a.more.Log.Warn("no other state store has answered, this one serves: its data may be older", "for", a.more.Standby)
		}
		return k, nil
	}
}

// isFinal reports whether an error is permanent: a new connection would end with the same error.
func (a *Attached) isFinal(err error) bool {
	if errors.Is(err, errQueueFull) {
		return true
	}
	if _, ok := errors.AsType[*SelfTestError](err); ok {
		return !a.isReady()
	}
	code, ok := mqtt.ReasonCode(err)
	return ok && (code == mqtt.ReasonTakenOver && a.more.Standby == 0 || code == mqtt.ReasonBadLogin || code == mqtt.ReasonNotAuthorized || code == mqtt.ReasonBanned)
}

// serve publishes queued messages and removes expired keys until the connection ends, ctx is done or the
// queue is too long. It returns the reason as an error.
func (a *Attached) serve(ctx context.Context, k *asker) error {
	conn := k.conn
	guarding, stop := context.WithCancel(ctx)
	guard := make(chan error, 1)
	go func() { guard <- a.guard(guarding, k) }()
	found := guard
	defer func() {
		if stop(); found != nil {
			<-guard
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-a.wake:
		case <-timer.C:
		case err := <-found:
			found = nil
			return err
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
			acked := a.published
			if strings.HasPrefix(m.Topic, wire.NotifyTopics) {
				acked = func(err error) { a.notified(m.Topic, err) }
			}
			err := conn.Publish(ctx, m, acked)
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

// receive answers one request, or keeps it until it is known that no other store answers it. It ignores a
// request with a QoS other than 1, without a response topic or correlation data, with a forbidden response
// topic, or with two different client ids.
func (a *Attached) receive(k *asker, m mqtt.Message) {
	if m.Topic != wire.RequestTopic {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, probe := m.Property(propProbe); !probe && !a.isProven() {
		if size := memoryOf(&m); len(a.held) < maxWaiting && a.heldBytes+size <= maxWaitingBytes {
			a.held, a.heldBytes = append(a.held, held{m, time.Now()}), a.heldBytes+size
		}
		return
	}
	a.answer(k, m)
}

// answer answers one request. It requires a.mu.
func (a *Attached) answer(k *asker, m mqtt.Message) {
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
	if why != "" {
		if a.opts.Observe != nil {
			a.opts.Observe(ignored(*r, a.opts.Now(), why))
		}
		return
	}
	full := len(a.queue) > maxWaiting || a.queued > maxWaitingBytes
	status := []store.Property{{Name: wire.PropStatus, Value: []byte(wire.StatusOK)}}
	if who, probe := m.Property(propProbe); probe {
		if !k.reached(m.Correlation) {
			select {
			case a.met <- parseIdentity(who):
			default:
			}
		}
		if !full {
			status = append(status, store.Property{Name: propProbe, Value: []byte(a.identity.String())})
			a.enqueue(a.message(m.ResponseTopic, m.Correlation, wire.AppendValue(nil, wire.Value{Kind: wire.Null}), status))
		}
		return
	}
	a.journal.admit()
	if full {
		a.enqueue(a.message(m.ResponseTopic, m.Correlation, wire.AppendError(nil, wire.TextQuota), status))
		return
	}
	response := a.engine.Do(r, nil)
	a.notify()
	a.enqueue(a.message(m.ResponseTopic, m.Correlation, store.Whole(response.Payload, response.Value), response.Properties))
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
