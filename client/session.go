package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
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
	wg    sync.WaitGroup // goroutines and calls that Close waits for; nothing is added once life has ended

	brief bool // closed after the first answer, as by Once

	dialing chan struct{}   // a lock, held while connecting; capacity 1
	slow    bool            // wait for CONNACK before SUBSCRIBE; guarded by dialing
	life    context.Context // ends with Close
	end     context.CancelFunc

	mu          sync.Mutex
	conn        *mqtt.Conn
	refused     error               // why the session must not connect again
	loose       time.Time           // time of the last abandoned CONNECT, which may still take us over
	tried       []byte              // the password or token that the broker last granted or refused
	outstanding map[string]*pending // by correlation data
	feed        uint64              // counts the connections
	notify      bool                // the next connection subscribes to notifications
	notified    bool                // conn has subscribed to notifications
	routes      map[string][]*Watch // by key; slices are replaced, never changed
	watcher     *watcher            // nil until the first watch
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
		routes:      make(map[string][]*Watch),
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// ClientID returns the client id of the session.
func (s *Session) ClientID() string { return s.o.ClientID }

// Err returns nil while the session has a connection, and otherwise why it has none: how
// the last one was lost, or why the broker refused another. The next request connects
// again unless [IsPermanent] of the error is true.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused != nil {
		return s.refused
	}
	return s.conn.Err()
}

// Down returns a channel that is closed when the present connection ends.
func (s *Session) Down() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.Done()
}

// Close disconnects and waits for the goroutines of the session. Outstanding requests end
// as lost. Requests that wait for a connection, and all later ones, end with [ErrClosed].
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
		return nil // outstanding requests have returned it
	}
	return err
}

// connection returns the connection, a new one if the last was lost.
func (s *Session) connection(ctx context.Context) (*mqtt.Conn, error) {
	return s.connect(ctx, nil)
}

