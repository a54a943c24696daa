package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// A Session carries requests to the store. It may be used by several goroutines.
type Session struct {
	o     Options
	clock *wire.Clock
	wg    sync.WaitGroup // what Close waits for; nothing is added once life has ended

	brief bool // it ends with its first answer

	dialing chan struct{}   // held by whoever connects; capacity 1
	slow    bool            // the broker wants nothing but CONNECT first; guarded by dialing
	life    context.Context // ends with Close
	end     context.CancelFunc

	mu          sync.Mutex
	conn        *mqtt.Conn
	refused     error               // why connecting again would be wrong
	loose       time.Time           // when a CONNECT was given up that the broker may read yet
	tried       []byte              // the password or token that the broker judged last
	outstanding map[string]*pending // by correlation data
	watching    watching
}

// Dial connects to the broker and subscribes to the response topic, within ctx
// or, when ctx has no deadline, within Options.Timeout. The error is an
// *[InvalidError] or a *[DialError].
func Dial(ctx context.Context, o Options) (*Session, error) {
	s, err := newSession(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	if _, err := s.connection(ctx); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// newSession returns a session without a connection.
func newSession(o Options) (*Session, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Session{
		o:           o,
		clock:       wire.NewClock(uuid.NewString(), time.Now),
		dialing:     make(chan struct{}, 1),
		outstanding: make(map[string]*pending),
		watching:    newWatching(),
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// ClientID is the client id that the session has.
func (s *Session) ClientID() string { return s.o.ClientID }

// Err returns why the session has no connection at the moment: how it was lost, or
// why the broker refuses another; nil while it has one. The next request connects
// again, unless the reason is fatal ([IsPermanent]).
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused != nil {
		return s.refused
	}
	return s.conn.Err()
}

// Down is closed when the connection that the session has at the moment is over.
func (s *Session) Down() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.Done()
}

// Close disconnects. Requests that are outstanding end as lost, and those that
// wait for a connection or come later with [ErrClosed].
func (s *Session) Close() error {
	s.mu.Lock()
	s.end()
	conn := s.conn
	s.mu.Unlock()
	var err error
	if conn != nil {
		err = conn.Close()
	}
	s.wg.Wait()
	if _, lost := errors.AsType[*mqtt.LostError](err); lost {
		return nil // whoever had a request under way was told
	}
	return err
}

// connection returns the session's connection, a new one if the last was lost.
func (s *Session) connection(ctx context.Context) (*mqtt.Conn, error) {
	return s.connect(ctx, nil)
}

// connect is connection. f, which may be nil, goes with a new one.
func (s *Session) connect(ctx context.Context, f *flight) (*mqtt.Conn, error) {
	select {
	case s.dialing <- struct{}{}:
	default:
		select {
		case s.dialing <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	defer func() { <-s.dialing }()
	s.mu.Lock()
	conn, refused := s.conn, s.refused
	filters := []string{s.o.ResponseTopic}
	if len(s.watching.all) > 0 {
		filters = append(filters, wire.NotifyFilter(s.o.ClientID))
	}
	s.mu.Unlock()
	switch {
	case s.life.Err() != nil:
		return nil, mqtt.ErrClosed
	case refused != nil && !s.renewed(refused):
		return nil, refused
	case conn != nil && (conn.Err() == nil || s.isHopeless(conn.Err())):
		return conn, conn.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(mqtt.ErrClosed) })()
	conn, secret, err := s.dial(ctx, filters, f)
	if isUnwelcome(err) && !s.o.NoPipelining && !s.slow && ctx.Err() == nil {
		conn, secret, err = s.dialSlowly(ctx, filters, f)
	}
	if s.renewed(err) {
		conn, secret, err = s.dial(ctx, filters, f)
	}
	if err != nil {
		if isFatal(err) {
			s.mu.Lock()
			s.refused = err
			s.mu.Unlock()
		}
		return nil, err
	}
	if f != nil {
		f.on(conn)
	}
	if !s.adopt(conn, len(filters) > 1, secret) {
		return nil, errors.Join(mqtt.ErrClosed, conn.Close())
	}
	return conn, nil
}

// adopt makes a connection the session's, unless it was closed meanwhile. notified
// tells whether it has the notify filter, secret is what it was logged in with.
func (s *Session) adopt(conn *mqtt.Conn, notified bool, secret []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	if s.conn != nil && isTakenOver(s.conn.Err()) {
		s.loose = time.Time{} // it has been read
	}
	s.conn, s.refused = conn, nil
	s.watching.connected(notified)
	if s.o.TokenFile != "" {
		s.wg.Go(func() { s.keepToken(conn, secret) })
	}
	s.wg.Go(func() {
		<-conn.Done()
		s.lose(conn)
		_ = conn.Close() // waits for its goroutines; how it ended is known
	})
	return true
}

// hold makes Close wait for a call of s.wg.Done, unless it was called already.
func (s *Session) hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	s.wg.Add(1)
	return true
}

// IsPermanent reports whether a session whose connection ended with err stays without
// one: the broker refused it for a reason that holds for the next connection too, or
// another client with the same client id took it over (protocol.md 8.2).
func IsPermanent(err error) bool { return isFatal(err) }

// isFatal tells whether connecting again would be wrong: the broker's reason
// holds for the next connection too, or, as after a take-over, is made worse by
// it (protocol.md 8.2).
func isFatal(err error) bool {
	refused, ok := errors.AsType[*mqtt.ReasonError](err)
	if !ok {
		return false
	}
	if _, again := errors.AsType[*mqtt.ReauthError](err); again {
		return false // a new connection has a new token to show
	}
	switch refused.Code {
	case 0x81, 0x82, 0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C, 0x8E, 0x8F, 0x90, 0x94, 0x95, 0x99, 0x9A, 0x9B, 0x9D, 0x9E, 0xA1, 0xA2:
		return true
	case 0x83, 0x9C:
		return refused.Packet == "CONNACK"
	}
	return false
}

// isHopeless tells whether a session whose connection ended so must not connect again.
func (s *Session) isHopeless(err error) bool {
	return isFatal(err) && !s.renewed(err) && !s.isOwnGhost(err)
}

// looseFor is how long a CONNECT that was given up may be under way.
const looseFor = 30 * time.Second

// noteLoose remembers an attempt to connect that ended without the broker's word: its
// CONNECT may reach the broker behind that of the next attempt, which it then ends.
func (s *Session) noteLoose(err error) {
	dial, ok := errors.AsType[*mqtt.DialError](err)
	if !ok || dial.Stage != mqtt.StageConnect && dial.Stage != mqtt.StageSubscribe {
		return
	}
	if _, judged := errors.AsType[*mqtt.ReasonError](err); judged {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loose = time.Now()
}

// isOwnGhost tells whether it was perhaps this session that took its own connection
// over.
func (s *Session) isOwnGhost(err error) bool {
	if !isTakenOver(err) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.loose.IsZero() && time.Since(s.loose) < looseFor
}

func isTakenOver(err error) bool {
	e, ok := errors.AsType[*mqtt.ReasonError](err)
	return ok && e.Code == mqtt.ReasonTakenOver
}

// pending is a request under way.
type pending struct {
	s       *Session
	command Command
	conn    *mqtt.Conn // guarded by Session.mu; nil until it is the session's
	id      string     // correlation data
	ts      Version
	sent    time.Time
	expiry  time.Duration
	expires time.Time     // guarded by Session.mu
	nobody  chan struct{} // closed when a PUBACK said that nobody takes it
	alone   sync.Once     // closes nobody

	// Whoever takes the request out of Session.outstanding sets answer or err
	// and closes done.
	done   chan struct{}
	rtt    time.Duration
	answer mqtt.Message
	err    error
	ended  func() // called behind that; guarded by Session.mu
}

// Do sends a request and waits for its reply, at most until ctx ends or, when
// ctx has no deadline, Options.Timeout has passed. Errors a caller may test for:
// *[InvalidError] and *[TooLargeError] (nothing was sent), *[DialError],
// *[ReasonError] (the broker refused the request, or ended the connection),
// *[LostError], [ErrClosed], the end of ctx, *[StoreError],
// *[StatusError], *[AnswerError], and for a write *[LostAnswerError] in place of
// every end of the waiting that left its outcome open.
func (s *Session) Do(ctx context.Context, c Command) (Result, error) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	p, err := s.send(ctx, c)
	if err != nil {
		return nil, err
	}
	return p.wait(ctx)
}

// limit gives a request a deadline.
func (s *Session) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.o.Timeout)
}

