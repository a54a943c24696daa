package emulator

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/emulator/store"
	"github.com/sscli/sscli/redis"
)

// redisPort is the store as Redis clients see it: the engine of a [redis.Server].
type redisPort struct {
	sync.Locker // the store's owner; Unlock sends what the store has for watchers

	store    *store.Store
	journal  *journal // nil: the store is in memory only
	now      func() time.Time
	server   *redis.Server
	applying bool // a command of the port makes the change that is reported
	asking   bool // a command of the port puts a request to the store

	observe func(Observation) // nil: nobody
	seen    store.Observation // what the store has told of the running command

	// Memory that one request after the other uses.
	payload, reply []byte
}

var _ redis.Engine = (*redisPort)(nil)

// newRedisPort returns a port that listens nowhere yet.
func newRedisPort(owner sync.Locker, st *store.Store, j *journal, now func() time.Time, o redis.Options, observe func(Observation)) (*redisPort, error) {
	p := &redisPort{Locker: owner, store: st, journal: j, now: now, observe: observe}
	o.Backend, o.Name = p, "emulator"
	if observe != nil {
		o.Observe = p.command
	}
	var err error
	p.server, err = redis.New(o)
	return p, err
}

func (p *redisPort) close() error {
	if p == nil {
		return nil
	}
	return p.server.Close()
}

// changed tells Redis clients of a change.
func (p *redisPort) changed(c *store.Change) {
	if p == nil {
		return
	}
	kind := redis.Stored
	switch {
	case c.Cause == store.CauseExpired:
		kind = redis.Expired
	case p.applying:
		kind = redis.Own
	case c.Deleted:
		kind = redis.Deleted
	case !c.Entry.Expires().IsZero():
		kind = redis.StoredTill
	}
	p.server.Changed(redis.Change{Key: c.Entry.Key(), Kind: kind, New: c.New})
}

func (p *redisPort) Now() time.Time  { return p.now() }
func (p *redisPort) Expect([][]byte) {}

func (p *redisPort) Lookup(key []byte) (redis.Entry, bool) {
	e, found := p.store.Lookup(key)
	if !found {
		return redis.Entry{}, false
	}
	return redis.Entry{Value: e.Value(), Version: e.Version(), Expires: e.Expires(), Made: redis.Making(e.Mark())}, true
}

func (p *redisPort) Keys(from []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for e := range p.store.From(from) {
			if !yield(e.Key()) {
				return
			}
		}
	}
}

func (p *redisPort) KeyAt(i int) []byte { return p.store.KeyAt(i) }
func (p *redisPort) Len() int           { return p.store.Len() }
func (p *redisPort) Expiring() int      { return p.store.Expiring() }
func (p *redisPort) Restricted() bool   { return p.store.Restricted() }

func (p *redisPort) Allowed(who *redis.Caller, key []byte, write bool) bool {
	return p.store.Allowed(who.ID, who.User, key, write)
}

