package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
)

const timeout = patience // of requests that are answered

// TestCommands runs the commands in the table of docs/redis.md.
func TestCommands(t *testing.T) {
	const (
		atomically = "-ERR unsupported: %s cannot be done atomically on a remote state store"
		noExpiry   = "-ERR unsupported: the state store can neither show nor change an expiry; use SET key value PX ms"
		exactKey   = "-ERR unsupported: a remote store notifies by exact key: SUBSCRIBE __keyspace@0__:KEY, or start the gateway with --watch KEY"
		noScripts  = "-ERR unsupported: this server does not run scripts"
	)
	onBoth(t, emulator.Options{}, func(t *testing.T, address string) {
		f := start(t, address, timeout, "")
		c := f.connect(t)
		for _, row := range []struct{ command, reply string }{
			{"SET a 1", "+OK"}, {"GET a", "1"}, {"GET none", "nil"}, {"SET a 2 NX", "nil"}, {"SET b 2 NX PX 60000", "+OK"},
			{"SET e 1 EX 60", "+OK"}, {"SET e 1 EXAT 99999999999", "+OK"}, {"SET e 1 PXAT 9999999999999", "+OK"},
			{"SETEX e 60 x", "+OK"}, {"PSETEX e 60000 y", "+OK"}, {"SETNX e z", ":0"}, {"SETNX new z", ":1"}, {"GET e", "y"},
			{"SET e 1 PX 0", "-ERR invalid expire time in 'set' command"}, {"SETEX e -1 x", "-ERR invalid expire time in 'setex' command"},
			{"SET e 1 EX 9223372036854775", "-ERR invalid expire time in 'set' command"},

			{"SET a 3 XX", fmt.Sprintf(atomically, "SET with XX")}, {"SET a 3 GET", fmt.Sprintf(atomically, "SET with GET")},
			{"SET a 3 KEEPTTL", fmt.Sprintf(atomically, "SET with KEEPTTL")},
			{"GETSET a 3", fmt.Sprintf(atomically, "GETSET")}, {"GETDEL a", fmt.Sprintf(atomically, "GETDEL")}, {"GETEX a", fmt.Sprintf(atomically, "GETEX")},

			{"MGET a none b a", "[1 nil 2 1]"}, {"EXISTS a none b a", ":3"}, {"STRLEN a", ":1"}, {"STRLEN none", ":0"},
			{"SET word hello", "+OK"}, {"GETRANGE word 1 -2", "ell"}, {"TYPE a", "+string"}, {"TYPE none", "+none"},

			{"DEL a b none", ":2"}, {"UNLINK new new", ":1"}, {"GET a", "nil"},
			{"SET a 1", "+OK"}, {"DELEX a IFEQ 2", ":0"}, {"DELIFEQ a 2", ":0"}, {"DELIFEQ none 2", ":0"}, {"DELIFEQ a 1", ":1"},
			{"SET a 1", "+OK"}, {"DELEX a IFEQ 1", ":1"}, {"GET a", "nil"},
			{"MSET a 1 b 2 a 3", "+OK"}, {"MGET a b", "[3 2]"},

			{"INCR a", fmt.Sprintf(atomically, "INCR")}, {"DECRBY a 1", fmt.Sprintf(atomically, "DECRBY")}, {"INCRBYFLOAT a 1", fmt.Sprintf(atomically, "INCRBYFLOAT")},
			{"APPEND a x", fmt.Sprintf(atomically, "APPEND")}, {"SETRANGE a 1 x", fmt.Sprintf(atomically, "SETRANGE")}, {"MSETNX a 1", fmt.Sprintf(atomically, "MSETNX")},
			{"RENAME a b", fmt.Sprintf(atomically, "RENAME")}, {"RENAMENX a b", fmt.Sprintf(atomically, "RENAMENX")}, {"COPY a b", fmt.Sprintf(atomically, "COPY")},
			{"FLUSHDB", fmt.Sprintf(atomically, "FLUSHDB")}, {"FLUSHALL", fmt.Sprintf(atomically, "FLUSHALL")},
			{"MULTI", fmt.Sprintf(atomically, "MULTI")}, {"EXEC", fmt.Sprintf(atomically, "EXEC")}, {"DISCARD", fmt.Sprintf(atomically, "DISCARD")},
			{"WATCH a", fmt.Sprintf(atomically, "WATCH")}, {"UNWATCH", fmt.Sprintf(atomically, "UNWATCH")},

			{"EXPIRE a 10", noExpiry}, {"PEXPIRE a 10", noExpiry}, {"EXPIREAT a 10", noExpiry}, {"PEXPIREAT a 10", noExpiry}, {"TTL a", noExpiry},
			{"PTTL a", noExpiry}, {"EXPIRETIME a", noExpiry}, {"PEXPIRETIME a", noExpiry}, {"PERSIST a", noExpiry},

			{"KEYS ?", "[a b e]"}, {"KEYS wor*", "[word]"}, {`KEYS \word`, "[word]"}, {"DBSIZE", ":4"}, {"SCAN 0 MATCH w*", "[0 [word]]"},

			{"PSUBSCRIBE __key*__:*", exactKey}, {"SUBSCRIBE __keyevent@0__:set", exactKey},

			{"SS.SET s 1 FT nonsense", "-ERR malformed timestamp"}, {"SS.VDEL s 1", ":0"}, {"SS.DEL s", ":0"}, {"SS.VERSION s", "nil"},
			{"SET fenced x", "+OK"}, {"SS.VDEL fenced y", ":-1"}, {"SS.VDEL fenced x", ":1"},

			{"PING", "+PONG"}, {"ECHO x", "x"}, {"SELECT 0", "+OK"}, {"SELECT 1", "-ERR DB index is out of range"},
			{"CONFIG GET notify-keyspace-events", "[notify-keyspace-events ]"}, {"CONFIG SET notify-keyspace-events KEA", "+OK"},
			{"CONFIG GET notify-keyspace-events", "[notify-keyspace-events AKE]"},
			{"CONFIG SET notify-keyspace-events Kn", "-ERR unsupported: a remote store does not report misses (m) and new keys (n)"},
			{"EVAL x 0", noScripts}, {"LPUSH a 1", "-ERR unknown command 'LPUSH', the state store holds strings only"},
			{"GET", "-ERR wrong number of arguments for 'get' command"},
		} {
			c.send(strings.Fields(row.command)...)
			if got, err := c.reply(); err != nil || got != row.reply {
				t.Errorf("%s: got %q, %v, want %q", row.command, got, err, row.reply)
			}
		}
		c.do("-ERR the key length is zero", "SET", "", "x")
		c.do("-ERR the key length is zero", "GET", "")
	})
}