// connect is like connection, and sends f with a new one unless f is nil.
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
	if s.notify {
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
		if isFatal(err) && !s.isOwnGhost(err) {
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

// subscribed returns a connection that has subscribed to notifications, and its number.
func (s *Session) subscribed(ctx context.Context) (*mqtt.Conn, uint64, error) {
	conn, err := s.connection(ctx)
	if err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	has := s.notified && s.conn == conn
	s.mu.Unlock()
	if !has {
		if err := conn.Subscribe(ctx, wire.NotifyFilter(s.o.ClientID)); err != nil {
			return nil, 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != conn {
		return nil, 0, conn.Err() // and another request has connected again
	}
	s.notified = true
	return conn, s.feed, nil
}

// adopt makes conn the connection of the session; false if the session was closed
// meanwhile. notified says whether conn has the notify filter, secret is the password or
// token it logged in with.
func (s *Session) adopt(conn *mqtt.Conn, notified bool, secret []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	if s.conn != nil && isTakenOver(s.conn.Err()) {
		s.loose = time.Time{} // the broker has read it
	}
	s.conn, s.refused, s.notified = conn, nil, notified
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

// hold makes Close wait for a call of s.wg.Done; false if the session is closed.
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

// isFatal reports whether connecting again would be wrong: the broker's reason holds for
// the next connection too, or another connection would make things worse, as after a
// take-over (protocol.md 8.2).
func isFatal(err error) bool {
	refused, ok := errors.AsType[*mqtt.ReasonError](err)
	if !ok {
		return false
	}
	if _, again := errors.AsType[*mqtt.ReauthError](err); again {
		return false // a new connection logs in with a new token
	}
	switch refused.Code {
	case 0x81, 0x82, 0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C, 0x8E, 0x8F, 0x90, 0x94, 0x95, 0x99, 0x9A, 0x9B, 0x9D, 0x9E, 0xA1, 0xA2:
		return true
	case 0x83, 0x9C:
		return refused.Packet == "CONNACK"
	}
	return false
}

// isHopeless reports whether the session must not connect again after err.
func (s *Session) isHopeless(err error) bool {
	return isFatal(err) && !s.renewed(err) && !s.isOwnGhost(err)
}

// isFinal reports whether trying again would only repeat the error.
func (s *Session) isFinal(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*AnswerError](err); ok {
		return true
	}
	return isStoreError(err) || s.isHopeless(err)
}

// looseFor is the time for which an abandoned CONNECT may still reach the broker.
const looseFor = 30 * time.Second

// noteLoose remembers an attempt to connect that was abandoned before the broker
// answered: its CONNECT may reach the broker after the next attempt's CONNECT, and take
// over that connection.
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

// isOwnGhost reports whether an abandoned CONNECT of this session may have taken over its
// own connection.
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

// pending is a request in flight.
type pending struct {
	s       *Session
	command Command
	conn    *mqtt.Conn // guarded by Session.mu; nil until it is the session's
	id      string     // correlation data
	ts      Version
	sent    time.Time
	expiry  time.Duration
	expires time.Time    // guarded by Session.mu
	message mqtt.Message // what to send again while no store is listening
	copies  int          // sent and not acknowledged; guarded by Session.mu
	taken   bool         // the broker has passed the request on; guarded by Session.mu
	nobody  time.Time    // of the first PUBACK that nobody subscribes to requests; zero = none came; guarded by Session.mu

	// The goroutine that removes the request from Session.outstanding sets answer or err
	// and closes done.
	done   chan struct{}
	rtt    time.Duration
	answer mqtt.Message
	err    error
	ended  func() // called after that; guarded by Session.mu
}

// Do sends a request and waits for its reply until ctx ends or, without a deadline, for
// Options.Timeout. The errors:
//   - nothing was sent: *[InvalidError], *[TooLargeError], *[DialError], [ErrClosed], or
//     the end of ctx
//   - the broker refused the request: *[ReasonError]
//   - nobody got the request: *[NoStoreError], after a second in which it was sent again
//   - the store, or what speaks for it, answered: *[StoreError], *[StatusError], or an
//     *[AnswerError] if the answer to a read makes no sense
//   - no answer came to a write, or none that makes sense, so its outcome is unknown:
//     *[LostAnswerError]
//   - no answer came to another request: *[LostError], [ErrClosed], or the end of ctx
func (s *Session) Do(ctx context.Context, c Command) (Result, error) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	p, err := s.send(ctx, c)
	if err != nil {
		return nil, err
	}
	return p.wait(ctx)
}

// limit gives ctx a deadline if it has none.
func (s *Session) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.o.Timeout)
}

// send sends a request; ctx has a deadline.
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

// sendOn sends a request on a given connection.
func (s *Session) sendOn(ctx context.Context, conn *mqtt.Conn, c Command) (*pending, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p, err := s.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	p.on(conn)
	if err = conn.Publish(ctx, p.message, p.acked); err != nil {
		s.take(p.id)
		return nil, err
	}
	s.expireAfter(p, p.expiry)
	return p, nil
}

// prepare makes a request and adds it to Session.outstanding; ctx has a deadline.
func (s *Session) prepare(ctx context.Context, c Command) (*pending, error) {
	ts := c.timestamp
	if ts.IsZero() {
		var err error
		if ts, err = s.clock.Tick(); err != nil {
			return nil, fmt.Errorf("the local clock: %w", err)
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
		copies:  1,
		done:    make(chan struct{}),
	}
	p.message = mqtt.Message{
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
	return p, nil
}

// expiry returns the Message Expiry Interval of a request: the time to the deadline of
// ctx, rounded up to whole seconds, at least one.
func expiry(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	return max((time.Until(deadline)+time.Second-1)/time.Second*time.Second, time.Second)
}

// on sets the connection of the request.
func (p *pending) on(conn *mqtt.Conn) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.conn = conn
}

// While no store is listening, a request is sent every storeRetry, because the store may be
// about to start, until storePatience has passed since the broker first said so.
const (
	storePatience = time.Second
	storeRetry    = 200 * time.Millisecond
)

// acked takes the outcome of the PUBLISH.
func (p *pending) acked(err error) {
	switch {
	case errors.Is(err, mqtt.ErrNoSubscribers):
		p.unheard()
		return
	case err != nil:
		p.s.finish(p.id, mqtt.Message{}, err)
		return
	}
	p.s.expireAfter(p, p.expiry)
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.copies, p.taken = p.copies-1, true
}

// unheard takes a PUBACK that nobody subscribes to requests: the broker has discarded this
// copy of the request. It sends another one soon, unless the patience is over.
func (p *pending) unheard() {
	p.s.mu.Lock()
	p.copies--
	if p.nobody.IsZero() {
		p.nobody = time.Now()
	}
	left := time.Until(p.nobody.Add(storePatience))
	another := p.taken || p.copies > 0
	p.s.mu.Unlock()
	switch {
	case another: // decides
	case left <= 0:
		p.s.finish(p.id, mqtt.Message{}, &NoStoreError{})
	default:
		time.AfterFunc(min(storeRetry, left), p.sendAgain)
	}
}

// sendAgain sends another copy of a request that nobody has got.
func (p *pending) sendAgain() {
	if !p.s.hold() {
		return
	}
	defer p.s.wg.Done()
	p.s.mu.Lock()
	conn, waiting := p.conn, p.s.outstanding[p.id] == p
	p.s.mu.Unlock()
	switch {
	case !waiting:
		return
	case conn == nil: // it was sent with SUBSCRIBE, which is not answered yet
		time.AfterFunc(storeRetry, p.sendAgain)
		return
	}
	ctx, cancel := context.WithTimeout(p.s.life, storePatience)
	defer cancel()
	if err := p.publishAgain(ctx, conn); err != nil {
		p.s.finish(p.id, mqtt.Message{}, err)
	}
}

// publishAgain publishes another copy of a request. The error means that it was not sent.
func (p *pending) publishAgain(ctx context.Context, conn *mqtt.Conn) error {
	m := p.message
	m.Expiry = max(wholeSeconds(time.Until(p.sent.Add(p.expiry))), time.Second)
	p.s.expireAfter(p, m.Expiry)
	p.addCopies(1)
	err := conn.Publish(ctx, m, p.acked)
	if err != nil {
		p.addCopies(-1)
	}
	return err
}

func (p *pending) addCopies(n int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.copies += n
}

// isUnheard reports whether nobody has got the request: the broker has discarded every copy.
func (p *pending) isUnheard() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return !p.nobody.IsZero() && !p.taken && p.copies == 0
}

// expireAfter counts a request's expiry from now. The broker starts counting when the
// request arrives, which is after any wait for its Receive Maximum and before its PUBACK.
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

// deliver takes a message from the connection with a number. A reply that nobody waits for
// (late or duplicate) is dropped; the connection acknowledges it.
func (s *Session) deliver(feed uint64, m mqtt.Message) {
	if m.Topic == s.o.ResponseTopic {
		s.finish(string(m.Correlation), m, nil)
		return
	}
	// Notifications may come without a subscription (protocol.md 1.2).
	if id, key, ok := wire.ParseNotifyTopic(m.Topic); ok && id == s.o.ClientID {
		s.notice(feed, key, m)
	}
}

// take removes a request from Session.outstanding; nil if it is not there.
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

// whenDone calls f once done is closed, on the goroutine that closes it or on this one. f
// must not block.
func (p *pending) whenDone(f func()) {
	p.s.mu.Lock()
	_, open := p.s.outstanding[p.id]
	if open {
		p.ended = f
	}
	p.s.mu.Unlock()
	if !open {
		<-p.done // about to be closed
		f()
	}
}

// lose ends the requests of a lost connection.
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

// wait returns the result, or what became of the request when ctx ends first.
func (p *pending) wait(ctx context.Context) (Result, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.s.finish(p.id, mqtt.Message{}, context.Cause(ctx))
		<-p.done // a reply may have come first
	}
	if p.err != nil {
		return nil, p.unanswered()
	}
	r, err := newResult(p.command, p.answer, p.rtt, time.Now())
	if err != nil {
		return nil, p.judgeAnswer(err)
	}
	if version := r.Info().Version; !version.IsZero() {
		// A version too far ahead leaves the clock alone; the result warns of it.
		_ = p.s.clock.Observe(version)
	}
	return r, nil
}

// then calls f with the outcome of a request, at the latest when ctx ends. It calls f on
// the goroutine that knows it first, so f must not block.
func (p *pending) then(ctx context.Context, f func(Result, error)) {
	stop := context.AfterFunc(ctx, func() { p.s.finish(p.id, mqtt.Message{}, context.Cause(ctx)) })
	p.whenDone(func() {
		stop()
		f(p.wait(ctx))
	})
}

// unanswered returns the error of a request without an answer: a LostAnswerError for a
// write that may have been applied.
func (p *pending) unanswered() error {
	if refused, ok := errors.AsType[*mqtt.ReasonError](p.err); ok && refused.Packet == "PUBACK" {
		return p.err
	}
	switch {
	case p.isUnheard() && errors.Is(p.err, context.DeadlineExceeded):
		return &NoStoreError{}
	case p.isUnheard() || p.command.effect == effectNone:
		return p.err
	}
	return p.lost(p.err)
}
