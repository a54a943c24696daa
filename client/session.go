package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/slots"
	"github.com/sscli/sscli/client/wire"
)

// A Session carries requests to the store. It may be used by several goroutines.
type Session struct {
	o     Options
	clock *wire.Clock
	nonce [8]byte // random; in the correlation data of every request

	notifyTopic []byte         // how the topics of its notifications begin
	properties  []byte         // encoded: the user properties that every request has, but the timestamp
	wg          sync.WaitGroup // goroutines and calls that Close waits for; nothing is added once life has ended

	brief bool // closed after the first answer, as by Once

	dialing chan struct{}   // a lock, held while connecting; capacity 1
	slow    bool            // wait for CONNACK before SUBSCRIBE; guarded by dialing
	life    context.Context // ends with Close
	end     context.CancelFunc

	mu          sync.Mutex
	conn        *mqtt.Conn
	refused     error     // why the session must not connect again
	loose       time.Time // time of the last abandoned CONNECT, which may still take us over
	tried       []byte    // the password or token that the broker last granted or refused
	outstanding slots.Table[uint64, *pending]
	draft       draft            // of the next request
	alarm       *time.Timer      // for the requests with a deadline; nil until there is one
	alarmAt     time.Time        // not after any of their deadlines; zero = not set
	feed        uint64           // counts the connections
	notify      bool             // the next connection subscribes to notifications
	notified    bool             // conn has subscribed to notifications
	routes      map[string]route // by key
	watcher     *watcher         // nil until the first watch
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
		notifyTopic: []byte(wire.NotifyTopic(o.ClientID, "")),
		dialing:     make(chan struct{}, 1),
		routes:      make(map[string]route),
	}
	for _, p := range [...]mqtt.Property{{Name: wire.PropSource, Value: o.ClientID}, {Name: wire.PropProtocol, Value: wire.ProtocolVersion}, {Name: wire.PropPartition, Value: o.ClientID}} {
		s.properties = mqtt.AppendProperty(s.properties, p.Name, p.Value)
	}
	rand.Read(s.nonce[:]) // never returns an error
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
	if s.alarm != nil {
		s.alarm.Stop()
	}
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
	if conn := s.alive(); conn != nil {
		return conn, nil
	}
	return s.connect(ctx, nil)
}

// alive returns the connection if it is usable, else nil.
func (s *Session) alive() *mqtt.Conn {
	s.mu.Lock()
	conn, refused := s.conn, s.refused
	s.mu.Unlock()
	if conn == nil || refused != nil || s.life.Err() != nil {
		return nil
	}
	select {
	case <-conn.Done():
		return nil
	default:
		return conn
	}
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
	return s.holdLocked()
}

func (s *Session) holdLocked() bool {
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
	id      uint64 // its number
	ts      Version
	sent    time.Time
	expiry  time.Duration
	// deadline is when the session ends the wait for the answer; zero = it does not.
	deadline time.Time
	caller   *caller // of a Pipeline; nil = none

	correlation [16]byte // the number and Session.nonce

	// Guarded by Session.mu.
	conn    *mqtt.Conn // nil until it is the session's
	expires time.Time
	unsent  bool      // nobody but start ends it, because start will say why it was not sent
	copies  int       // sent and not acknowledged
	taken   bool      // the broker has passed the request on
	nobody  time.Time // of the first PUBACK that nobody subscribes to requests; zero = none came

	// The goroutine that removes the request from Session.outstanding sets result or err,
	// then closes done, or calls ended.
	result Result
	err    error
	done   chan struct{}
	ended  func()      // must not block; nil = done is closed
	waits  func()      // called before a wait for room; nil = none
	onAck  func(error) // acked

	// spare is set once the connection has no more use for the memory: every copy was
	// acknowledged.
	spare atomic.Bool
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

// sendOn sends a request on a given connection; ctx has a deadline. The caller waits for it.
func (s *Session) sendOn(ctx context.Context, conn *mqtt.Conn, c Command) (*pending, error) {
	p := &pending{s: s, command: c, expiry: expiry(ctx), done: make(chan struct{})}
	p.onAck = p.acked
	if err := p.start(ctx, conn); err != nil {
		return nil, err
	}
	conn.Flush()
	return p, nil
}

// begins makes p a request that the session ends after Options.Timeout. The caller sets
// ended.
func (p *pending) begins(s *Session, c *Command) {
	p.s, p.command, p.expiry = s, *c, roundUp(s.o.Timeout)
	if p.onAck == nil {
		p.onAck = p.acked
	}
}

// start sends a request on a connection, with the next Flush. It waits for room, within ctx
// and until p.deadline. After an error the request was not sent, and will not end.
func (p *pending) start(ctx context.Context, conn *mqtt.Conn) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := p.stamp(); err != nil {
		return err
	}
	s := p.s
	s.mu.Lock()
	err := p.begin(conn)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	m := p.message(&s.draft)
	err = conn.Queue(&m, p.onAck)
	if cap(s.draft.payload) > keptDraft {
		s.draft.payload = nil
	}
	switch err {
	case nil:
		s.expectBy(p.deadline)
	case mqtt.ErrFull:
		p.unsent = true
	default:
		p.abandon()
	}
	s.mu.Unlock()
	if err == mqtt.ErrFull {
		return p.publish(ctx, conn)
	}
	return err
}

