package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/testkit/redistest"
	"github.com/sscli/sscli/internal/wire"
)

// A far is a remote backend in front of an emulator, limited to the operations of the store's protocol.
type far struct {
	store *emulator.Server

	mu       sync.Mutex
	fail     error // error of each operation
	watching []string
	held     chan struct{} // makes Watch wait; see hold
	slow     chan struct{} // operations wait until it is closed; nil = they do not wait
}

func (f *far) Do(_ context.Context, who *redis.Caller, ops []redis.Op) {
	for i := range ops {
		f.do(who, &ops[i])
	}
}

func (f *far) do(who *redis.Caller, op *redis.Op) {
	f.mu.Lock()
	op.Err = f.fail
	slow := f.slow
	f.mu.Unlock()
	if slow != nil {
		<-slow
	}
	if op.Err != nil {
		return
	}
	words := []string{op.Verb.String(), string(op.Key)}
	if op.Verb == redis.Set || op.Verb == redis.VDel {
		words = append(words, string(op.Value))
	}
	words = append(words, [...][]string{nil, {"NX"}, {"NEX"}}[op.If]...)
	if op.PX > 0 {
		words = append(words, "PX", fmt.Sprint(op.PX))
	}
	properties := []emulator.Property{{Name: "__ts", Value: wire.Version{Wall: f.store.Now().UnixMilli(), Node: "far"}.String()}}
	if op.Fence != nil {
		properties = append(properties, emulator.Property{Name: "__ft", Value: string(op.Fence)})
	}
	resp := f.store.Do(emulator.NewRequest(who.ID, wire.AppendRequest(nil, words...), properties...))
	reply, err := wire.ParseReply(resp.Payload)
	if err == nil && reply.StoreError() != nil {
		err = errors.New(reply.StoreError().Text)
	}
	op.Err = err
	switch v := reply.Value; v.Kind {
	case wire.Blob:
		op.Yes, op.Entry.Value = true, v.Text
	case wire.SimpleString:
		op.Yes = true
	case wire.Integer:
		op.Yes, op.Differs = v.Int > 0, v.Int < 0
	}
	if resp.Version != (wire.Version{}) {
		op.Entry.Version = []byte(resp.Version.String())
	}
}

func (f *far) Scan(_ context.Context, _ *redis.Caller, prefix, token []byte, want int) (keys [][]byte, next []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, nil, f.fail
	}
	for _, k := range f.store.Keys() {
		switch {
		case !strings.HasPrefix(k, string(prefix)), token != nil && k <= string(token):
		case len(keys) == min(want, 3):
			return keys, keys[len(keys)-1], nil
		default:
			keys = append(keys, []byte(k))
		}
	}
	return keys, nil, nil
}

func (f *far) Watch(_ context.Context, key []byte) error {
	f.mu.Lock()
	held, err := f.held, f.fail
	if err == nil && !slices.Contains(f.watching, string(key)) {
		f.watching = append(f.watching, string(key))
	}
	f.mu.Unlock()
	if held != nil {
		<-held
		<-held
	}
	return err
}

// hold makes the next Watch wait. It returns a channel that receives when Watch has begun; closing the
// channel lets Watch return.
func (f *far) hold() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = make(chan struct{})
	return f.held
}

func (f *far) Unwatch(key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watching = slices.DeleteFunc(f.watching, func(k string) bool { return k == string(key) })
}

func (f *far) watched() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.watching, " ")
}

func (f *far) failWith(err error) {
	f.mu.Lock()
	f.fail = err
	f.mu.Unlock()
}

// A peer is a client whose replies are compared line by line.
type peer struct {
	*redistest.Client
	t *testing.T
}

func (p *peer) send(command string) {
	p.t.Helper()
	if err := p.Send(strings.Fields(command)...); err != nil {
		p.t.Fatal(err)
	}
}

// next returns the lines of the next reply or message, joined by spaces.
func (p *peer) next() string {
	p.t.Helper()
	f, err := p.Frame()
	if err != nil {
		p.t.Fatalf("%v after %q", err, f)
	}
	return strings.TrimSuffix(strings.ReplaceAll(string(f), "\r\n", " "), " ")
}

