package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sscli/sscli/internal/idtable"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// A Session sends requests to the store. Several goroutines may use it. It comes from [Dial]; all requests
// of a zero Session fail with an *[InvalidError].
type Session struct {
	o     Options
	clock *wire.Clock
	nonce [8]byte // random; in the correlation data of every request

	notifyTopic []byte          // the prefix of this client's notification topics
	longest     int             // the length in bytes of the longest key that can be watched
	properties  []mqtt.Property // the user properties that all requests share
	wg          sync.WaitGroup  // goroutines and calls that Close waits for; nothing is added once ctx has ended

	dialing      chan struct{} // used as a mutex, held while connecting; capacity 1
	awaitConnack bool          // wait for CONNACK before SUBSCRIBE; guarded by dialing

	wall func() time.Time // the wall clock of leases; nil = time.Now, set by tests

	ctx    context.Context // ends when the session is closed
	cancel context.CancelFunc

	mu               sync.Mutex
	conn             *mqtt.Conn
	refused          error             // why the session must not connect again; nil = it may
	abandonedConnect time.Time         // time of the last abandoned CONNECT, which may still take over our connection
	ownTakeOver      error             // of the last connection that an abandoned CONNECT took over; nil = none
	tried            [sha256.Size]byte // hash of the password or token that the broker last accepted or refused
	outstanding      idtable.Table[uint64, *request]
	draft            mqtt.Message             // memory for the next request's message
	deadlineTimer    *time.Timer              // calls endOverdue when the oldest request.alone times out; nil = none
	connSeq          uint64                   // sequence number of the newest connection
	notify           bool                     // the next connection must subscribe to notifications
	notified         bool                     // conn has subscribed to notifications
	routes           map[string]*registration // the keys that are watched or must be unregistered; the watcher changes it, and reads it without mu
	watcher          *watcher                 // nil until the first watch
	turns            map[string]turn          // by lock; see acquisition.remember
}

// Dial returns a session that is connected: it calls [New] and [Session.Connect].
func Dial(ctx context.Context, o Options) (*Session, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := s.Connect(ctx); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// New returns a session that connects when its first request comes. The error is an *[InvalidError].
//
// A request that finds no connection needs as few round trips as MQTT 5 allows: a GET is sent in one
// write with CONNECT and SUBSCRIBE, any other request after SUBACK. With a token, SUBSCRIBE and the
// request are sent only after CONNACK. With Options.NoPipelining, the session waits for each reply
// before it sends the next packet.
func New(o Options) (*Session, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Session{
		o:           o,
		clock:       wire.NewClock(uuid.NewString(), time.Now),
		notifyTopic: []byte(wire.NotifyTopic(o.ClientID, "")),
		longest:     wire.MaxNotifyKey(o.ClientID),
		properties: []mqtt.Property{
			{Name: wire.PropSource, Value: o.ClientID},
			{Name: wire.PropProtocol, Value: wire.ProtocolVersion},
			{Name: wire.PropPartition, Value: o.ClientID},
		},
		dialing: make(chan struct{}, 1),
		routes:  make(map[string]*registration),
	}
	rand.Read(s.nonce[:]) // never returns an error
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// check returns an error if the session does not come from New.
func (s *Session) check() error {
	if s.ctx == nil {
		return invalid("the zero Session has no connection; a Session comes from New")
	}
	return nil
}

// Connect connects to the broker and subscribes to the response topic, within ctx or, if ctx has no
// deadline, within Options.Timeout. It does nothing if the session is connected. The error is a
// *[DialError], ErrClosed, the cause of ctx, or the error that keeps the session from reconnecting (see Err).
func (s *Session) Connect(ctx context.Context) error {
	_, err := retried(ctx, s, Command{}, func() (*mqtt.Conn, error) {
		ctx, cancel := s.limit(ctx)
		defer cancel()
		return s.connection(ctx)
	})
	return err
}

// reach connects, if Options.RetryFor is set. Calls that limit the time for each of their steps call it first.
func (s *Session) reach(ctx context.Context) error {
	if s.o.RetryFor == 0 {
		return nil
	}
	return s.Connect(ctx)
}

// ClientID returns the client id of the session.
func (s *Session) ClientID() string { return s.o.ClientID }

// MaxPacketSize returns the size in bytes of the largest packet that the broker accepts on the
// current connection, and 0 before the first. A packet holds the key, the value and a few hundred bytes
// more.
func (s *Session) MaxPacketSize() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return 0
	}
	return s.conn.Limits().MaxPacketSize
}

// Err returns nil while the session has a connection, and as long as it never had one, unless the broker refused it
// for good. Otherwise the error says how the last connection was lost, or why the broker refused a new connection. The
// next request reconnects unless [IsPermanent] returns true for the error.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(s.check(), s.refused); err != nil || s.conn == nil {
		return err
	}
	return s.conn.Err()
}

// Down returns a channel that is closed when the current connection ends. Without a connection, it is
// closed.
func (s *Session) Down() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		down := make(chan struct{})
		close(down)
		return down
	}
	return s.conn.Done()
}

// Format prints the session for package fmt as its options. The rest is in use by other goroutines.
func (s *Session) Format(f fmt.State, verb rune) { s.o.Format(f, verb) }

