package emulator

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// redisPort gives Redis clients access to the store. It is the backend of a [redis.Server].
type redisPort struct {
	redisLock

	store   *store.Store
	may     func(who *redis.Caller, key []byte, write bool) bool // see allowed; nil = all clients may use all keys
	rule    func(*redis.Caller, *observe.Event, bool) string     // which rule decides about a command; nil = no rules apply
	journal *journal                                             // nil = the store is in memory only
	now     func() time.Time
	proven  func() bool // reports whether the store may answer; nil = it always may
	server  *redis.Server
	caller  *redis.Caller // the client whose command is running, and causes the store's changes and events; nil = none
	version []byte        // version of the last change

	observe func(observe.Event) // called for each Redis command; nil = not called
	event   observe.Event       // collects what the store reports for the running command
}

// A redisLock is the lock of a port's store, with methods of [redis.Local]. Unlock also sends pending notifications.
type redisLock interface {
	sync.Locker
	Full() bool
	AwaitRoom()
}

// newRedisPort returns a port that is not listening yet.
func newRedisPort(lock redisLock, st *store.Store, j *journal, now func() time.Time, o redis.Options, report func(observe.Event)) (*redisPort, error) {
	p := &redisPort{redisLock: lock, store: st, journal: j, now: now, observe: report}
	o.Backend, o.Name, o.Now = redis.Local(p), "emulator", now
	if j != nil {
		o.Sync = j.wait
	}
	if report != nil {
		o.Observe = p.observed
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

// changed reports a change of the store to the Redis server, for its clients.
func (p *redisPort) changed(c *store.Change) {
	if p == nil {
		return
	}
	p.version = c.Version
	kind := redis.Stored
	switch {
	case c.Cause == store.CauseExpired:
		kind = redis.Expired
	case p.caller != nil:
		kind = redis.Own
	case c.Deleted:
		kind = redis.Deleted
	case !c.Entry.Expires().IsZero():
		kind = redis.StoredTill
	}
	p.server.Changed(redis.Change{Key: c.Entry.Key(), Kind: kind, New: c.New})
}

func (p *redisPort) Stats() redis.Stats {
	return redis.Stats{Keys: p.store.Len(), Expiring: p.store.Expiring(), Hidden: p.store.Restricted()}
}

func (p *redisPort) Prefetch(requests [][][]byte) {
	const most = 1 << 10 // bytes; to hash a longer argument takes longer than the loading saves
	for _, args := range requests {
		if len(args) > 1 && len(args[1]) <= most {
			p.store.Prefetch(args[1])
		}
	}
}

func (p *redisPort) KeyAt(i int) []byte { return p.store.KeyAt(i) }

func (p *redisPort) MayRead(who *redis.Caller, key []byte) bool {
	return p.allowed(who, key, false)
}

// allowed reports whether a client may read a key or, if write is set, may write it. A nil key stands for reading and
// writing all keys.
func (p *redisPort) allowed(who *redis.Caller, key []byte, write bool) bool {
	return p.may == nil || p.may(who, key, write)
}

// served returns an error while another store may serve on the broker. Clients may repeat the command later.
func (p *redisPort) served() error {
	if p.proven == nil || p.proven() {
		return nil
	}
	return &redis.Error{Code: "LOADING", Text: "this store does not serve: it is not connected to its broker, or another store serves there"}
}

// refused returns an error with the text of a refusal, or nil if text is empty.
func refused(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// Check returns the first reason why Do would refuse an operation, or nil.
func (p *redisPort) Check(who *redis.Caller, ops []redis.Op) error {
	if err := p.served(); err != nil {
		return err
	}
	p.caller = who
	defer func() { p.caller = nil }()
	rehearsal := p.store.Rehearse()
	for i := range ops {
		op := &ops[i]
		var err error
		if op.Verb == redis.Get {
			err = p.mayGet(who, op)
		} else {
			w := p.writeOf(who, op)
			err = refused(rehearsal.Apply(&w))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *redisPort) Do(_ context.Context, who *redis.Caller, ops []redis.Op) {
	unserved := p.served()
	for i := range ops {
		op := &ops[i]
		switch {
		case unserved != nil:
			op.Err = unserved
		case op.Verb == redis.Get:
			op.Err = p.get(who, op)
		case op.Protocol || op.Verb == redis.VDel:
			op.Err = p.request(who, op)
		case op.Verb == redis.Set:
			if op.Err = p.apply(who, op); op.Err == nil {
				op.Yes, op.Entry.Version = true, p.version
			}
		default:
			_, op.Yes = p.store.Lookup(op.Key)
			op.Err = p.apply(who, op)
		}
	}
}

func (p *redisPort) mayGet(who *redis.Caller, op *redis.Op) error {
	reads := !op.ForUpdate || op.Shows
	if op.ForUpdate && !p.allowed(who, op.Key, true) || reads && !p.allowed(who, op.Key, false) {
		return errors.New(wire.TextNotAuthorized)
	}
	return nil
}

func (p *redisPort) get(who *redis.Caller, op *redis.Op) error {
	if err := p.mayGet(who, op); err != nil {
		return err
	}
	e, found := p.store.Lookup(op.Key)
	if found {
		op.Yes = true
		op.Entry = redis.Entry{Value: e.Value(), Version: e.Version(), Expires: e.Expires(), Encoding: redis.Encoding(e.Mark())}
	}
	return nil
}

// writeOf returns the change that a SET or DEL of Redis makes.
func (p *redisPort) writeOf(who *redis.Caller, op *redis.Op) store.Write {
	if op.Verb == redis.Del {
		return store.Write{ClientID: who.ID, Username: who.User, Cause: store.CauseDel, Key: op.Key, Delete: true}
	}
	w := store.Write{ClientID: who.ID, Username: who.User, Cause: store.CauseSet, Key: op.Key, Value: op.Value, Expires: op.Expires, Persist: p.persisted(op.Key), Mark: byte(op.Encoding)}
	if w.Expires.IsZero() && op.PX > 0 {
		w.Expires = p.now().Add(time.Duration(min(op.PX, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond)
	}
	if !w.Expires.IsZero() {
		w.Cause = store.CauseSetPX
	}
	return w
}

// persisted reports whether the last write of a key asked to keep the key on disk. Redis clients
// cannot ask for this, so their writes keep the key's present setting.
func (p *redisPort) persisted(key []byte) bool {
	if p.journal == nil {
		return false
	}
	e, found := p.store.Lookup(key)
	return found && e.Persist()
}

func (p *redisPort) apply(who *redis.Caller, op *redis.Op) error {
	p.caller = who
	text := p.store.Apply(p.writeOf(who, op))
	p.caller = nil
	return refused(text)
}

// request executes an operation as a request in the store's own protocol.
func (p *redisPort) request(who *redis.Caller, op *redis.Op) error {
	if op.Shows && !p.allowed(who, op.Key, false) {
		return errors.New(wire.TextNotAuthorized)
	}
	words := [][]byte{[]byte(op.Verb.String()), op.Key}
	if op.Verb == redis.Set || op.Verb == redis.VDel {
		words = append(words, op.Value)
	}
	words = append(words, [...][][]byte{nil, {[]byte(wire.OptionNX)}, {[]byte(wire.OptionNEX)}}[op.If]...)
	if op.PX > 0 {
		words = append(words, []byte(wire.OptionPX), strconv.AppendInt(nil, op.PX, 10))
	}
	now := Version{Wall: p.now().UnixMilli(), Node: who.ID}
	p.caller = who
	resp := p.store.Do(&store.Request{
		ClientID: who.ID, Username: who.User, Words: words, Timestamp: []byte(now.String()), Fence: op.Fence, Persist: p.persisted(op.Key),
	}, nil)
	p.caller = nil
	if len(resp.Version) > 0 {
		op.Entry.Version = resp.Version
	}
	reply, err := wire.ParseReply(resp.Payload)
	if err != nil {
		return err
	}
	if refusal := reply.StoreError(); refusal != nil {
		return errors.New(refusal.Text)
	}
	switch reply.Value.Kind {
	case wire.SimpleString:
		op.Yes = true
	case wire.Integer:
		op.Yes, op.Differs = reply.Value.Int > 0, reply.Value.Int < 0
	}
	return nil
}

// Limits for one page of Scan. Other clients wait while Scan collects a page.
const (
	maxScanBytes  = 256 << 10 // total length of the examined keys
	maxRestricted = 1000      // number of examined keys, if the authorization for each key must be checked
)

// Scan returns a page of keys in byte order. The parameter want limits the number of keys that Scan
// examines. The token of the next page is the byte '>' followed by the last examined key; the byte keeps
// the token from being empty.
func (p *redisPort) Scan(_ context.Context, who *redis.Caller, prefix, token []byte, want int) (keys [][]byte, next []byte, err error) {
	if err := p.served(); err != nil {
		return nil, nil, err
	}
	start := prefix
	var after []byte
	if token != nil {
		after = token[1:]
		if bytes.Compare(after, prefix) > 0 {
			start = after
		}
	}
	if p.store.Restricted() {
		want = min(want, maxRestricted)
	}
	var last []byte
	looked, size := 0, 0
	for e := range p.store.From(start) {
		key := e.Key()
		switch {
		case !bytes.HasPrefix(key, prefix):
			return keys, nil, nil
		case token != nil && bytes.Equal(key, after):
			continue
		case looked == want, size > maxScanBytes:
			return keys, append([]byte{'>'}, last...), nil
		}
		looked++
		size += len(key)
		last = key
		if p.allowed(who, key, false) {
			keys = append(keys, key)
		}
	}
	return keys, nil, nil
}

// Watch and Unwatch do nothing: the port reports every change to the Redis server anyway.
func (p *redisPort) Watch(context.Context, []byte) error { return nil }
func (p *redisPort) Unwatch([]byte)                      {}

func (p *redisPort) Notifies(key []byte) bool { return p.store.Notifies(key) }

// serverLock is the lock that Redis commands acquire on a [Server].
type serverLock struct{ s *Server }

// Lock locks the broker when the journal has room, removes a few expired keys, and stops the store's clock until
// Unlock. The commands between Lock and Unlock are one atomic step, so all have the same time. Reading the clock for
// each command would cost as much as finding the command's key.
func (l serverLock) Lock() {
	l.s.broker.Lock()
	l.s.journal.admit()
	l.s.stopped = l.s.now()
	if !l.Full() {
		l.s.store.Tidy()
	}
}

func (l serverLock) Full() bool { return l.s.backlog.bytes > maxBacklog }

func (l serverLock) AwaitRoom() {
	l.s.broker.Lock()
	defer l.s.broker.Unlock()
	l.s.awaitRoom(always)
}

func (l serverLock) Unlock() {
	s := l.s
	s.stopped = time.Time{}
	s.notify()
	s.arm()
	s.broker.Unlock()
	s.changed.Broadcast()
}

func (s *Server) listenRedis() error {
	if s.opts.Redis == "" {
		return nil
	}
	ln, err := s.listenOn(s.opts.Redis, nil)
	if err != nil {
		return err
	}
	o := redis.Options{Turns: s.broker, Notify: s.opts.RedisNotify, Log: s.opts.Log, Reserve: s.broker.Reserve, Memory: s.opts.Limits.MaxBytes, At: s.at}
	switch {
	case s.opts.CheckLogin != nil:
		o.Login, o.Certified = namedLogin(s.opts.CheckLogin), redis.CommonName
	case s.opts.CheckToken != nil:
		o.Login = func(_ string, token []byte) (string, time.Time, bool) {
			login, err := s.opts.CheckToken(token, s.Now())
			return login.User, login.Expires, err == nil
		}
	default:
		o.Identify = redis.CommonName
	}
	if s.policy != nil {
		o.LoggedIn = s.redisLoggedIn
	}
	port, err := newRedisPort(serverLock{s}, s.store, s.journal, s.now, o, s.opts.Observe)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	if s.policy != nil {
		port.may, port.rule = s.redisMayUse, s.redisRule
	}
	s.broker.Lock()
	s.port, s.redisAt = port, ln
	s.broker.Unlock()
	port.server.Serve(ln)
	return nil
}

// namedLogin returns a login function that calls check with the user name and the password, and returns
// the user name and the result of check. If check is nil, namedLogin returns nil.
func namedLogin(check func(string, []byte) bool) func(string, []byte) (string, time.Time, bool) {
	if check == nil {
		return nil
	}
	return func(user string, password []byte) (string, time.Time, bool) {
		return user, time.Time{}, check(user, password)
	}
}

// at calls do, with the broker locked, at a time on the store's clock, unless cancel is called first.
func (s *Server) at(t time.Time, do func()) (cancel func()) {
	s.broker.Lock()
	defer s.broker.Unlock()
	timer := s.broker.At(t, do)
	return func() {
		s.broker.Lock()
		defer s.broker.Unlock()
		s.broker.Cancel(timer)
	}
}

// RedisURL returns the URL for Redis clients on this machine, or "" if there is no Redis port.
func (s *Server) RedisURL() string { return localURL("redis", s.redisAt, s.opts.TLS != nil, "") }

// attachedLock is the lock that Redis commands acquire on an [Attached] store.
type attachedLock struct{ a *Attached }

// Lock locks the store when the journal has room, and removes a few expired keys.
func (l attachedLock) Lock() {
	l.a.mu.Lock()
	l.a.journal.admit()
	l.a.engine.Tidy()
}

func (l attachedLock) Unlock() {
	l.a.notify()
	l.a.signal() // expiries may have changed
	l.a.mu.Unlock()
}

// Full returns false: an attached store does not wait for its notifications.
func (attachedLock) Full() bool { return false }

func (attachedLock) AwaitRoom() {}

// RedisOptions configure the Redis port of an [Attached] store.
type RedisOptions struct {
	Listen     string                                      // host:port
	Notify     string                                      // see Options.RedisNotify
	TLS        *tls.Config                                 // nil = plain TCP
	CheckLogin func(username string, password []byte) bool // nil = any client may log in
	Log        *slog.Logger                                // nil = silent

	// Observe, unless nil, is called for each Redis command, with the store locked: Observe must not call
	// the store. The event includes the version and the notified clients that the store reported.
	Observe func(Event)
}

// ServeRedis starts to serve the store to Redis clients, and returns the URL for clients on this
// machine. Close stops the service. ServeRedis must be called at most once.
func (a *Attached) ServeRedis(o RedisOptions) (url string, err error) {
	if a.engine == nil {
		return "", ErrClosed // a zero Attached
	}
	ln, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return "", fmt.Errorf("listen on %s: %w", o.Listen, err)
	}
	if o.TLS != nil {
		ln = admission.ListenTLS(ln, o.TLS, new(admission.Line))
	}
	opts := redis.Options{Notify: o.Notify, Login: namedLogin(o.CheckLogin), Log: o.Log}
	port, err := newRedisPort(attachedLock{a}, a.engine, a.journal, a.opts.Now, opts, copying(o.Observe))
	if err != nil {
		return "", errors.Join(err, ln.Close())
	}
	port.proven = a.isProven
	a.mu.Lock()
	a.port = port
	a.mu.Unlock()
	port.server.Serve(ln)
	return localURL("redis", ln, o.TLS != nil, ""), nil
}