// send starts a request; ctx has a deadline.
func (s *Session) send(ctx context.Context, c Command) (*pending, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	conn, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	return s.sendOn(ctx, conn, c)
}

// sendOn starts a request on a certain connection.
func (s *Session) sendOn(ctx context.Context, conn *mqtt.Conn, c Command) (*pending, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p, m, err := s.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	p.on(conn)
	if err = conn.Publish(ctx, m, p.acked); err != nil {
		s.take(p.id)
		return nil, err
	}
	s.expireAfter(p, p.expiry)
	return p, nil
}

// prepare makes a request and adds it to those outstanding; ctx has a deadline.
func (s *Session) prepare(ctx context.Context, c Command) (*pending, mqtt.Message, error) {
	ts := c.timestamp
	if ts.IsZero() {
		var err error
		if ts, err = s.clock.Tick(); err != nil {
			return nil, mqtt.Message{}, fmt.Errorf("the local clock: %w", err)
		}
	}
	var id [16]byte
	rand.Read(id[:]) // never returns an error
	p := &pending{
		s:       s,
		command: c,
		id:      string(id[:]),
		ts:      ts,
		sent:    time.Now(),
		expiry:  expiry(ctx),
		nobody:  make(chan struct{}),
		done:    make(chan struct{}),
	}
	m := mqtt.Message{
		Topic:         wire.RequestTopic,
		Payload:       wire.AppendRequest(nil, c.words...),
		ResponseTopic: s.o.ResponseTopic,
		Correlation:   id[:],
		ContentType:   wire.ContentType,
		Expiry:        p.expiry,
		User:          s.properties(c, ts),
	}
	s.mu.Lock()
	s.outstanding[p.id] = p
	s.mu.Unlock()
	return p, m, nil
}

