package client

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// A request is a command that is being sent or waits for its reply.
type request struct {
	s       *Session
	command Command
	id      uint64 // its number in Session.outstanding
	ts      Version
	sent    time.Time
	timeout time.Duration
	expiry  time.Duration // the Message Expiry Interval: timeout, rounded up to whole seconds
	alone   bool          // nobody waits for the reply; Session.deadlineTimer ends the request

	correlation [16]byte // id and Session.nonce

	// Guarded by Session.mu.
	conn          *mqtt.Conn // nil while the connection is being made
	expires       time.Time
	waiting       bool      // waits for room on the connection
	copies        int       // copies that were sent and not acknowledged
	accepted      bool      // the broker has accepted a copy
	noSubscribers time.Time // when a PUBACK first reported no subscribers; zero = none did
	forgotten     bool      // no longer outstanding, and no PUBACK is expected

	// The goroutine that removes the request from Session.outstanding sets result or err,
	// then calls end.
	result Result
	err    error
	done   chan struct{}  // closed by end; nil = nobody waits for it
	onAck  func(error)    // r.handleAck; made once, and kept when the request is reused
	onEnd  func(*request) // called by end; must not block, may reuse the request; nil = none
	onWait func()         // called before a wait for room; nil = none

	// Set for a request of a Pipeline. The request ends when ctx ends.
	ctx      context.Context
	inFlight *InFlight
	observed func(Result, error) // see Session.observe
}

// Do sends a request and waits for its reply until ctx ends or, if ctx has no deadline, for
// Options.Timeout. The errors:
//   - nothing was sent: *[InvalidError], *[TooLargeError], *[DialError], *[LostError],
//     [ErrClosed], or the cause of ctx
//   - the broker refused the request: *[ReasonError]
//   - no store received the request: *[NoStoreError], after a second of retries
//   - the store, or a service in its place, answered with an error: *[StoreError],
//     *[StatusError], or an *[ReplyError] if the reply to a read is malformed
//   - a write got no reply, or a reply that does not say whether the write was applied:
//     *[LostReplyError]
//   - a read got no reply: *[LostError], [ErrClosed], or the cause of ctx
func (s *Session) Do(ctx context.Context, c Command) (Result, error) {
	if s.o.RetryFor == 0 {
		return s.do(ctx, c)
	}
	return retried(ctx, s, c, func() (Result, error) { return s.do(ctx, c) })
}

// do is like Do, without Options.RetryFor.
func (s *Session) do(ctx context.Context, c Command) (result Result, err error) {
	if done := s.observe(ctx, c); done != nil {
		defer func() { done(result, err) }()
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	if c.repeatable() && !s.o.NoPipelining && c.Check() == nil && s.alive() == nil {
		return s.doEarly(ctx, c)
	}
	r, err := s.send(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.waitOrAbandon(ctx)
}

// observe calls Options.Observe. The caller calls the result, unless it is nil, when the command has ended.
func (s *Session) observe(ctx context.Context, c Command) (done func(Result, error)) {
	if s.o.Observe == nil || c.Check() != nil {
		return nil
	}
	return s.o.Observe(ctx, c)
}

// send sends a request. ctx must have a deadline.
func (s *Session) send(ctx context.Context, c Command) (*request, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	conn, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	return s.sendOn(ctx, conn, c)
}

// sendOn sends a request on conn. ctx must have a deadline. The caller must wait for the reply.
func (s *Session) sendOn(ctx context.Context, conn *mqtt.Conn, c Command) (*request, error) {
	r := s.newRequest(ctx, c)
	if err := r.start(ctx, conn); err != nil {
		return nil, err
	}
	conn.Flush()
	return r, nil
}

// newRequest returns a request that is not sent yet. ctx must have a deadline.
func (s *Session) newRequest(ctx context.Context, c Command) *request {
	deadline, _ := ctx.Deadline()
	timeout := time.Until(deadline)
	return &request{s: s, command: c, timeout: timeout, expiry: wholeSeconds(timeout), done: make(chan struct{})}
}

// maxExpiry is the longest Message Expiry Interval.
const maxExpiry = math.MaxUint32 * time.Second

// wholeSeconds rounds d up to whole seconds, at least one and at most maxExpiry, because a Message Expiry
// Interval is in seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return max((min(d, maxExpiry) + time.Second - 1).Truncate(time.Second), time.Second)
}

// startAlone is like start, but for a request that nobody waits for, which ends after
// Options.Timeout. The caller must have set r.command and r.onEnd.
func (r *request) startAlone(ctx context.Context, conn *mqtt.Conn) error {
	r.alone, r.timeout, r.expiry = true, r.s.o.Timeout, wholeSeconds(r.s.o.Timeout)
	return r.start(ctx, conn)
}

// start queues a request on a connection; the next Flush sends it. If the connection has no
// room, start waits for room until ctx ends or the request times out. If start returns an error, the
// request was not sent, and end is not called.
func (r *request) start(ctx context.Context, conn *mqtt.Conn) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.stamp()
	s := r.s
	s.mu.Lock()
	if r.alone && !s.holdLocked() {
		s.mu.Unlock()
		return ErrClosed
	}
	r.add(conn)
	id := r.id // the request may be reused once it has ended
	r.setMessage(&s.draft)
	err := conn.Queue(&s.draft, r.onAck)
	waited := err == mqtt.ErrFull
	if waited {
		m := s.draft
		s.draft = mqtt.Message{}
		r.waiting = true
		s.mu.Unlock()
		err = r.awaitRoom(ctx, conn, m)
		s.mu.Lock()
		r.waiting, r.expires = false, time.Now().Add(r.expiry)
	}
	if cap(s.draft.Payload) > keptPayload {
		s.draft.Payload = nil
	}
	// These would keep the request and its result in memory until the next request.
	s.draft.Correlation, s.draft.Large = nil, ""
	if err != nil {
		s.outstanding.Remove(id)
		s.mu.Unlock()
		if r.alone {
			s.wg.Done()
		}
		return err
	}
	if r.alone && s.deadlineTimer == nil {
		s.deadlineTimer = time.AfterFunc(time.Until(r.sent.Add(r.timeout)), s.endOverdue)
	}
	s.mu.Unlock()
	if waited && conn.Err() != nil {
		s.finish(id, conn.Err()) // finishAll skipped r if the connection ended while r waited
	}
	return nil
}