func (p *peer) expect(command, want string) {
	p.t.Helper()
	p.send(command)
	if got := p.next(); got != want {
		p.t.Errorf("%s: %s, want %s", command, got, want)
	}
}

func startFar(t *testing.T, o redis.Options) (f *far, srv *redis.Server, dial func() *peer) {
	t.Helper()
	f = &far{store: emulator.Start(t)}
	o.Backend, o.Name = f, "gateway"
	srv, err := redis.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv.Serve(ln)
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, srv, func() *peer {
		return &peer{redistest.Dial(t, "tcp", ln.Addr().String()), t}
	}
}

// TestRemote checks what a remote store supports, and how the rest is refused.
func TestRemote(t *testing.T) {
	t.Parallel()
	f, _, dial := startFar(t, redis.Options{})
	p := dial()
	for _, c := range []struct{ command, want string }{
		{"SET k v", "+OK"}, {"GET k", "$1 v"}, {"SET k w NX", "$-1"}, {"SET n w NX EX 100", "+OK"}, {"SETNX k w", ":0"}, {"SETNX m w", ":1"},
		{"SETEX k 100 v2", "+OK"}, {"PSETEX k 100000 v3", "+OK"}, {"SET k v3 PXAT 9000000000000", "+OK"}, {"SET k v3 EXAT 9000000000", "+OK"},
		{"MGET k nothing", "*2 $2 v3 $-1"}, {"EXISTS k k nothing", ":2"}, {"STRLEN k", ":2"}, {"GETRANGE k 1 -1", "$1 3"}, {"TYPE k", "+string"}, {"TYPE nothing", "+none"},
		{"TOUCH k k nothing", ":2"}, {"GETBIT k 1", ":1"}, {"GETBIT nothing 1", ":0"}, {"OBJECT ENCODING k", "$6 embstr"}, {"OBJECT REFCOUNT nothing", "$-1"}, {"MEMORY USAGE nothing", "$-1"},
		{"FUNCTION FLUSH", "+OK"}, {"SCRIPT EXISTS x", "*1 :0"}, {"ROLE", "*3 $6 master :0 *0"}, {"WAIT 1 0", ":0"}, {"MOVE k 1", "-ERR DB index is out of range"}, {"SWAPDB 0 0", "+OK"},
		{"DEL k nothing", ":1"}, {"UNLINK m", ":1"}, {"MSET a 1 b 2", "+OK"}, {"DELEX a IFEQ 2", ":0"}, {"DELIFEQ a 1", ":1"}, {"DELIFEQ a 1", ":0"},
		{"KEYS *", "*2 $1 b $1 n"}, {"DBSIZE", ":2"}, {"KEYS n*", "*1 $1 n"}, {"SCAN 0", "*2 $1 0 *2 $1 b $1 n"},
		{"SS.SET l me NEX PX 100000", ""}, {"SS.VDEL l you", ":-1"}, {"SS.VDEL l me", ":1"}, {"SS.DEL l", ":0"}, {"SS.GET l", "*-1"}, {"SS.VERSION l", "$-1"},
		{"PING", "+PONG"}, {"SELECT 0", "+OK"},

		{"SET k v XX", "-ERR unsupported: SET with XX cannot be done atomically on a remote state store"},
		{"SET k v GET", "-ERR unsupported: SET with GET cannot be done atomically on a remote state store"},
		{"SET k v KEEPTTL", "-ERR unsupported: SET with KEEPTTL cannot be done atomically on a remote state store"},
		{"SET k v PX 0", "-ERR invalid expire time in 'set' command"},
		{"SET k v BAD", "-ERR syntax error"},
		{"EXPIRE k 10", "-ERR unsupported: the state store can neither show nor change an expiry; use SET key value PX ms"},
		{"SELECT 1", "-ERR DB index is out of range"},
		{"LPUSH k v", "-ERR unknown command 'LPUSH', the state store holds strings only"},
		{"EVAL x 0", "-ERR unsupported: this server does not run scripts"},
		{"GET", "-ERR wrong number of arguments for 'get' command"},
		{"CONFIG SET notify-keyspace-events KEAm", "-ERR unsupported: a remote store does not report misses (m) and new keys (n)"},
		{"PSUBSCRIBE __key*__:*", "-ERR unsupported: a remote store notifies by exact key: SUBSCRIBE __keyspace@0__:KEY, or start the gateway with --watch KEY"},
		{"SUBSCRIBE __keyevent@0__:set", "-ERR unsupported: a remote store notifies by exact key: SUBSCRIBE __keyspace@0__:KEY, or start the gateway with --watch KEY"},
	} {
		if c.want == "" {
			p.send(c.command)
			p.next()
			continue
		}
		p.expect(c.command, c.want)
	}
	p.expect("SET idle v", "+OK")
	p.send("OBJECT IDLETIME idle")
	if seconds, err := strconv.Atoi(strings.TrimPrefix(p.next(), ":")); err != nil || seconds < 0 || seconds > 60 {
		t.Errorf("OBJECT IDLETIME: %d, %v", seconds, err)
	}
	for _, name := range []string{"INCR k", "DECR k", "INCRBY k 1", "DECRBY k 1", "INCRBYFLOAT k 1", "APPEND k v", "SETRANGE k 0 v", "SETBIT k 0 1", "MSETNX a b", "RENAME a b",
		"RENAMENX a b", "COPY a b", "GETSET k v", "GETDEL k", "GETEX k", "MULTI", "EXEC", "DISCARD", "WATCH k", "UNWATCH", "FLUSHDB", "FLUSHALL"} {
		p.expect(name, "-ERR unsupported: "+strings.Fields(name)[0]+" cannot be done atomically on a remote state store")
	}
	for _, name := range []string{"PEXPIRE k 1", "EXPIREAT k 1", "PEXPIREAT k 1", "TTL k", "PTTL k", "EXPIRETIME k", "PEXPIRETIME k", "PERSIST k"} {
		p.expect(name, "-ERR unsupported: the state store can neither show nor change an expiry; use SET key value PX ms")
	}
	f.failWith(redis.Unknown(`SET "k" got no answer within 10s`))
	p.expect("SET k v", `-UNKNOWN SET "k" got no answer within 10s; it may have been applied`)
	f.failWith(redis.NotSent())
	for _, command := range []string{"SET k v", "GET k", "MGET k j", "TOUCH k", "GETBIT k 0", "OBJECT ENCODING k", "MEMORY USAGE k", "DEL k", "KEYS *", "SCAN 0", "DBSIZE", "RANDOMKEY", "MSET a b", "SUBSCRIBE __keyspace@0__:k"} {
		p.expect(command, "-LOADING the broker cannot be reached; nothing was sent")
	}
	f.failWith(errors.New("the quota has been exceeded"))
	p.expect("SET k v", "-ERR the quota has been exceeded")
	f.failWith(errors.New("line\r\nbreaks"))
	p.expect("SET k v", "-ERR line  breaks")
	if _, err := redis.New(redis.Options{Backend: f, Notify: "KEm"}); err == nil {
		t.Error("a remote backend with m")
	}
}

