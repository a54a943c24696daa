package emulator_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

func startWithRedis(t testing.TB, o emulator.Options) (*emulator.Server, *redisClient) {
	t.Helper()
	o.Redis = "127.0.0.1:0"
	s := emulator.Start(t, o)
	return s, dialRedis(t, "tcp", redisAddress(s.RedisURL()))
}

// heard sends a PING to a client with subscriptions and returns the texts of the messages that came
// before the answer, each as its channel and what it says.
func (c *redisClient) heard(t testing.TB) []string {
	t.Helper()
	if err := c.send("PING", "heard so far"); err != nil {
		t.Fatal(err)
	}
	frames, err := c.until("heard so far")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range frames {
		words := strings.Split(strings.TrimSuffix(string(f), "\r\n"), "\r\n")
		all = append(all, words[len(words)-3]+" "+words[len(words)-1])
	}
	return all
}

func expectHeard(t testing.TB, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("heard\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRedisAndMQTT: each port reports what the other one changed, in one order.
func TestRedisAndMQTT(t *testing.T) {
	s, c := startWithRedis(t, emulator.Options{RedisNotify: "EAn"})
	sub := dialRedis(t, "tcp", redisAddress(s.RedisURL()))
	sub.do(t, "PSUBSCRIBE", "*")
	m := connect(t, s, "m")
	m.do("KEYNOTIFY k", "+OK")
	c.expect(t, "+OK\r\n", "SET", "k", "1")
	m.expect("notify 6B SET VALUE 1")
	m.ask("SET k 2 PX 100000")
	m.expect("PUBACK 0x00", "notify 6B SET VALUE 2", "reply +OK")
	c.expect(t, ":3\r\n", "INCR", "k")
	c.expect(t, ":1\r\n", "PERSIST", "k")
	m.expect("notify 6B SET VALUE 3", "notify 6B SET VALUE 3")
	c.expect(t, "+OK\r\n", "RENAME", "k", "j")
	m.expect("notify 6B DELETE")
	m.ask("SET k 4")
	m.expect("PUBACK 0x00", "notify 6B SET VALUE 4", "reply +OK")
	m.ask("VDEL k 4")
	m.expect("PUBACK 0x00", "notify 6B DELETE", "reply :1")
	m.ask("SET k 5 PX 1000")
	m.expect("PUBACK 0x00", "notify 6B SET VALUE 5", "reply +OK")
	s.FastForward(time.Second)
	m.expect("notify 6B DELETE")
	m.ask("DEL j")
	m.expect("PUBACK 0x00", "reply :1")
	c.expect(t, "+OK\r\n", "MSET", "k", "6", "j", "6")
	m.expect("notify 6B SET VALUE 6")
	c.expect(t, "+OK\r\n", "FLUSHALL")
	m.expect("notify 6B DELETE")
	expectHeard(t, sub.heard(t),
		"__keyevent@0__:new k", "__keyevent@0__:set k", "__keyevent@0__:set k", "__keyevent@0__:expire k", "__keyevent@0__:incrby k",
		"__keyevent@0__:persist k", "__keyevent@0__:new j", "__keyevent@0__:rename_from k", "__keyevent@0__:rename_to j",
		"__keyevent@0__:new k", "__keyevent@0__:set k", "__keyevent@0__:del k", "__keyevent@0__:new k", "__keyevent@0__:set k",
		"__keyevent@0__:expire k", "__keyevent@0__:expired k", "__keyevent@0__:del j", "__keyevent@0__:new k", "__keyevent@0__:set k", "__keyevent@0__:new j", "__keyevent@0__:set j")
}

// TestRedisExpiry: what expires by itself is told at once, however much it is.
func TestRedisExpiry(t *testing.T) {
	const keys = 20_000
	s, c := startWithRedis(t, emulator.Options{RedisNotify: "Ex"})
	sub := dialRedis(t, "tcp", redisAddress(s.RedisURL()))
	sub.do(t, "SUBSCRIBE", "__keyevent@0__:expired")
	at := strconv.FormatInt(time.Now().Add(2*time.Second).UnixMilli(), 10)
	var requests []byte
	for i := range keys {
		requests = append(requests, redisRequest("SET", "k"+strconv.Itoa(i), "v", "PXAT", at)...)
	}
	if _, err := c.nc.Write(requests); err != nil {
		t.Fatal(err)
	}
	for range keys {
		if f, err := c.frame(); err != nil || string(f) != "+OK\r\n" {
			t.Fatalf("%q, %v", f, err)
		}
	}
	seen := make(map[string]bool)
	for range keys {
		f, err := sub.frame()
		if err != nil {
			t.Fatal(err)
		}
		seen[string(f)] = true
	}
	ms, _ := strconv.ParseInt(at, 10, 64)
	late := time.Since(time.UnixMilli(ms))
	if len(seen) != keys || late < 0 {
		t.Errorf("%d different messages, the last %v after the time", len(seen), late)
	}
	if limit := time.Second; late > limit && !raceDetector {
		t.Errorf("the last message came %v late, want at most %v", late, limit)
	}
	c.expect(t, ":0\r\n", "DBSIZE")
}

// TestRedisTransactionSeesMQTT: WATCH knows of changes over MQTT, and of expiry.
func TestRedisTransactionSeesMQTT(t *testing.T) {
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
		c.expect(t, "+OK\r\n", "SET", "k", "v", "EX", "10")
		c.expect(t, "+OK\r\n", "WATCH", "k")
		change.do()
		c.expect(t, "+OK\r\n", "MULTI")
		c.expect(t, "+QUEUED\r\n", "SET", "k", "mine")
		if got := c.do(t, "EXEC"); got != change.exec {
			t.Errorf("after %s: %q, want %q", change.what, got, change.exec)
		}
	}
}

// TestRedisIdle: a key is idle from its last write on.
func TestRedisIdle(t *testing.T) {
	s, c := startWithRedis(t, emulator.Options{})
	c.expect(t, "+OK\r\n", "SET", "k", "v")
	c.expect(t, ":0\r\n", "OBJECT", "IDLETIME", "k")
	s.FastForward(time.Hour)
	c.expect(t, "$1\r\nv\r\n", "GET", "k")
	c.expect(t, ":3600\r\n", "OBJECT", "IDLETIME", "k")
	c.expect(t, "$-1\r\n", "OBJECT", "IDLETIME", "no key")
}

// TestRedisStoreCommands: versions and fencing tokens.
func TestRedisStoreCommands(t *testing.T) {
	s, c := startWithRedis(t, emulator.Options{})
	version := func(key string) string {
		e, ok := s.Get(key)
		if !ok {
			t.Fatalf("%s is not there", key)
		}
		return e.Version.String()
	}
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	c.expect(t, "*-1\r\n", "SS.GET", "k")
	c.expect(t, "$-1\r\n", "SS.VERSION", "k")
	got := c.do(t, "SS.SET", "k", "me", "NEX", "PX", "10000")
	first := version("k")
	if want := "*2\r\n+OK\r\n" + bulk(first); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.expect(t, "*2\r\n"+bulk("me")+bulk(first), "SS.GET", "k")
	c.expect(t, bulk(first), "ss.version", "k")
	c.expect(t, "*2\r\n:-1\r\n"+bulk(first), "SS.SET", "k", "you", "NEX", "PX", "10000")
	c.expect(t, "*2\r\n:-1\r\n"+bulk(first), "SS.SET", "k", "you", "NX")
	c.do(t, "SS.SET", "k", "me", "NEX", "PX", "10000")
	token := version("k")
	if token == first {
		t.Error("a renewal has no new version")
	}
	if got := c.do(t, "SS.SET", "fenced", "v", "FT", token); !strings.HasPrefix(got, "*2\r\n+OK\r\n") {
		t.Errorf("with a token: %q", got)
	}
	const required = "-ERR a fencing token is required for this request\r\n"
	for _, refused := range [][]string{
		{"SS.SET", "fenced", "w"}, {"SET", "fenced", "w"}, {"DEL", "fenced"}, {"APPEND", "fenced", "w"}, {"EXPIRE", "fenced", "10"},
		{"MSET", "a", "1", "fenced", "2"}, {"RENAME", "k", "fenced"}, {"DEL", "k", "fenced"}, {"FLUSHALL"}, {"GETDEL", "fenced"}, {"GETSET", "fenced", "x"},
		{"SET", "fenced", "w", "GET"}, {"SS.VDEL", "fenced", "v"}, {"SS.DEL", "fenced"}, {"DELEX", "fenced", "IFEQ", "v"},
	} {
		c.expect(t, required, refused...)
	}
	if _, there := s.Get("a"); there || version("k") != token {
		t.Error("a refused command has changed something")
	}
	c.expect(t, "-ERR the request fencing token is a lower version than the fencing token protecting the resource\r\n", "SS.SET", "fenced", "w", "FT", first)
	c.expect(t, ":-1\r\n", "SS.VDEL", "fenced", "other", "FT", token)
	c.expect(t, ":1\r\n", "SS.VDEL", "fenced", "v", "FT", token)
	c.expect(t, ":0\r\n", "SS.DEL", "fenced", "FT", token)
	c.expect(t, ":0\r\n", "DELEX", "k", "IFEQ", "you")
	c.expect(t, ":1\r\n", "DELIFEQ", "k", "me")
	for _, bad := range [][]string{{"SS.SET", "k", "v", "NX", "NEX"}, {"SS.SET", "k", "v", "XX"}, {"SS.DEL", "k", "NX"}, {"SS.SET", "k", "v", "FT"}} {
		c.expect(t, "-ERR syntax error\r\n", bad...)
	}
	c.expect(t, "-ERR invalid expire time in 'ss.set' command\r\n", "SS.SET", "k", "v", "PX", "0")
	c.expect(t, "-ERR malformed timestamp\r\n", "SS.SET", "k", "v", "FT", "x")
}

// TestRedisRefusals: the texts for what is not here.
func TestRedisRefusals(t *testing.T) {
	_, c := startWithRedis(t, emulator.Options{MaxKeys: 2})
	for _, r := range []struct{ command, want string }{
		{"LPUSH k v", "ERR unknown command 'LPUSH', the state store holds strings only"},
		{"hset k f v", "ERR unknown command 'hset', the state store holds strings only"},
		{"LCS k l", "ERR unknown command 'LCS', with args beginning with: 'k' 'l' "},
		{"MONITOR", "ERR unsupported: MONITOR is not here; start sscli with -v to see the commands of all clients"},
		{"CLUSTER SLOTS", "ERR This instance has cluster support disabled"},
		{"FUNCTION LOAD x", "ERR unsupported: scripts are not run here"},
		{"EVAL x 0", "ERR unsupported: scripts are not run here"},
		{"script load x", "ERR unsupported: scripts are not run here"},
		{"SELECT 1", "ERR DB index is out of range"},
		{"COPY a b DB 1", "ERR DB index is out of range"},
		{"SET", "ERR wrong number of arguments for 'set' command"},
		{"CONFIG GET", "ERR wrong number of arguments for 'config|get' command"},
		{"CONFIG NOSUCH", "ERR unknown subcommand 'NOSUCH'. Try CONFIG HELP."},
		{"CONFIG SET maxmemory 1", "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - can't set immutable config"},
		{"CONFIG SET nosuch 1", "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"},
		{"NOSUCH a", "ERR unknown command 'NOSUCH', with args beginning with: 'a' "},
		{"SCAN x", "ERR invalid cursor"},
		{"SCAN 12345", "ERR invalid cursor"},
		{"SCAN 0 COUNT 0", "ERR syntax error"},
		{"DELEX k IFNE v", "ERR syntax error"},
		{"MSET a 1 b 2 c 3", "ERR the quota has been exceeded"},
		{"SUBSTR a 1", "ERR wrong number of arguments for 'substr' command"},
		{"CLIENT MAINT_NOTIFICATIONS ON", "ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP."},
	} {
		c.expect(t, "-"+r.want+"\r\n", strings.Fields(r.command)...)
	}
	c.expect(t, "-ERR the key length is zero\r\n", "SET", "", "v")
	c.expect(t, "$-1\r\n", "GET", "")
	c.expect(t, "+OK\r\n", "MSET", "a", "1", "b", "2")
	c.expect(t, "-ERR the quota has been exceeded\r\n", "SET", "c", "3", "GET")
	c.expect(t, "+OK\r\n", "RENAME", "a", "c")
}

func TestRedisLogin(t *testing.T) {
	var rules []emulator.Rule
	for _, text := range []string{"ann:ReadWrite:a*", "bob:Read:a*"} {
		r, err := emulator.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	s, ann := startWithRedis(t, emulator.Options{Users: map[string]string{"ann": "secret", "bob": "builder"}, Rules: rules})
	bob := dialRedis(t, "tcp", redisAddress(s.RedisURL()))
	const noAuth = "-NOAUTH Authentication required.\r\n"
	for _, early := range []string{"GET a", "PING", "SUBSCRIBE a", "MULTI", "CONFIG GET x", "INFO"} {
		ann.expect(t, noAuth, strings.Fields(early)...)
	}
	if got := ann.do(t, "HELLO", "3"); !strings.HasPrefix(got, "-NOAUTH HELLO must be called with the client already authenticated") {
		t.Errorf("HELLO: %q", got)
	}
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	ann.expect(t, wrong, "AUTH", "ann", "builder")
	ann.expect(t, wrong, "AUTH", "secret")
	ann.expect(t, noAuth, "GET", "a")
	ann.expect(t, "+OK\r\n", "AUTH", "ann", "secret")
	if got := bob.do(t, "HELLO", "3", "AUTH", "bob", "builder"); got[0] != '%' {
		t.Errorf("HELLO with AUTH: %q", got)
	}
	const refused = "-ERR not authorized\r\n"
	ann.expect(t, "+OK\r\n", "MSET", "a", "1", "ab", "2")
	ann.expect(t, refused, "MSET", "a", "3", "b", "2")
	ann.expect(t, refused, "GET", "b")
	bob.expect(t, "$1\r\n1\r\n", "GET", "a")
	bob.expect(t, refused, "SET", "a", "2")
	bob.expect(t, refused, "SS.SET", "a", "2")
	bob.expect(t, refused, "FLUSHALL")
	bob.expect(t, "*2\r\n$1\r\na\r\n$2\r\nab\r\n", "KEYS", "*")
	if _, err := s.Set("b", "hidden"); err == nil {
		t.Fatal("the rules let everybody in")
	}
	ann.expect(t, "+RESET\r\n", "RESET")
	ann.expect(t, noAuth, "GET", "a")
}

// TestRedisProtocol: what a connection may and may not do.
func TestRedisProtocol(t *testing.T) {
	s, c := startWithRedis(t, emulator.Options{RedisNotify: "KEA"})
	dial := func() *redisClient { return dialRedis(t, "tcp", redisAddress(s.RedisURL())) }

	t.Run("pipeline", func(t *testing.T) {
		c := dial()
		var b []byte
		for i := range 5000 {
			b = append(b, redisRequest("APPEND", "long", strconv.Itoa(i%10))...)
		}
		if _, err := c.nc.Write(append(b, "PING\r\n"...)); err != nil {
			t.Fatal(err)
		}
		for i := range 5000 {
			if f, err := c.frame(); err != nil || string(f) != fmt.Sprintf(":%d\r\n", i+1) {
				t.Fatalf("%d: %q, %v", i, f, err)
			}
		}
		if f, err := c.frame(); err != nil || string(f) != "+PONG\r\n" {
			t.Errorf("%q, %v", f, err)
		}
	})
	t.Run("errors close", func(t *testing.T) {
		for _, bad := range []string{"*1\r\n:1\r\n", "*9999999999\r\n", "*1\r\n$999999999999\r\n", "set \"a\r\n"} {
			c := dial()
			if _, err := c.nc.Write([]byte(bad)); err != nil {
				t.Fatal(err)
			}
			if got := c.closed(t); !bytes.HasPrefix(got, []byte("-ERR Protocol error: ")) {
				t.Errorf("%q: %q", bad, got)
			}
		}
	})
	t.Run("browsers", func(t *testing.T) {
		for _, http := range []string{"POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nfoo\r\n", "post x\r\nset k v\r\n"} {
			c := dial()
			if _, err := c.nc.Write([]byte(http)); err != nil {
				t.Fatal(err)
			}
			if got := c.closed(t); bytes.Contains(got, []byte("foo")) {
				t.Errorf("%q: %q", http, got)
			}
		}
	})
	t.Run("quit", func(t *testing.T) {
		c := dial()
		if err := c.send("QUIT"); err != nil {
			t.Fatal(err)
		}
		if got := c.closed(t); string(got) != "+OK\r\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("reply off", func(t *testing.T) {
		c := dial()
		for _, args := range [][]string{{"CLIENT", "REPLY", "OFF"}, {"SET", "k", "v"}, {"GET", "k"}, {"SUBSCRIBE", "__keyspace@0__:k"}} {
			if err := c.send(args...); err != nil {
				t.Fatal(err)
			}
		}
		if f, err := c.frame(); err != nil || string(f) != "*3\r\n$9\r\nsubscribe\r\n$16\r\n__keyspace@0__:k\r\n:1\r\n" {
			t.Fatalf("%q, %v", f, err)
		}
		dial().expect(t, ":1\r\n", "DEL", "k")
		if f, err := c.frame(); err != nil || string(f) != "*3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$3\r\ndel\r\n" {
			t.Fatalf("%q, %v", f, err)
		}
	})
	t.Run("reply off in a transaction", func(t *testing.T) {
		c := dial()
		for _, args := range [][]string{{"CLIENT", "REPLY", "OFF"}, {"MULTI"}, {"SET", "k", "v"}, {"DEL", "k"}, {"EXEC"}} {
			if err := c.send(args...); err != nil {
				t.Fatal(err)
			}
		}
		c.expect(t, "+OK\r\n", "CLIENT", "REPLY", "ON")
	})
	t.Run("reply skip", func(t *testing.T) {
		c := dial()
		for _, args := range [][]string{{"CLIENT", "REPLY", "SKIP"}, {"SET", "k", "v"}} {
			if err := c.send(args...); err != nil {
				t.Fatal(err)
			}
		}
		c.expect(t, "$1\r\nv\r\n", "GET", "k")
		if err := c.send("CLIENT", "REPLY", "OFF"); err != nil {
			t.Fatal(err)
		}
		c.expect(t, "+OK\r\n", "CLIENT", "REPLY", "ON")
	})
	t.Run("pushes", func(t *testing.T) {
		c := dial()
		c.do(t, "HELLO", "3")
		c.expect(t, ">3\r\n$9\r\nsubscribe\r\n$16\r\n__keyspace@0__:p\r\n:1\r\n", "SUBSCRIBE", "__keyspace@0__:p")
		// The message of one's own command comes before its reply.
		c.expect(t, ">3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:p\r\n$3\r\nset\r\n", "SET", "p", "v")
		if f, err := c.frame(); err != nil || string(f) != "+OK\r\n" {
			t.Errorf("%q, %v", f, err)
		}
		c.expect(t, "_\r\n", "GET", "nothing")
	})
	t.Run("kill", func(t *testing.T) {
		victim := dial()
		id := strings.Trim(victim.do(t, "CLIENT", "ID"), ":\r\n")
		c.expect(t, ":1\r\n", "CLIENT", "KILL", "ID", id)
		victim.closed(t)
		c.expect(t, "-ERR No such client\r\n", "CLIENT", "KILL", "127.0.0.1:1")
	})
	t.Run("info", func(t *testing.T) {
		got := c.do(t, "INFO", "server")
		for _, line := range []string{"redis_version:7.0.15\r\n", "redis_mode:standalone\r\n", "statestore_backend:emulator\r\n"} {
			if !strings.Contains(got, line) {
				t.Errorf("INFO has no %q", line)
			}
		}
	})
	t.Run("command", func(t *testing.T) {
		c.expect(t, "*1\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n", "COMMAND", "INFO", "get")
		n, err := strconv.Atoi(strings.Trim(c.do(t, "COMMAND", "COUNT"), ":\r\n"))
		if list := c.do(t, "COMMAND"); err != nil || !strings.HasPrefix(list, fmt.Sprintf("*%d\r\n", n)) {
			t.Errorf("COUNT says %d, and there are %.10q", n, list)
		}
		c.expect(t, "*2\r\n$1\r\na\r\n$1\r\nc\r\n", "COMMAND", "GETKEYS", "MSET", "a", "b", "c", "d")
	})
}

// TestRedisSlowSubscriber: who does not read is cut off, and nobody waits.
func TestRedisSlowSubscriber(t *testing.T) {
	var log bytes.Buffer
	s, c := startWithRedis(t, emulator.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	slow, good := dialRedis(t, "tcp", redisAddress(s.RedisURL())), dialRedis(t, "tcp", redisAddress(s.RedisURL()))
	slow.do(t, "SUBSCRIBE", "c")
	message := strings.Repeat("x", 1<<20)
	for i := 0; ; i++ {
		if got := c.do(t, "PUBLISH", "c", message); got == ":0\r\n" {
			break
		} else if i == 200 {
			t.Fatal("the subscriber is still there")
		}
	}
	good.expect(t, "+PONG\r\n", "PING")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "reads too slowly") {
		t.Errorf("the log says %q", log.String())
	}
}

// TestRedisScan: what was there from the beginning to the end is found, once, whatever
// comes and goes meanwhile.
func TestRedisScan(t *testing.T) {
	_, c := startWithRedis(t, emulator.Options{})
	for i := range 500 {
		c.expect(t, "+OK\r\n", "SET", fmt.Sprintf("stays:%03d", i), "v")
	}
	found := make(map[string]int)
	cursor := "0"
	for round := 0; ; round++ {
		reply := strings.Split(c.do(t, "SCAN", cursor, "MATCH", "stays:*", "COUNT", "7"), "\r\n")
		for _, word := range reply {
			if strings.HasPrefix(word, "stays:") {
				found[word]++
				if c.do(t, "DEL", strings.Replace(word, "stays", "came", 1)); round%2 == 0 {
					c.expect(t, "+OK\r\n", "SET", word+"x", "v") // right after
					c.expect(t, ":1\r\n", "DEL", word+"x")
				}
				c.expect(t, "+OK\r\n", "SET", strings.Replace(word, "stays", "came", 1), "v")
			}
		}
		if cursor = reply[2]; cursor == "0" {
			break
		}
	}
	if len(found) != 500 {
		t.Errorf("%d keys found", len(found))
	}
	for key, n := range found {
		if n != 1 {
			t.Errorf("%s was found %d times", key, n)
		}
	}
	c.expect(t, "*2\r\n$1\r\n0\r\n*0\r\n", "SCAN", "0", "TYPE", "list", "COUNT", "10000")
}