// TestVersions reads and fences with the commands that Redis does not have.
func TestVersions(t *testing.T) {
	onBoth(t, emulator.Options{}, func(t *testing.T, address string) {
		f := start(t, address, timeout, "")
		s := dial(t, client.Options{Address: address})
		c := f.connect(t)
		stored, err := s.Set(t.Context(), "k", []byte("v"))
		if err != nil {
			t.Fatal(err)
		}
		c.do("[v "+stored.Version.String()+"]", "SS.GET", "k")
		c.do(stored.Version.String(), "SS.VERSION", "k")
		c.do("nil", "SS.GET", "none")
		c.do("[:-1 "+stored.Version.String()+"]", "SS.SET", "k", "w", "NX")
		c.send("SS.SET", "lock", "me", "NEX", "PX", "60000")
		reply, err := c.reply()
		token := strings.TrimSuffix(strings.TrimPrefix(reply, "[+OK "), "]")
		if _, bad := client.ParseVersion(token); err != nil || bad != nil {
			t.Fatalf("%q, %v, %v", reply, err, bad)
		}
		c.send("SS.SET", "k", "fenced", "FT", token)
		if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "[+OK ") {
			t.Fatalf("%q, %v", reply, err)
		}
		const required = "-ERR a fencing token is required for this request"
		c.do(required, "SET", "k", "x")
		c.do(required, "DEL", "k")
		c.do(required, "SS.VDEL", "k", "fenced")
		c.do("-ERR the request fencing token is a lower version than the fencing token protecting the resource", "SS.SET", "k", "x", "FT", "1:0:a")
		c.do("fenced", "GET", "k")
		c.do(":-1", "SS.VDEL", "k", "other", "FT", token)
		c.do(":1", "SS.VDEL", "k", "fenced", "FT", token)
	})
}