// awaitRoom publishes a message when the connection has room for it.
func (r *request) awaitRoom(ctx context.Context, conn *mqtt.Conn, m mqtt.Message) error {
	if r.onWait != nil {
		r.onWait()
	}
	ctx, cancel := context.WithDeadlineCause(ctx, r.sent.Add(r.timeout), ErrNoReply)
	defer cancel()
	return conn.Publish(ctx, m, r.onAck)
}

// stamp sets r.sent to the current time, and r.ts to the command's timestamp or, if the command has
// none, to the clock's next reading.
func (r *request) stamp() {
	r.sent = time.Now()
	if given := r.command.timestamp; given != nil {
		r.ts = *given
		return
	}
	r.ts = r.s.clock.Stamp(r.sent)
}

// add adds a request to Session.outstanding. conn is the connection on which the request will be
// sent; nil = the connection is still being made. add requires Session.mu.
func (r *request) add(conn *mqtt.Conn) {
	r.copies = 1
	r.expires, r.conn = r.sent.Add(r.expiry), conn
	r.id = r.s.outstanding.Add(r)
	// Copies are sent by several goroutines, which only read.
	binary.LittleEndian.PutUint64(r.correlation[:], r.id)
	copy(r.correlation[8:], r.s.nonce[:])
	if r.onAck == nil {
		r.onAck = r.handleAck
	}
}

// keptPayload is the size of the largest payload buffer that is kept for reuse, in bytes.
const keptPayload = 64 << 10

func (r *request) message() (m mqtt.Message) {
	r.setMessage(&m)
	return m
}

// setMessage sets m to the request as an MQTT message. It reuses the memory of m.
func (r *request) setMessage(m *mqtt.Message) {
	s, c := r.s, &r.command
	user := append(m.User[:0], mqtt.Property{Name: wire.PropTimestamp, Value: r.ts.String()})
	user = append(user, s.properties...)
	if c.fence != "" {
		user = append(user, mqtt.Property{Name: wire.PropFence, Value: c.fence})
	}
	if c.persist {
		user = append(user, mqtt.Property{Name: wire.PropPersist, Value: "true"})
	}
	if s.o.HighPriority {
		user = append(user, mqtt.Property{Name: wire.PropHighPriority})
	}
	payload, large, at := appendRequest(m.Payload[:0], c.words())
	*m = mqtt.Message{
		Topic:         wire.RequestTopic,
		Payload:       payload,
		Large:         large,
		LargeAt:       at,
		ResponseTopic: s.o.ResponseTopic,
		Correlation:   r.correlation[:],
		ContentType:   wire.ContentType,
		Expiry:        r.expiry,
		User:          user,
	}
}

func (r *request) handleAck(err error) {
	switch {
	case err == mqtt.ErrNoSubscribers:
		r.handleNoSubscribers()
		return
	case err != nil:
		r.s.finish(r.id, err)
		return
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.copies, r.accepted = r.copies-1, true
	if r.conn == nil {
		r.expires = time.Now().Add(r.expiry)
	} else {
		r.expires = r.conn.LastReceived().Add(r.expiry)
	}
}

// remove removes and returns the request with this id in Session.outstanding; nil = there is none.
func (s *Session) remove(id uint64) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.outstanding.Remove(id)
	if ok {
		r.forgotten = r.copies == 0 && !r.waiting && r.noSubscribers.IsZero()
	}
	return r
}