// TestRemoteWatches: keys are watched while a client is subscribed, and a gap ends subscriptions.
func TestRemoteWatches(t *testing.T) {
	t.Parallel()
	f, srv, dial := startFar(t, redis.Options{Notify: "KEA"})
	p, q, other := dial(), dial(), dial()
	for _, c := range []*peer{p, q} {
		c.expect("SUBSCRIBE __keyspace@0__:k", "*3 $9 subscribe $16 __keyspace@0__:k :1")
	}
	other.expect("SUBSCRIBE news __keyspace@0__:j", "*3 $9 subscribe $4 news :1")
	other.next()
	if got := f.watched(); got != "k j" {
		t.Errorf("watching %s", got)
	}
	srv.Changed(redis.Change{Key: []byte("k"), Kind: redis.StoredTill})
	srv.Changed(redis.Change{Key: []byte("k"), Kind: redis.Expired})
	for _, event := range []string{"set", "expire", "expired"} {
		want := fmt.Sprintf("*3 $7 message $16 __keyspace@0__:k $%d %s", len(event), event)
		for _, c := range []*peer{p, q} {
			if got := c.next(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
	p.expect("UNSUBSCRIBE", "*3 $11 unsubscribe $16 __keyspace@0__:k :0")
	if got := f.watched(); got != "k j" {
		t.Errorf("watching %s after one of two has left", got)
	}
	srv.Lost([]byte("k"), "a gap")
	q.Closed(t)
	for begin := time.Now(); f.watched() != "j" && time.Since(begin) < redistest.Patience; {
		p.expect("PING", "+PONG")
	}
	if got := f.watched(); got != "j" {
		t.Errorf("watching %s after all have left", got)
	}
	p.expect("PUBLISH news x", ":1")
	other.next()
	srv.Lost(nil, "a gap")
	other.Closed(t)
}

// TestWatchBesideUnsubscribe: one client subscribes while the last other subscriber leaves.
func TestWatchBesideUnsubscribe(t *testing.T) {
	t.Parallel()
	f, srv, dial := startFar(t, redis.Options{Notify: "KEA"})
	p, q := dial(), dial()
	p.expect("SUBSCRIBE __keyspace@0__:k", "*3 $9 subscribe $16 __keyspace@0__:k :1")
	held := f.hold()
	q.send("SUBSCRIBE __keyspace@0__:k")
	held <- struct{}{}
	p.expect("UNSUBSCRIBE", "*3 $11 unsubscribe $16 __keyspace@0__:k :0")
	close(held)
	if got, want := q.next(), "*3 $9 subscribe $16 __keyspace@0__:k :1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := f.watched(); got != "k" {
		t.Errorf("watching %q, want k", got)
	}
	srv.Changed(redis.Change{Key: []byte("k"), Kind: redis.Stored})
	if got, want := q.next(), "*3 $7 message $16 __keyspace@0__:k $3 set"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestLostBesideSubscribe: a watch ends while a new subscription is about to use it.
func TestLostBesideSubscribe(t *testing.T) {
	t.Parallel()
	for _, key := range [][]byte{[]byte("k"), nil} {
		f, srv, dial := startFar(t, redis.Options{Notify: "KEA"})
		p := dial()
		held := f.hold()
		p.send("SUBSCRIBE __keyspace@0__:k")
		held <- struct{}{}
		srv.Lost([]byte("another"), "a gap")
		srv.Lost(key, "a gap")
		close(held)
		p.Closed(t)
	}
	f, srv, dial := startFar(t, redis.Options{Notify: "KEA"})
	p := dial()
	held := f.hold()
	p.send("SUBSCRIBE __keyspace@0__:k")
	held <- struct{}{}
	srv.Lost([]byte("another"), "a gap")
	close(held)
	p.next()
	p.expect("UNSUBSCRIBE", "*3 $11 unsubscribe $16 __keyspace@0__:k :0")
}

// TestRemotePatterns: a gateway that was told which keys to watch supports patterns.
func TestRemotePatterns(t *testing.T) {
	t.Parallel()
	_, srv, dial := startFar(t, redis.Options{Notify: "KEA", Patterns: true})
	p := dial()
	p.expect("PSUBSCRIBE *", "*3 $10 psubscribe $1 * :1")
	srv.Changed(redis.Change{Key: []byte("k"), Kind: redis.Deleted})
	for _, want := range []string{"*4 $8 pmessage $1 * $16 __keyspace@0__:k $3 del", "*4 $8 pmessage $1 * $18 __keyevent@0__:del $1 k"} {
		if got := p.next(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	srv.Lost([]byte("k"), "a gap")
	p.Closed(t)
}

// TestGoneSubscriber: a subscriber whose connection has ended is not counted, even while one of its commands
// has no reply yet.
func TestGoneSubscriber(t *testing.T) {
	t.Parallel()
	f, _, dial := startFar(t, redis.Options{})
	f.slow = make(chan struct{})
	defer close(f.slow)
	gone, p := dial(), dial()
	gone.send("HELLO 3")
	gone.next()
	gone.expect("SUBSCRIBE news", ">3 $9 subscribe $4 news :1")
	p.expect("PUBLISH news x", ":1")
	gone.send("GET k")
	for !strings.Contains(p.Do(t, "CLIENT", "LIST"), "cmd=get ") {
	}
	gone.Conn.Close()
	deadline := time.Now().Add(time.Minute)
	for p.Do(t, "PUBLISH", "news", "x") != ":0\r\n" {
		if time.Now().After(deadline) {
			t.Fatal("PUBLISH counts a subscriber that is gone")
		}
	}
	p.expect("PUBSUB NUMSUB news", "*2 $4 news :0")
}