// publish waits for room and sends a request that is begun and unsent.
func (p *pending) publish(ctx context.Context, conn *mqtt.Conn) error {
	if p.waits != nil {
		p.waits()
	}
	if !p.deadline.IsZero() {
		limited, cancel := context.WithDeadline(ctx, p.deadline)
		defer cancel()
		ctx = limited
	}
	err := conn.Publish(ctx, p.message(new(draft)), p.onAck)
	s := p.s
	s.mu.Lock()
	if err != nil {
		p.abandon()
		s.mu.Unlock()
		return err
	}
	p.unsent, p.expires = false, time.Now().Add(p.expiry)
	s.expectBy(p.deadline)
	s.mu.Unlock()
	if err := conn.Err(); err != nil {
		s.finish(p.id, err) // lose may have come while it was unsent
	}
	return nil
}

// stamp takes the request's timestamp from the clock, unless it has one, and starts its time.
func (p *pending) stamp() error {
	p.sent = time.Now()
	if given := p.command.timestamp; given != nil {
		p.ts = *given
		return nil
	}
	var err error
	if p.ts, err = p.s.clock.TickAt(p.sent); err != nil {
		return fmt.Errorf("the local clock: %w", err)
	}
	return nil
}

// begin adds a request to Session.outstanding. conn is the connection that it is about to be
// sent on, nil for one that is being made. The caller holds mu.
func (p *pending) begin(conn *mqtt.Conn) error {
	s := p.s
	p.copies = 1
	p.expires, p.conn = p.sent.Add(p.expiry), conn
	if p.ended != nil {
		if p.deadline.IsZero() {
			p.deadline = p.sent.Add(s.o.Timeout)
		}
		if !s.holdLocked() {
			return ErrClosed
		}
	}
	p.id = s.outstanding.Add(p)
	return nil
}

// abandon removes a request that was not sent. The caller holds mu.
func (p *pending) abandon() {
	if _, ok := p.s.outstanding.Take(p.id); ok && p.ended != nil {
		p.s.wg.Done()
	}
}

// expectBy has the session end a request at its deadline, unless that is zero. The caller
// holds mu.
func (s *Session) expectBy(deadline time.Time) {
	if !deadline.IsZero() && (s.alarmAt.IsZero() || deadline.Before(s.alarmAt)) {
		s.setAlarm(deadline)
	}
}

// setAlarm has overdue called. The caller holds mu.
func (s *Session) setAlarm(at time.Time) {
	s.alarmAt = at
	if s.alarm == nil {
		s.alarm = time.AfterFunc(time.Until(at), s.overdue)
		return
	}
	s.alarm.Reset(time.Until(at))
}

// overdue ends the requests whose deadlines have passed.
func (s *Session) overdue() {
	now := time.Now()
	s.mu.Lock()
	var late []uint64
	var next time.Time
	for id, p := range s.outstanding.All() {
		switch {
		case p.deadline.IsZero() || p.unsent:
		case !p.deadline.After(now):
			late = append(late, id)
		case next.IsZero() || p.deadline.Before(next):
			next = p.deadline
		}
	}
	s.alarmAt = next
	if !next.IsZero() && s.life.Err() == nil {
		s.setAlarm(next)
	}
	s.mu.Unlock()
	for _, id := range late {
		s.finish(id, context.DeadlineExceeded)
	}
}

// A draft is memory for a message, until the connection has encoded it.
type draft struct {
	timestamp  []byte
	properties []byte          // encoded
	more       []mqtt.Property // that few requests have
	payload    []byte
}

// keptDraft is the size up to which a session keeps the payload of its draft, in bytes.
const keptDraft = 64 << 10