// TestBytes: keys and values may be any bytes.
func TestBytes(t *testing.T) {
	onBoth(t, emulator.Options{Variants: emulator.Variants{ScanGlobBytes: true}}, func(t *testing.T, address string) {
		f := start(t, address, timeout, "")
		c := f.connect(t)
		odd := "\r\n\x00*[\xff\\"
		c.do("+OK", "SET", odd+"key", odd)
		c.do(odd, "GET", odd+"key")
		c.do("[0 ["+odd+"key]]", "SCAN", "0", "MATCH", "\r\n\x00\\*\\[\xff\\\\*")
	})
}

// TestScanPages scans a store that answers in pages, and one that does not know SCAN.
func TestScanPages(t *testing.T) {
	onBoth(t, emulator.Options{ScanPage: 3}, func(t *testing.T, address string) {
		f := start(t, address, timeout, "")
		c := f.connect(t)
		words := []string{"MSET"}
		for i := range 10 {
			words = append(words, "k"+strconv.Itoa(i), "v")
		}
		c.do("+OK", words...)
		c.do(":10", "DBSIZE")
		c.do("[k0 k1 k2 k3 k4 k5 k6 k7 k8 k9]", "KEYS", "*")
		var keys []string
		cursor := "0"
		for range 10 {
			c.send("SCAN", cursor)
			reply, err := c.reply()
			if err != nil {
				t.Fatal(err)
			}
			var page string
			cursor, page, _ = strings.Cut(strings.Trim(reply, "[]"), " [")
			keys = append(keys, strings.Fields(page)...)
			if cursor == "0" {
				break
			}
		}
		if len(keys) != 10 {
			t.Errorf("SCAN found %q", keys)
		}
	})
	onBoth(t, emulator.Options{Variants: emulator.Variants{NoScan: true}}, func(t *testing.T, address string) {
		f := start(t, address, timeout, "")
		c := f.connect(t)
		for _, command := range []string{"SCAN 0", "KEYS *", "DBSIZE", "RANDOMKEY"} {
			c.do("-ERR unknown command", strings.Fields(command)...)
		}
	})
}

// TestRefusals: the gateway passes on the store's error messages.
func TestRefusals(t *testing.T) {
	o := emulator.Options{MaxKeys: 1, Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != "secret" })}
	onBoth(t, o, func(t *testing.T, address string) {
		f := start(t, address, timeout, "K$")
		c := f.connect(t)
		c.do("-ERR not authorized", "GET", "secret")
		c.do("-ERR not authorized", "SUBSCRIBE", "__keyspace@0__:secret")
		c.do("+OK", "SET", "a", "1")
		c.do("-ERR the quota has been exceeded", "SET", "b", "1")
		c.do("-ERR the quota has been exceeded", "MSET", "a", "2", "b", "1")
		c.do("2", "GET", "a")
	})
}

// TestPipeline: replies come in the order of the requests.
func TestPipeline(t *testing.T) {
	onBoth(t, emulator.Options{}, func(t *testing.T, address string) {
		f := start(t, address, timeout, "")
		c := f.connect(t)
		var request bytes.Buffer
		const n = 300
		for i := range n {
			fmt.Fprintf(&request, "SET k %d\r\nGET k\r\n", i)
		}
		if _, err := c.Conn.Write(request.Bytes()); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			c.want("+OK")
			c.want(strconv.Itoa(i))
		}
	})
}

