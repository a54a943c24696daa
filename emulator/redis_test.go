package emulator_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

func startWithRedis(t testing.TB, o emulator.Options) (*emulator.Server, *redistest.Client) {
	t.Helper()
	o.Redis = "127.0.0.1:0"
	s := emulator.Start(t, o)
	return s, redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
}

func expectHeard(t testing.TB, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("heard\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRedisAndMQTT: each port reports the changes made on the other, in the same order.
func TestRedisAndMQTT(t *testing.T) {
	t.Parallel()
	s, c := startWithRedis(t, emulator.Options{RedisNotify: "EAn"})
	sub := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	sub.Do(t, "PSUBSCRIBE", "*")
	m := connect(t, s, "m")
	m.do("KEYNOTIFY k", "+OK")
	c.Expect(t, "+OK\r\n", "SET", "k", "1")
	m.Expect("notify 6B SET VALUE 1")
	m.ask("SET k 2 PX 100000")
	m.Expect("PUBACK 0x00", "notify 6B SET VALUE 2", "reply +OK")
	c.Expect(t, ":3\r\n", "INCR", "k")
	c.Expect(t, ":1\r\n", "PERSIST", "k")
	m.Expect("notify 6B SET VALUE 3", "notify 6B SET VALUE 3")
	c.Expect(t, "+OK\r\n", "RENAME", "k", "j")
	m.Expect("notify 6B DELETE")
	m.ask("SET k 4")
	m.Expect("PUBACK 0x00", "notify 6B SET VALUE 4", "reply +OK")
	m.ask("VDEL k 4")
	m.Expect("PUBACK 0x00", "notify 6B DELETE", "reply :1")
	m.ask("SET k 5 PX 1000")
	m.Expect("PUBACK 0x00", "notify 6B SET VALUE 5", "reply +OK")
	s.FastForward(time.Second)
	m.Expect("notify 6B DELETE")
	m.ask("DEL j")
	m.Expect("PUBACK 0x00", "reply :1")
	c.Expect(t, "+OK\r\n", "MSET", "k", "6", "j", "6")
	m.Expect("notify 6B SET VALUE 6")
	c.Expect(t, "+OK\r\n", "FLUSHALL")
	m.Expect("notify 6B DELETE")
	expectHeard(t, sub.Heard(t),
		"__keyevent@0__:new k", "__keyevent@0__:set k", "__keyevent@0__:set k", "__keyevent@0__:expire k", "__keyevent@0__:incrby k",
		"__keyevent@0__:persist k", "__keyevent@0__:new j", "__keyevent@0__:rename_from k", "__keyevent@0__:rename_to j",
		"__keyevent@0__:new k", "__keyevent@0__:set k", "__keyevent@0__:del k", "__keyevent@0__:new k", "__keyevent@0__:set k",
		"__keyevent@0__:expire k", "__keyevent@0__:expired k", "__keyevent@0__:del j", "__keyevent@0__:new k", "__keyevent@0__:set k", "__keyevent@0__:new j", "__keyevent@0__:set j")
}

// TestRedisVariants: variants of the protocol apply to SS.SET and SS.DEL, but not to Redis commands.
func TestRedisVariants(t *testing.T) {
	t.Parallel()
	s, c := startWithRedis(t, emulator.Options{Variants: emulator.Variants{KeepTTL: true, DelNoVersion: true}})
	expires := func(want bool) {
		t.Helper()
		if e, _ := s.Get("k"); e.Expires.IsZero() == want {
			t.Errorf("expires at %v, want an expiry: %v", e.Expires, want)
		}
	}
	c.Expect(t, "+OK\r\n", "SET", "k", "v", "PX", "100000")
	if got := c.Do(t, "SS.SET", "k", "w"); !strings.HasPrefix(got, "*2\r\n+OK\r\n") {
		t.Error(got)
	}
	expires(true)
	c.Expect(t, "+OK\r\n", "SET", "k", "x")
	expires(false)
	c.Expect(t, ":1\r\n", "SS.DEL", "k")
	c.Expect(t, ":0\r\n", "SS.DEL", "k")
}

// TestRedisExpiry: keys that expire are reported at once, however many there are.
func TestRedisExpiry(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	s, c := startWithRedis(t, emulator.Options{RedisNotify: "Ex"})
	sub := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	sub.Do(t, "SUBSCRIBE", "__keyevent@0__:expired")
	at := s.Now().Add(time.Hour).Truncate(time.Millisecond)
	var requests []byte
	for i := range keys {
		requests = append(requests, redistest.Request("SET", "k"+strconv.Itoa(i), "v", "PXAT", strconv.FormatInt(at.UnixMilli(), 10))...)
	}
	if _, err := c.Conn.Write(requests); err != nil {
		t.Fatal(err)
	}
	for range keys {
		if f, err := c.Frame(); err != nil || string(f) != "+OK\r\n" {
			t.Fatalf("%q, %v", f, err)
		}
	}
	s.FastForward(time.Hour)
	seen := make(map[string]bool)
	for range keys {
		f, err := sub.Frame()
		if err != nil {
			t.Fatal(err)
		}
		seen[string(f)] = true
	}
	late := s.Now().Sub(at)
	if len(seen) != keys || late < 0 {
		t.Errorf("%d different messages, the last %v after the time", len(seen), late)
	}
	c.Expect(t, ":0\r\n", "DBSIZE")
}

// TestRedisTransactionSeesMQTT: WATCH notices changes over MQTT, and expiry.
func TestRedisTransactionSeesMQTT(t *testing.T) {
	t.Parallel()
	s, c := startWithRedis(t, emulator.Options{})
	m := connect(t, s, "m")
	for _, change := range []struct {
		what string
		do   func()
		exec string
	}{
		{"nothing", func() {}, "*1\r\n+OK\r\n"},
		{"a set over MQTT", func() { m.do("SET k w", "+OK") }, "*-1\r\n"},
		{"a deletion over MQTT", func() { m.do("DEL k", ":1") }, "*-1\r\n"},
		{"an expiry", func() { s.FastForward(time.Hour) }, "*-1\r\n"},
		{"another key", func() { m.do("SET other w", "+OK") }, "*1\r\n+OK\r\n"},
	} {
		c.Expect(t, "+OK\r\n", "SET", "k", "v", "EX", "1000")
		c.Expect(t, "+OK\r\n", "WATCH", "k")
		change.do()
		c.Expect(t, "+OK\r\n", "MULTI")
		c.Expect(t, "+QUEUED\r\n", "SET", "k", "mine")
		if got := c.Do(t, "EXEC"); got != change.exec {
			t.Errorf("after %s: %q, want %q", change.what, got, change.exec)
		}
	}
}

// TestRedisIdle: a key's idle time is counted from its last write.
func TestRedisIdle(t *testing.T) {
	t.Parallel()
	s, c := startWithRedis(t, emulator.Options{})
	c.Expect(t, "+OK\r\n", "SET", "k", "v")
	idle := func() time.Duration {
		t.Helper()
		seconds, err := strconv.Atoi(strings.Trim(c.Do(t, "OBJECT", "IDLETIME", "k"), ":\r\n"))
		if err != nil {
			t.Error(err)
		}
		return time.Duration(seconds) * time.Second
	}
	if d := idle(); d < 0 || d > patience {
		t.Errorf("idle for %v after a write", d)
	}
	s.FastForward(time.Hour)
	c.Expect(t, "$1\r\nv\r\n", "GET", "k")
	if d := idle(); d < time.Hour || d > time.Hour+patience {
		t.Errorf("idle for %v an hour after a write", d)
	}
	c.Expect(t, "$-1\r\n", "OBJECT", "IDLETIME", "no key")
}

func TestRedisLogin(t *testing.T) {
	t.Parallel()
	rules := parseRules(t, "ann:ReadWrite:a*", "bob:Read:a*")
	s, ann := startWithRedis(t, emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": "secret", "bob": "builder"}), Policy: rules})
	bob := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	const noAuth = "-NOAUTH Authentication required.\r\n"
	for _, early := range []string{"GET a", "PING", "SUBSCRIBE a", "MULTI", "CONFIG GET x", "INFO"} {
		ann.Expect(t, noAuth, strings.Fields(early)...)
	}
	if got := ann.Do(t, "HELLO", "3"); !strings.HasPrefix(got, "-NOAUTH HELLO must be called with the client already authenticated") {
		t.Errorf("HELLO: %q", got)
	}
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	ann.Expect(t, wrong, "AUTH", "ann", "builder")
	ann.Expect(t, wrong, "AUTH", "secret")
	ann.Expect(t, noAuth, "GET", "a")
	ann.Expect(t, "+OK\r\n", "AUTH", "ann", "secret")
	if got := bob.Do(t, "HELLO", "3", "AUTH", "bob", "builder"); got[0] != '%' {
		t.Errorf("HELLO with AUTH: %q", got)
	}
	const refused = "-ERR not authorized\r\n"
	ann.Expect(t, "+OK\r\n", "MSET", "a", "1", "ab", "2")
	ann.Expect(t, refused, "MSET", "a", "3", "b", "2")
	ann.Expect(t, refused, "GET", "b")
	bob.Expect(t, "$1\r\n1\r\n", "GET", "a")
	bob.Expect(t, refused, "SET", "a", "2")
	bob.Expect(t, refused, "SS.SET", "a", "2")
	bob.Expect(t, "*2\r\n$1\r\na\r\n$2\r\nab\r\n", "KEYS", "*")
	if _, err := s.Set("b", "hidden"); err == nil {
		t.Fatal("the rules let everybody in")
	}
	ann.Expect(t, "+RESET\r\n", "RESET")
	ann.Expect(t, noAuth, "GET", "a")
}

// TestRedisReadAndWrite: commands that show or copy a value require the right to read the key, those that change
// it the right to write it, and many require both.
func TestRedisReadAndWrite(t *testing.T) {
	t.Parallel()
	_, c := startWithRedis(t, emulator.Options{
		CheckLogin: emulator.Passwords(map[string]string{"r": "r", "w": "w", "rw": "rw"}),
		Policy:     parseRules(t, "r:Read:k*", "w:Write:k*", "rw:ReadWrite:k*", "r:Write:mine", "w:Read:mine"),
	})
	for _, test := range []struct{ users, command string }{
		{"r rw", "GET k"},
		{"r rw", "MGET k k"},
		{"r rw", "EXISTS k"},
		{"r rw", "GETBIT k 1"},
		{"r rw", "OBJECT ENCODING k"},
		{"r rw", "OBJECT IDLETIME k"},
		{"r rw", "MEMORY USAGE k"},
		{"r", "COPY k mine REPLACE"},
		{"w rw", "SET k 1"},
		{"w rw", "SET k 1 KEEPTTL"},
		{"rw", "APPEND k 1"},
		{"rw", "SETRANGE k 1 1"},
		{"rw", "DELIFEQ k 2"},
		{"rw", "DELEX k IFEQ 2"},
		{"rw", "DELEX k IFEQ 1"},
		{"w rw", "DELEX k"},
		{"w rw", "SS.VDEL k 2"},
		{"r rw", "STRLEN k"},
		{"r rw", "TTL k"},
		{"r rw", "TOUCH k"},
		{"r rw", "TYPE k"},
		{"w rw", "EXPIRE k 100"},
		{"w rw", "EXPIRE k 100 XX"},
		{"rw", "EXPIRE k 100 GT"},
		{"rw", "PEXPIRE k 100 LT"},
		{"w rw", "PERSIST k"},
		{"w rw", "MSETNX k 1"},
		{"rw", "SET k 1 GET"},
		{"rw", "GETSET k 1"},
		{"rw", "GETEX k"},
		{"rw", "INCR k"},
		{"rw", "INCRBYFLOAT k 1"},
		{"rw", "SETBIT k 1 1"},
		{"rw", "COPY k k2 REPLACE"},
		{"rw", "RENAME k k3"},
		{"rw", "GETDEL k"},
		{"w rw", "DEL k"},
	} {
		for _, user := range []string{"rw", "r", "w"} {
			c.Expect(t, "+OK\r\n", "AUTH", "rw", "rw")
			c.Expect(t, "+OK\r\n", "SET", "k", "1")
			c.Expect(t, "+OK\r\n", "AUTH", user, user)
			want := slices.Contains(strings.Fields(test.users), user)
			if got := c.Do(t, strings.Fields(test.command)...); (got != "-ERR not authorized\r\n") != want {
				t.Errorf("%s as %s: %q, expected allowed: %t", test.command, user, got, want)
			}
		}
	}
}

// TestRedisRandomKey: RANDOMKEY finds the only key that a user may read among many others.
func TestRedisRandomKey(t *testing.T) {
	t.Parallel()
	_, c := startWithRedis(t, emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": "a", "root": "r"}), Policy: parseRules(t, "ann:Read:mine", "root:ReadWrite:*")})
	c.Expect(t, "+OK\r\n", "AUTH", "root", "r")
	many := []string{"MSET", "mine", "1"}
	for i := range 10_000 {
		many = append(many, fmt.Sprint("hidden", i), "1")
	}
	c.Expect(t, "+OK\r\n", many...)
	c.Expect(t, "+OK\r\n", "AUTH", "ann", "a")
	c.Expect(t, "$4\r\nmine\r\n", "RANDOMKEY")
	c.Expect(t, "+OK\r\n", "AUTH", "root", "r")
	c.Expect(t, ":1\r\n", "DEL", "mine")
	c.Expect(t, "+OK\r\n", "AUTH", "ann", "a")
	c.Expect(t, "$-1\r\n", "RANDOMKEY")
}

// TestRedisRights: a user with rights to some keys neither sees the events of other keys nor changes settings
// that affect all clients.
func TestRedisRights(t *testing.T) {
	t.Parallel()
	rules := parseRules(t, "ann:ReadWrite:a*", "root:ReadWrite:*", "reader:Read:*")
	users := map[string]string{"ann": "a", "root": "r", "reader": "r"}
	s, ann := startWithRedis(t, emulator.Options{CheckLogin: emulator.Passwords(users), Policy: rules, RedisNotify: "KEA"})
	connect := func(name string) *redistest.Client {
		c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		c.Expect(t, "+OK\r\n", "AUTH", name, users[name])
		return c
	}
	ann.Expect(t, "+OK\r\n", "AUTH", "ann", "a")
	root, reader, spy := connect("root"), connect("reader"), connect("ann")
	for _, c := range []*redistest.Client{ann, reader} {
		for _, command := range []string{"CONFIG SET notify-keyspace-events KEA", "CONFIG RESETSTAT", "FLUSHALL", "FLUSHDB"} {
			name := strings.ToLower(strings.Join(strings.Fields(command)[:min(2, len(strings.Fields(command)))], "|"))
			c.Expect(t, "-NOPERM this user has no permissions to run the '"+name+"' command\r\n", strings.Fields(command)...)
		}
	}
	ann.Expect(t, "-NOPERM this user has no permissions to publish events of keys\r\n", "PUBLISH", "__keyspace@0__:a", "set")
	ann.Expect(t, "-NOPERM this user has no permissions to publish events of keys\r\n", "PUBLISH", "__keyevent@0__:set", "secret")
	ann.Expect(t, ":0\r\n", "PUBLISH", "news", "hello")
	root.Expect(t, ":0\r\n", "PUBLISH", "__keyspace@0__:a", "set")
	const noKill = "-NOPERM this user has no permissions to run the 'client|kill' command\r\n"
	rootID := strings.Trim(root.Do(t, "CLIENT", "ID"), ":\r\n")
	ann.Expect(t, noKill, "CLIENT", "KILL", "ID", rootID)
	ann.Expect(t, noKill, "CLIENT", "KILL", "TYPE", "normal")
	ann.Expect(t, noKill, "CLIENT", "KILL", "USER", "root")
	ann.Expect(t, noKill, "CLIENT", "KILL", "USER", "nobody") // otherwise ann could find out who is connected
	root.Expect(t, "+OK\r\n", "SET", "hidden", "1")
	if own, all := ann.Do(t, "CLIENT", "LIST"), root.Do(t, "CLIENT", "LIST"); strings.Contains(own, "user=root") || strings.Count(own, "user=ann") != 2 || !strings.Contains(all, "user=ann") {
		t.Errorf("ann sees the clients\n%s\nroot sees\n%s", own, all)
	}
	if own, all := ann.Do(t, "INFO", "keyspace"), root.Do(t, "INFO", "keyspace"); strings.Contains(own, "keys=") || !strings.Contains(all, "keys=1,") {
		t.Errorf("ann counts the keys: %s; root: %s", own, all)
	}
	ann.Expect(t, noKill, "CLIENT", "KILL", root.Conn.LocalAddr().String())
	ann.Expect(t, ":1\r\n", "CLIENT", "KILL", "USER", "ann")
	spy.Closed(t)

	pattern, exact := connect("ann"), connect("ann")
	pattern.Do(t, "PSUBSCRIBE", "*")
	exact.Do(t, "SUBSCRIBE", "__keyspace@0__:secret")
	ann.Expect(t, "*0\r\n", "PUBSUB", "CHANNELS")
	root.Expect(t, "*1\r\n$21\r\n__keyspace@0__:secret\r\n", "PUBSUB", "CHANNELS")
	ann.Expect(t, "*2\r\n$21\r\n__keyspace@0__:secret\r\n:0\r\n", "PUBSUB", "NUMSUB", "__keyspace@0__:secret")
	root.Expect(t, "*2\r\n$21\r\n__keyspace@0__:secret\r\n:1\r\n", "PUBSUB", "NUMSUB", "__keyspace@0__:secret")
	root.Expect(t, "+OK\r\n", "SET", "secret", "1")
	root.Expect(t, "+OK\r\n", "SET", "a", "1")
	for _, want := range []string{"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$16\r\n__keyspace@0__:a\r\n$3\r\nset\r\n", "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$18\r\n__keyevent@0__:set\r\n$1\r\na\r\n"} {
		if got, err := pattern.Frame(); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	exact.Expect(t, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "PING")
	root.Expect(t, "+OK\r\n", "CONFIG", "SET", "notify-keyspace-events", "")
	root.Expect(t, ":2\r\n", "CLIENT", "KILL", "TYPE", "pubsub")
	root.Expect(t, "+OK\r\n", "FLUSHALL")
}