// refused makes an error of the text of a refusal.
func refused(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func (p *redisPort) Room(n int) error        { return refused(p.store.Room(n)) }
func (p *redisPort) Fenced(key []byte) error { return refused(p.store.Fenced(key)) }

func (p *redisPort) Put(who *redis.Caller, put redis.Put) error {
	cause := store.CauseSet
	if !put.Expires.IsZero() {
		cause = store.CauseSetPX
	}
	w := store.Write{ClientID: who.ID, Username: who.User, Cause: cause, Key: put.Key, Value: put.Value, Expires: put.Expires, Mark: byte(put.Made)}
	if p.journal != nil { // a Redis client cannot say whether to keep a key: that stays as it is
		e, found := p.store.Lookup(put.Key)
		w.Persist = found && e.Persist()
	}
	return p.apply(w)
}

func (p *redisPort) Remove(who *redis.Caller, key []byte) error {
	return p.apply(store.Write{ClientID: who.ID, Username: who.User, Cause: store.CauseDel, Key: key, Delete: true})
}

func (p *redisPort) apply(w store.Write) error {
	p.applying = true
	defer func() { p.applying = false }()
	return refused(p.store.Apply(w))
}

// Do puts operations to the store as requests of its own protocol: their changes are told
// like any other client's.
func (p *redisPort) Do(_ context.Context, who *redis.Caller, ops []redis.Op) {
	for i := range ops {
		p.do(who, &ops[i])
	}
}

func (p *redisPort) do(who *redis.Caller, op *redis.Op) {
	words := [][]byte{[]byte(op.Verb.String()), op.Key}
	if op.Verb == redis.Set || op.Verb == redis.VDel {
		words = append(words, op.Value)
	}
	switch op.If {
	case redis.IfMissing:
		words = append(words, []byte(wire.OptionNX))
	case redis.IfSameOrNew:
		words = append(words, []byte(wire.OptionNEX))
	}
	if op.PX > 0 {
		words = append(words, []byte(wire.OptionPX), strconv.AppendInt(nil, op.PX, 10))
	}
	p.payload = wire.AppendRequest(reusable(p.payload)[:0], words...)
	stamp := wire.Version{Wall: p.now().UnixMilli(), Node: who.ID}
	p.asking = true
	resp := p.store.Do(&store.Request{
		ClientID: who.ID, Username: who.User, Payload: p.payload, Timestamp: []byte(stamp.String()), Fence: op.Fence,
	}, reusable(p.reply)[:0])
	p.asking = false
	p.reply = resp.Payload
	if len(resp.Version) > 0 {
		op.Version = bytes.Clone(resp.Version)
	}
	reply, err := wire.ParseReply(resp.Payload)
	switch {
	case err != nil:
		op.Err = err
	case reply.StoreError() != nil:
		op.Err = errors.New(reply.StoreError().Text)
	default:
		p.outcome(op, reply)
	}
}

// outcome reads a reply that is no refusal.
func (p *redisPort) outcome(op *redis.Op, reply wire.Reply) {
	switch reply.Value.Kind {
	case wire.Blob:
		op.Yes, op.Found = true, bytes.Clone(reply.Value.Text)
	case wire.SimpleString:
		op.Yes = true
	case wire.Integer:
		op.Yes, op.Differs = reply.Value.Int > 0, reply.Value.Int < 0
	}
}

// Scan walks the keys in their order. The token is the last key that was looked at, after
// a byte that keeps it from being empty.
func (p *redisPort) Scan(_ context.Context, _ *redis.Caller, prefix, token []byte, want int) (keys [][]byte, next []byte, err error) {
	start := prefix
	var after []byte
	if token != nil {
		after = token[1:]
		if bytes.Compare(after, prefix) > 0 {
			start = after
		}
	}
	for e := range p.store.From(start) {
		key := e.Key()
		switch {
		case !bytes.HasPrefix(key, prefix):
			return keys, nil, nil
		case token != nil && bytes.Equal(key, after):
			continue
		case len(keys) == want:
			return keys, append([]byte{'>'}, keys[want-1]...), nil
		}
		keys = append(keys, bytes.Clone(key))
	}
	return keys, nil, nil
}

// Watch is not needed: all changes are told.
func (p *redisPort) Watch(context.Context, []byte) error { return nil }

// Unwatch is not needed either.
func (p *redisPort) Unwatch([]byte) {}

// serverLock is the lock of a server as a command of the Redis port takes it.
type serverLock struct{ s *Server }

// Lock removes the keys that have expired, too. Until Unlock the store's clock stands
// still: all that happens meanwhile is one step, and to read the clock costs as much as to find a key.
func (l serverLock) Lock() {
	l.s.broker.Lock()
	l.s.stopped = l.s.now()
	l.s.store.Expire()
}

func (l serverLock) Unlock() {
	s := l.s
	s.stopped = time.Time{}
	s.notify()
	s.arm()
	s.broker.Unlock()
	s.changed.Broadcast()
}

// note is told of each change of the store.
func (s *Server) note(c *store.Change) {
	s.changes.add(c)
	s.port.changed(c)
}

func (s *Server) listenRedis() error {
	if s.opts.Redis == "" {
		return nil
	}
	ln, err := s.listenOn(s.opts.Redis, nil)
	if err != nil {
		return err
	}
	o := redis.Options{Notify: s.opts.RedisNotify, Log: s.opts.Log}
	if s.journal != nil {
		o.Settle = s.journal.wait
	}
	switch {
	case s.opts.CheckLogin != nil:
		o.Login = namedLogin(s.opts.CheckLogin)
	case s.opts.VerifyToken != nil:
		o.Login = func(_ string, token []byte) (string, bool) {
			login, err := s.opts.VerifyToken(token, s.Now())
			return login.User, err == nil
		}
	default:
		o.Identify = certifiedConn
	}
	port, err := newRedisPort(serverLock{s}, s.store, s.journal, s.now, o, s.opts.Observe)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	s.broker.Lock()
	s.port, s.redisAt = port, ln
	s.broker.Unlock()
	port.server.Serve(ln)
	return nil
}

// namedLogin takes clients for whom they say they are, if the password is right.
func namedLogin(check func(string, []byte) bool) func(string, []byte) (string, bool) {
	if check == nil {
		return nil
	}
	return func(user string, password []byte) (string, bool) { return user, check(user, password) }
}

// handshakeTime is how long a client may take for TLS.
const handshakeTime = 10 * time.Second

// certifiedConn returns the name in the certificate that a client has shown.
func certifiedConn(nc net.Conn) string {
	t, ok := nc.(*tls.Conn)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	if t.HandshakeContext(ctx) != nil {
		return "" // the first read returns the error
	}
	if chains := t.ConnectionState().VerifiedChains; len(chains) > 0 {
		return chains[0][0].Subject.CommonName
	}
	return ""
}

// RedisURL is how Redis clients on this machine reach the server, or empty.
func (s *Server) RedisURL() string {
	if s.redisAt == nil {
		return ""
	}
	return redisURL(s.redisAt, s.opts.TLS != nil)
}

func redisURL(ln net.Listener, secure bool) string {
	scheme := "redis"
	if secure {
		scheme = "rediss"
	}
	return scheme + "://" + reachable(ln.Addr())
}

// attachedLock is the lock of an attached store as a command of the Redis port takes it.
type attachedLock struct{ a *Attached }

// Lock removes the keys that have expired, too.
func (l attachedLock) Lock() {
	l.a.mu.Lock()
	l.a.engine.Expire()
}

func (l attachedLock) Unlock() {
	l.a.notify()
	l.a.signal() // expiries may have changed
	l.a.mu.Unlock()
}

// RedisOptions configure the Redis port of an [Attached] store.
type RedisOptions struct {
	Listen     string                                      // host:port
	Notify     string                                      // as Options.RedisNotify
	TLS        *tls.Config                                 // nil: plain TCP
	CheckLogin func(username string, password []byte) bool // nil: anybody
	Log        *slog.Logger                                // nil: silent

	// Observe is told of the commands of Redis clients, as [Options.Observe] is. What they
	// have the store do is in their observations.
	Observe func(Observation)
}

// ServeRedis lets Redis clients use the store too, until Close, and returns the URL for
// those on this machine. It may be called once.
func (a *Attached) ServeRedis(o RedisOptions) (url string, err error) {
	ln, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return "", fmt.Errorf("listen on %s: %w", o.Listen, err)
	}
	if o.TLS != nil {
		ln = tls.NewListener(ln, o.TLS)
	}
	opts := redis.Options{Notify: o.Notify, Login: namedLogin(o.CheckLogin), Log: o.Log}
	if a.journal != nil {
		opts.Settle = a.journal.wait
	}
	port, err := newRedisPort(attachedLock{a}, a.engine, a.journal, a.opts.Now, opts, o.Observe)
	if err != nil {
		return "", errors.Join(err, ln.Close())
	}
	a.mu.Lock()
	a.port = port
	a.mu.Unlock()
	port.server.Serve(ln)
	return redisURL(ln, o.TLS != nil), nil
}