// TestNoAnswer: if a write gets no reply, its outcome is reported as unknown, and the connection stays open.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	const timeout = 2 * time.Second
	f := start(t, store.Addr().String(), timeout, "")
	c := f.connect(t)
	c.do("+OK", "SET", "k", "v")
	const unknown = ` got no answer within 2s; it may have been applied`
	for _, action := range []emulator.Action{{Drop: true}, {DropReply: true}} {
		store.Intercept(func(r emulator.Request) emulator.Action {
			if r.Verb() == "GET" && !strings.HasPrefix(r.Key(), "k") {
				return emulator.Action{}
			}
			return action
		})
		var waiting []func()
		for _, command := range [][]string{
			{`-UNKNOWN SET "k"` + unknown, "SET", "k", "w"},
			{`-UNKNOWN SET "k"` + unknown, "SET", "k", "w", "NX", "PX", "1000"},
			{`-UNKNOWN SET "a"` + unknown, "MSET", "a", "1", "b", "2"},
			{`-UNKNOWN DEL "k"` + unknown, "DEL", "k"},
			{`-UNKNOWN VDEL "k"` + unknown, "DELIFEQ", "k", "w"},
			{`-UNKNOWN VDEL "k"` + unknown, "SS.VDEL", "k", "w"},
			{`-ERR GET "k" got no answer within 2s`, "GET", "k"},
		} {
			c := f.connect(t)
			c.send(command[1:]...)
			waiting = append(waiting, func() {
				c.want(command[0])
				c.do("+PONG", "PING")
				c.do("nil", "GET", "other")
			})
		}
		for _, wait := range waiting {
			wait()
		}
	}
	// An invalid reply says no more about the outcome than no reply.
	store.Intercept(func(emulator.Request) emulator.Action {
		return emulator.Action{Rewrite: func(a *emulator.Answer) { a.Payload = []byte("$1\r\n") }}
	})
	c.send("SET", "k", "w")
	if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, `-UNKNOWN SET "k": the reply is invalid`) {
		t.Errorf("%q, %v", reply, err)
	}
	// The connection is lost before the reply arrives.
	store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{CutAfter: true} })
	c.send("SET", "k", "w")
	c.want(`-UNKNOWN SET "k": the connection to the broker was lost before an answer came; it may have been applied`)
	c.do(`-ERR GET "k": the connection to the broker was lost before an answer came`, "GET", "k")
	store.Intercept(nil)
	c.do("w", "GET", "k")
}

// TestBrokerAway: a request that was not sent may be repeated, and succeeds once the broker is back.
func TestBrokerAway(t *testing.T) {
	store := emulator.Start(t)
	f := start(t, store.Addr().String(), timeout, "KA")
	c := f.connect(t)
	c.do("+OK", "SET", "k", "v")
	store.RefuseConnect(func(string, string) byte { return 0x88 }) // reason code: server unavailable
	down := f.session.Down()
	store.DropAll()
	<-down
	const loading = "-LOADING the broker cannot be reached; nothing was sent"
	for _, command := range []string{"SET k w", "GET k", "DEL k", "MGET a b", "SS.VDEL k v", "SCAN 0", "KEYS *", "SUBSCRIBE __keyspace@0__:k"} {
		c.do(loading, strings.Fields(command)...)
	}
	c.do("+PONG", "PING")
	if n := store.State().Requests; n != 1 {
		t.Errorf("%d requests came, want only the first SET", n)
	}
	store.RefuseConnect(nil)
	await.State(t, store, func(s emulator.State) bool { return s.Clients == 1 }) // the gateway reconnects by itself
	c.do("v", "GET", "k")
	for _, change := range store.Changes() {
		if change.Key != "k" || string(change.Value) != "v" {
			t.Errorf("%+v was sent", change)
		}
	}
	f.log.await(t, "the connection to the broker was lost")
	f.log.await(t, "connected to the broker again")
}