// expiry is how long a request may wait for its time: whole seconds that last to the
// deadline of ctx, at least one.
func expiry(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	return max((time.Until(deadline)+time.Second-1)/time.Second*time.Second, time.Second)
}

// on notes the connection that the request is on.
func (p *pending) on(conn *mqtt.Conn) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.conn = conn
}

// acked takes the outcome of the PUBLISH.
func (p *pending) acked(err error) {
	switch {
	case errors.Is(err, mqtt.ErrNoSubscribers):
		p.alone.Do(func() { close(p.nobody) })
	case err != nil:
		p.s.finish(p.id, mqtt.Message{}, err)
		return
	}
	p.s.expireAfter(p, p.expiry)
}

// expireAfter counts a request's expiry from now, for it began to run before.
// The broker counts from the arrival, which is after any waiting for its Receive
// Maximum and before its PUBACK.
func (s *Session) expireAfter(p *pending, expiry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.expires = time.Now().Add(expiry)
}

func (s *Session) properties(c Command, ts Version) []mqtt.Property {
	props := append(make([]mqtt.Property, 0, 7),
		mqtt.Property{Name: wire.PropTimestamp, Value: ts.String()},
		mqtt.Property{Name: wire.PropSource, Value: s.o.ClientID},
		mqtt.Property{Name: wire.PropProtocol, Value: wire.ProtocolVersion},
		mqtt.Property{Name: wire.PropPartition, Value: s.o.ClientID})
	if c.fence != "" {
		props = append(props, mqtt.Property{Name: wire.PropFence, Value: c.fence})
	}
	if c.persist {
		props = append(props, mqtt.Property{Name: wire.PropPersist, Value: "true"})
	}
	if s.o.HighPriority {
		props = append(props, mqtt.Property{Name: wire.PropHighPriority})
	}
	return props
}

// deliver takes a message from the connection. What nobody waits for (a late
// reply, a duplicate) was acknowledged and is dropped.
func (s *Session) deliver(m mqtt.Message) {
	if m.Topic == s.o.ResponseTopic {
		s.finish(string(m.Correlation), m, nil)
		return
	}
	// Notifications may come without a subscription (protocol.md 1.2).
	if id, key, ok := wire.ParseNotifyTopic(m.Topic); ok && id == s.o.ClientID {
		s.notified(key, m)
	}
}

// take removes a request from those outstanding; nil if it is not among them.
func (s *Session) take(id string) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.outstanding[id]
	delete(s.outstanding, id)
	return p
}

func (s *Session) finish(id string, m mqtt.Message, err error) {
	if p := s.take(id); p != nil {
		p.rtt = time.Since(p.sent)
		p.answer, p.err = m, err
		close(p.done)
		if p.ended != nil {
			p.ended()
		}
	}
}

// whenDone has f called once done is closed, on the goroutine that closed it or on
// this one. It must not block.
func (p *pending) whenDone(f func()) {
	p.s.mu.Lock()
	_, open := p.s.outstanding[p.id]
	if open {
		p.ended = f
	}
	p.s.mu.Unlock()
	if !open {
		<-p.done // it is about to be
		f()
	}
}

// lose ends the requests whose connection is gone.
func (s *Session) lose(conn *mqtt.Conn) {
	s.mu.Lock()
	var gone []string
	for id, p := range s.outstanding {
		if p.conn == conn {
			gone = append(gone, id)
		}
	}
	s.mu.Unlock()
	for _, id := range gone {
		s.finish(id, mqtt.Message{}, conn.Err())
	}
}

// wait returns the reply, or what became of the request when ctx ends first.
func (p *pending) wait(ctx context.Context) (Result, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.s.finish(p.id, mqtt.Message{}, context.Cause(ctx))
		<-p.done // a reply may have been faster
	}
	if p.err != nil {
		return nil, p.unanswered()
	}
	r, err := newResult(p.command, p.answer, p.rtt, time.Now())
	if err != nil {
		return nil, err
	}
	if version := r.Info().Version; !version.IsZero() {
		// A version too far ahead leaves the clock alone; the result warns of it.
		_ = p.s.clock.Observe(version)
	}
	return r, nil
}

// waitBriefly is wait for a request that will be repeated: when nobody takes it,
// it does not wait for long.
func (p *pending) waitBriefly(ctx context.Context) (Result, error) {
	const patience = 250 * time.Millisecond
	select {
	case <-p.nobody:
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return p.wait(limited)
	case <-p.done:
	case <-ctx.Done():
	}
	return p.wait(ctx)
}

// unanswered tells a write that was perhaps applied from a request that did
// nothing for certain.
func (p *pending) unanswered() error {
	if refused, ok := errors.AsType[*mqtt.ReasonError](p.err); ok && refused.Packet == "PUBACK" {
		return p.err
	}
	err := p.err
	select {
	case <-p.nobody:
		err = &NoStoreError{err}
	default:
	}
	if p.command.effect == effectNone {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return &LostAnswerError{Command: p.command, Timestamp: p.ts, Expires: p.expires, Err: err}
}