// message returns a request as a message. It lies in d until d is used again.
func (p *pending) message(d *draft) mqtt.Message {
	s, c := p.s, &p.command
	d.timestamp, _ = p.ts.AppendText(d.timestamp[:0]) // has no error
	d.properties = append(mqtt.AppendProperty(d.properties[:0], wire.PropTimestamp, d.timestamp), s.properties...)
	d.more = d.more[:0]
	if c.fence != "" {
		d.more = append(d.more, mqtt.Property{Name: wire.PropFence, Value: c.fence})
	}
	if c.persist {
		d.more = append(d.more, mqtt.Property{Name: wire.PropPersist, Value: "true"})
	}
	if s.o.HighPriority {
		d.more = append(d.more, mqtt.Property{Name: wire.PropHighPriority})
	}
	d.payload = wire.AppendRequest(d.payload[:0], c.words()...)
	binary.LittleEndian.PutUint64(p.correlation[:], p.id)
	copy(p.correlation[8:], s.nonce[:])
	return mqtt.Message{
		Topic:         wire.RequestTopic,
		Payload:       d.payload,
		ResponseTopic: s.o.ResponseTopic,
		Correlation:   p.correlation[:],
		ContentType:   wire.ContentType,
		Expiry:        p.expiry,
		Encoded:       d.properties,
		User:          d.more,
	}
}

// expiry returns the Message Expiry Interval of a request: the time to the deadline of
// ctx, rounded up to whole seconds, at least one.
func expiry(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	return roundUp(time.Until(deadline))
}

func roundUp(d time.Duration) time.Duration {
	return max((d+time.Second-1)/time.Second*time.Second, time.Second)
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
	case err == mqtt.ErrNoSubscribers:
		p.unheard()
		return
	case err != nil:
		p.s.finish(p.id, err)
		return
	}
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	p.expires = p.lastReceived().Add(p.expiry)
	p.copies, p.taken = p.copies-1, true
	p.spare.Store(p.copies == 0 && p.nobody.IsZero())
}

// lastReceived returns when something last came on the connection of a request. The caller
// holds mu.
func (p *pending) lastReceived() time.Time {
	if p.conn == nil {
		return time.Now() // the connection is being made
	}
	return p.conn.LastReceived()
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
		p.s.finish(p.id, &NoStoreError{})
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
	conn := p.conn
	_, waiting := p.s.outstanding.Get(p.id)
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
		p.s.finish(p.id, err)
	}
}

// publishAgain publishes another copy of a request. The error means that it was not sent.
func (p *pending) publishAgain(ctx context.Context, conn *mqtt.Conn) error {
	m := p.message(new(draft))
	m.Expiry = roundUp(time.Until(p.sent.Add(p.expiry)))
	p.startExpiry(m.Expiry)
	p.addCopies(1)
	err := conn.Publish(ctx, m, p.onAck)
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

// startExpiry counts a request's expiry from now. The broker starts counting when the
// request arrives, which is after any wait for its Receive Maximum and before its PUBACK.
func (p *pending) startExpiry(expiry time.Duration) {
	expires := time.Now().Add(expiry)
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.expires = expires
}

// take removes a request from Session.outstanding; nil if it is not there.
func (s *Session) take(id uint64) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ := s.outstanding.Take(id)
	return p
}

// finish ends a request without an answer, unless it has ended. err says why.
func (s *Session) finish(id uint64, err error) {
	if p := s.take(id); p != nil {
		p.err = p.unanswered(err)
		p.end()
	}
}

// end tells who waits that result or err is set.
func (p *pending) end() {
	if p.ended == nil {
		close(p.done)
		return
	}
	s := p.s
	p.ended()   // p may be used again after this
	s.wg.Done() // of begin
}

// lose ends the requests of a lost connection.
func (s *Session) lose(conn *mqtt.Conn) {
	s.finishAll(func(p *pending) bool { return p.conn == conn }, conn.Err())
}

// finishAll ends requests without an answer. which is called with mu locked.
func (s *Session) finishAll(which func(*pending) bool, err error) {
	s.mu.Lock()
	var gone []uint64
	for id, p := range s.outstanding.All() {
		if !p.unsent && which(p) {
			gone = append(gone, id)
		}
	}
	s.mu.Unlock()
	for _, id := range gone {
		s.finish(id, err)
	}
}

// wait returns the result, or what became of the request when ctx ends first.
func (p *pending) wait(ctx context.Context) (Result, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.s.finish(p.id, context.Cause(ctx))
		<-p.done // a reply may have come first
	}
	return p.result, p.err
}

// unanswered returns the error of a request that got no answer because of err: a
// LostAnswerError for a write that may have been applied.
func (p *pending) unanswered(err error) error {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok && refused.Packet == "PUBACK" {
		return err
	}
	switch {
	case p.isUnheard() && errors.Is(err, context.DeadlineExceeded):
		return &NoStoreError{}
	case p.isUnheard() || p.command.effect == effectNone:
		return err
	}
	return p.lost(err)
}