// TestRefusedForGood: the gateway ends when the broker permanently refuses to let it connect. A command that comes
// before the end gets the refusal, not LOADING, which tells clients to try again.
func TestRefusedForGood(t *testing.T) {
	store := emulator.Start(t)
	f := start(t, store.Addr().String(), timeout, "")
	c := f.connect(t)
	store.RefuseConnect(func(string, string) byte { return 0x87 })
	store.DropAll()
	select {
	case err := <-f.ended:
		if e, ok := errors.AsType[*client.ReasonError](err); !ok || e.Code != 0x87 {
			t.Errorf("%v, want CONNACK 0x87", err)
		}
	case <-time.After(patience):
		t.Error("the gateway goes on")
	}
	for _, command := range [][]string{{"GET", "k"}, {"SET", "k", "v"}, {"SUBSCRIBE", "__keyspace@0__:k"}} {
		c.send(command...)
		if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "-ERR ") || !strings.Contains(reply, "0x87") {
			t.Errorf("%q: %q, %v", command, reply, err)
		}
	}
}

// TestTokenOfTheGateway: when the gateway's own token expires, the broker ends its connection, with everything that
// Redis clients opened through it. The gateway goes on with a new token, and ends without one.
func TestTokenOfTheGateway(t *testing.T) {
	issuer, err := emulator.NewIssuer("aio-internal")
	if err != nil {
		t.Fatal(err)
	}
	store := emulator.Start(t, emulator.Options{CheckToken: issuer.Verify})
	var token atomic.Pointer[string]
	renew := func() {
		text, err := issuer.Issue("gateway", store.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		token.Store(&text)
	}
	renew()
	f := startAs(t, client.Options{
		Address: store.Addr().String(), Timeout: timeout, ReadToken: func(context.Context) ([]byte, error) { return []byte(*token.Load()), nil },
	}, redis.Options{Notify: "KEA"})
	c, watching := f.connect(t), f.connect(t)
	c.do("+OK", "SET", "k", "v")
	watching.subscribe("SUBSCRIBE", "__keyspace@0__:k")
	store.RefuseConnect(func(string, string) byte { return 0x88 }) // until the key has changed
	down := f.session.Down()
	store.FastForward(2 * time.Hour)
	<-down
	if st := store.State(); st.Registrations > 0 {
		t.Errorf("%d registrations outlived the token", st.Registrations)
	}
	c.do("-LOADING the broker cannot be reached; nothing was sent", "GET", "k")
	if _, err := store.Set("k", "w"); err != nil {
		t.Fatal(err)
	}
	renew()
	store.RefuseConnect(nil)
	if got := watching.closed(); got != nil {
		t.Errorf("before the end there was %q", got)
	}
	c.do("w", "GET", "k")

	store.FastForward(2 * time.Hour)
	select {
	case err := <-f.ended:
		if e, ok := errors.AsType[*client.ReasonError](err); !ok || e.Code != 0x87 {
			t.Errorf("%v, want CONNACK 0x87", err)
		}
	case <-time.After(patience):
		t.Error("the gateway goes on")
	}
	c.send("GET", "k")
	if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "-ERR ") || !strings.Contains(reply, "0x87") {
		t.Errorf("after the end: %q, %v", reply, err)
	}
}

// TestNoStore: a broker without a store processes no request, so clients may repeat requests.
func TestNoStore(t *testing.T) {
	t.Parallel()
	f := start(t, mosquitto.Start(t, "", mosquitto.Anonymous).Addresses[0], timeout, "KA")
	c := f.connect(t)
	for _, command := range []string{"SET k v", "DEL k", "GET k", "MGET a b", "SCAN 0", "SUBSCRIBE __keyspace@0__:k"} {
		c.do("-LOADING no state store is listening on this broker (PUBACK 0x10)", strings.Fields(command)...)
	}
}