// finish ends a request that got no reply because of err, unless the request has ended
// already.
func (s *Session) finish(id uint64, err error) {
	if r := s.remove(id); r != nil {
		r.err = r.noReply(err)
		r.end()
	}
}

// end completes a request, after result or err was set: it wakes the goroutine that waits for the
// request, and calls onEnd.
func (r *request) end() {
	if r.alone {
		defer r.s.wg.Done()
	}
	if r.done != nil {
		close(r.done)
	}
	if r.onEnd != nil {
		r.onEnd(r)
	}
}

// endOverdue ends the requests that nobody waits for and that have timed out. All such requests have
// the same timeout, so one timer, for the oldest of them, is enough.
func (s *Session) endOverdue() {
	now := time.Now()
	var conn *mqtt.Conn // the connection of the newest overdue Pipeline request; nil = none
	var sent time.Time
	isOverdue := func(r *request) bool {
		if !r.alone || now.Before(r.sent.Add(r.timeout)) {
			return false
		}
		if r.inFlight != nil && r.sent.After(sent) {
			conn, sent = r.conn, r.sent
		}
		return true
	}
	s.finishAll(isOverdue, ErrNoReply)
	s.abandonSilent(conn, sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	next, more := s.o.Timeout, false
	for _, r := range s.outstanding.All() {
		if r.alone && !r.waiting {
			next, more = min(next, time.Until(r.sent.Add(r.timeout))), true
		}
	}
	if s.deadlineTimer = nil; more && s.ctx.Err() == nil {
		s.deadlineTimer = time.AfterFunc(next, s.endOverdue)
	}
}

// finishAll ends the sent requests for which matches returns true; err is the cause. s.mu is held while
// matches runs.
func (s *Session) finishAll(matches func(*request) bool, err error) {
	s.mu.Lock()
	var matching []uint64
	for id, r := range s.outstanding.All() {
		if !r.waiting && matches(r) {
			matching = append(matching, id)
		}
	}
	s.mu.Unlock()
	for _, id := range matching {
		s.finish(id, err)
	}
}

// wait waits for the result. If ctx ends first, it ends the request without a reply.
func (r *request) wait(ctx context.Context) (Result, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		r.s.finish(r.id, context.Cause(ctx))
		<-r.done // a reply may have come first
	}
	return r.result, r.err
}

// waitOrAbandon is like wait. If the request times out and the connection was silent, it also ends the
// connection.
func (r *request) waitOrAbandon(ctx context.Context) (Result, error) {
	result, err := r.wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		r.s.mu.Lock()
		conn := r.conn
		r.s.mu.Unlock()
		r.s.abandonSilent(conn, r.sent)
	}
	return result, err
}

// abandonSilent ends a connection if nothing, not even a PUBACK, has arrived on it since an
// unanswered request was sent; sent is that time. The network path is then dead, but the keep-alive
// would notice that too late. The next request makes a new connection. The silence must have lasted
// a second, or two fifths of Options.Timeout if that is shorter. A broker cannot answer
// before it has all of a large packet, so one that is being sent keeps the connection.
func (s *Session) abandonSilent(conn *mqtt.Conn, sent time.Time) {
	patience := min(time.Second, s.o.Timeout*2/5) // shorter than half of the timeout, after which getAgain asks again
	if conn != nil && time.Since(sent) >= patience && conn.LastReceived().Before(sent) && !conn.IsSending() {
		conn.Abandon()
	}
}

// noReply returns the error of a request that got no reply because of err. For a write that
// may have been applied, it is a LostReplyError.
func (r *request) noReply(err error) error {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok && refused.Packet == "PUBACK" {
		return err
	}
	noSubscribers := r.hasNoSubscribers()
	switch {
	case noSubscribers && errors.Is(err, context.DeadlineExceeded):
		return &NoStoreError{}
	case noSubscribers || r.command.effect == effectNone:
		return err
	}
	return r.lostReply(err)
}

// badReply returns the error of a request whose reply is not a result. For a write, it is a
// LostReplyError if the reply does not say whether the store applied the write.
func (r *request) badReply(err error) error {
	status, isStatus := errors.AsType[*StatusError](err)
	unclear := isA[*ReplyError](err) || isStatus && !status.refuses()
	if r.command.effect == effectNone || !unclear {
		return err
	}
	return r.lostReply(err)
}

// lostReply returns the error of a write that got no usable reply because of err.
func (r *request) lostReply(err error) *LostReplyError {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return &LostReplyError{Command: r.command, Timestamp: r.ts, Expires: r.expires, Err: err, accepted: r.accepted, expiry: r.expiry}
}