// Close disconnects and waits for the goroutines of the session. Outstanding requests end
// without a reply. Requests that wait for a connection, and all later requests, fail with
// [ErrClosed].
func (s *Session) Close() error {
	if s.check() != nil {
		return nil
	}
	s.mu.Lock()
	s.cancel()
	conn := s.conn
	if s.deadlineTimer != nil {
		s.deadlineTimer.Stop()
	}
	s.mu.Unlock()
	var err error
	if conn != nil {
		err = conn.Close()
	}
	s.wg.Wait()
	if isA[*mqtt.LostError](err) {
		return nil // the outstanding requests have already reported this error
	}
	return err
}

// limit gives ctx a deadline if it has none.
func (s *Session) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return limitTo(ctx, s.o.Timeout)
}

// whileOpen returns a context that ends with ctx, and with the cause ErrClosed when the session is closed.
func (s *Session) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(mqtt.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// hold makes Close wait for a call to s.wg.Done. It returns false if the session is closed.
func (s *Session) hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holdLocked()
}

// holdLocked is like hold. It requires s.mu.
func (s *Session) holdLocked() bool {
	if s.ctx.Err() != nil {
		return false
	}
	s.wg.Add(1)
	return true
}

// connection returns the session's connection. If there is none, or it was lost, connection makes a new
// one.
func (s *Session) connection(ctx context.Context) (*mqtt.Conn, error) {
	if conn := s.alive(); conn != nil {
		return conn, nil
	}
	return s.connect(ctx, nil)
}

// alive returns the session's connection, or nil if the session has no usable connection.
func (s *Session) alive() *mqtt.Conn {
	s.mu.Lock()
	conn, refused := s.conn, s.refused
	s.mu.Unlock()
	if conn == nil || refused != nil || s.ctx.Err() != nil || conn.Err() != nil {
		return nil
	}
	return conn
}

// connect is like connection, but locks s.dialing first. If it makes a new connection and early is not
// nil, it sends the early request together with SUBSCRIBE, unless the broker needs CONNECT alone.
func (s *Session) connect(ctx context.Context, early *earlyRequest) (*mqtt.Conn, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
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
	case s.ctx.Err() != nil:
		return nil, mqtt.ErrClosed
	case refused != nil && !s.hasNewSecret(refused):
		return nil, refused
	case conn != nil && (conn.Err() == nil || s.isHopeless(conn.Err())):
		return conn, conn.Err()
	}
	ctx, stop := s.whileOpen(ctx)
	defer stop()
	conn, secret, err := s.dial(ctx, filters, early)
	if wantsConnectAlone(err) && !s.o.NoPipelining && !s.awaitConnack && ctx.Err() == nil {
		s.awaitConnack = true
		conn, secret, err = s.dial(ctx, filters, early)
		s.awaitConnack = err == nil
	}
	if s.hasNewSecret(err) {
		conn, secret, err = s.dial(ctx, filters, early)
	}
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok && refused.Packet == "SUBACK" && refused.Topic != filters[0] {
		// Only watches and locks, to which subscribed reports the refusal, need notifications.
		filters = filters[:1]
		conn, secret, err = s.dial(ctx, filters, early)
	}
	if err != nil {
		s.o.Logger.WarnContext(ctx, "no connection", "address", s.o.Address, "client", s.o.ClientID, "error", err)
		if isRefusal(err) && !s.isOwnTakeOver(err) {
			s.mu.Lock()
			s.refused = err
			s.mu.Unlock()
		}
		return nil, err
	}
	if early != nil {
		early.setConn(conn)
	}
	if !s.adopt(conn, len(filters) > 1, secret) {
		return nil, errors.Join(mqtt.ErrClosed, conn.Close())
	}
	return conn, nil
}

// adopt makes conn the connection of the session. It returns false if the session is closed.
// notified says whether conn has subscribed to notifications; secret is the password or token
// with which conn logged in.
func (s *Session) adopt(conn *mqtt.Conn, notified bool, secret []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	if s.conn != nil && isTakenOver(s.conn.Err()) {
		if s.mayTakeOver() {
			s.ownTakeOver = s.conn.Err()
		}
		s.abandonedConnect = time.Time{} // the broker has processed the abandoned CONNECT
	}
	s.conn, s.refused, s.notified = conn, nil, notified
	if s.watcher != nil {
		s.watcher.post(s.watcher.resume)
	}
	if s.o.hasToken() {
		s.wg.Go(func() { s.keepToken(conn, secret) })
	}
	s.o.Logger.Info("connected", "address", s.o.Address, "client", s.o.ClientID)
	s.wg.Go(func() {
		<-conn.Done()
		if s.ctx.Err() == nil {
			s.o.Logger.Warn("connection lost", "address", s.o.Address, "client", s.o.ClientID, "error", conn.Err())
		}
		s.finishAll(func(r *request) bool { return r.conn == conn }, conn.Err())
		_ = conn.Close() // waits for conn's goroutines; the error is conn.Err(), which finishAll already has
	})
	return true
}

// subscribed returns a connection that has subscribed to notifications, and its connSeq.
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
		return nil, 0, conn.Err() // another request has made a new connection
	}
	s.notified = true
	return conn, s.connSeq, nil
}
