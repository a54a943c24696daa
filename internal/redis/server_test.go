package redis_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// start runs an emulator with a Redis port and connects to it.
func start(t testing.TB, o emulator.Options) (*emulator.Server, *redistest.Client) {
	t.Helper()
	o.Redis = "127.0.0.1:0"
	s := emulator.Start(t, o)
	return s, redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
}

// TestLongPatterns: a pattern that would delay other clients is refused.
func TestLongPatterns(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	long := strings.Repeat("a", 1025)
	const refused = "-ERR the pattern is longer than 1024 bytes\r\n"
	for _, words := range [][]string{{"KEYS", long}, {"SCAN", "0", "MATCH", long}, {"PSUBSCRIBE", long}, {"PUBSUB", "CHANNELS", long},
		{"CONFIG", "GET", long}, {"COMMAND", "LIST", "FILTERBY", "PATTERN", long}} {
		c.Expect(t, refused, words...)
	}
	c.Expect(t, "*0\r\n", "KEYS", long[:1024])
}

// TestManyPatterns: patterns that are slow to match a large key do not delay other clients: their subscribers
// are disconnected, and a subscriber with a simple pattern gets the message.
func TestManyPatterns(t *testing.T) {
	t.Parallel()
	s, c := start(t, emulator.Options{RedisNotify: "KE$"})
	attacker, simple := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL())), redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	for i := range 200 {
		attacker.Do(t, "PSUBSCRIBE", "*"+strings.Repeat("a", 1000)+strconv.Itoa(i))
	}
	simple.Do(t, "PSUBSCRIBE", "__keyevent*")
	key := strings.Repeat("a", 60_000)
	c.Expect(t, "+OK\r\n", "SET", key, "1")
	attacker.Closed(t)
	if got, err := simple.Frame(); err != nil || !strings.HasSuffix(string(got), key+"\r\n") {
		t.Errorf("%.100q, %v", got, err)
	}
}

// TestStoreCommands: versions and fencing tokens.
func TestStoreCommands(t *testing.T) {
	t.Parallel()
	s, c := start(t, emulator.Options{})
	version := func(key string) string {
		e, ok := s.Get(key)
		if !ok {
			t.Fatalf("%s is not there", key)
		}
		return e.Version.String()
	}
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	c.Expect(t, "*-1\r\n", "SS.GET", "k")
	c.Expect(t, "$-1\r\n", "SS.VERSION", "k")
	got := c.Do(t, "SS.SET", "k", "me", "NEX", "PX", "1000000")
	first := version("k")
	if want := "*2\r\n+OK\r\n" + bulk(first); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.Expect(t, "*2\r\n"+bulk("me")+bulk(first), "SS.GET", "k")
	c.Expect(t, bulk(first), "ss.version", "k")
	c.Expect(t, "*2\r\n:-1\r\n"+bulk(first), "SS.SET", "k", "you", "NEX", "PX", "1000000")
	c.Expect(t, "*2\r\n:-1\r\n"+bulk(first), "SS.SET", "k", "you", "NX")
	c.Do(t, "SS.SET", "k", "me", "NEX", "PX", "1000000")
	token := version("k")
	if token == first {
		t.Error("a renewal has no new version")
	}
	if got := c.Do(t, "SS.SET", "fenced", "v", "FT", token); !strings.HasPrefix(got, "*2\r\n+OK\r\n") {
		t.Errorf("with a token: %q", got)
	}
	const required = "-ERR a fencing token is required for this request\r\n"
	for _, refused := range [][]string{
		{"SS.SET", "fenced", "w"}, {"SET", "fenced", "w"}, {"DEL", "fenced"}, {"APPEND", "fenced", "w"}, {"EXPIRE", "fenced", "10"},
		{"MSET", "a", "1", "fenced", "2"}, {"RENAME", "k", "fenced"}, {"DEL", "k", "fenced"}, {"FLUSHALL"}, {"GETDEL", "fenced"}, {"GETSET", "fenced", "x"},
		{"SET", "fenced", "w", "GET"}, {"SS.VDEL", "fenced", "v"}, {"SS.DEL", "fenced"}, {"DELEX", "fenced", "IFEQ", "v"},
	} {
		c.Expect(t, required, refused...)
	}
	if _, there := s.Get("a"); there || version("k") != token {
		t.Error("a refused command has changed something")
	}
	c.Expect(t, "-ERR the request fencing token is a lower version than the fencing token protecting the resource\r\n", "SS.SET", "fenced", "w", "FT", first)
	c.Expect(t, ":-1\r\n", "SS.VDEL", "fenced", "other", "FT", token)
	c.Expect(t, ":1\r\n", "SS.VDEL", "fenced", "v", "FT", token)
	c.Expect(t, ":0\r\n", "SS.DEL", "fenced", "FT", token)
	c.Expect(t, ":0\r\n", "DELEX", "k", "IFEQ", "you")
	c.Expect(t, ":1\r\n", "DELIFEQ", "k", "me")
	for _, bad := range [][]string{{"SS.SET", "k", "v", "NX", "NEX"}, {"SS.SET", "k", "v", "XX"}, {"SS.DEL", "k", "NX"}, {"SS.SET", "k", "v", "FT"}} {
		c.Expect(t, "-ERR syntax error\r\n", bad...)
	}
	c.Expect(t, "-ERR invalid expire time in 'ss.set' command\r\n", "SS.SET", "k", "v", "PX", "0")
	if got := c.Do(t, "SS.SET", "long", "v", "PX", "9223372036854775807"); !strings.HasPrefix(got, "*2\r\n+OK\r\n") {
		t.Errorf("the longest PX: %q", got)
	}
	c.Expect(t, "$1\r\nv\r\n", "GET", "long")
	c.Expect(t, "-ERR malformed timestamp\r\n", "SS.SET", "k", "v", "FT", "x")
}

// TestRefusals: the error texts for unsupported commands.
func TestRefusals(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{MaxKeys: 2})
	for _, r := range []struct{ command, want string }{
		{"LPUSH k v", "ERR unknown command 'LPUSH', the state store holds strings only"},
		{"hset k f v", "ERR unknown command 'hset', the state store holds strings only"},
		{"LCS k l", "ERR unknown command 'LCS', with args beginning with: 'k' 'l' "},
		{"MONITOR", "ERR unsupported: MONITOR; start sscli with -v to see the commands of all clients"},
		{"CLUSTER SLOTS", "ERR This instance has cluster support disabled"},
		{"FUNCTION LOAD x", "ERR unsupported: this server does not run scripts"},
		{"EVAL x 0", "ERR unsupported: this server does not run scripts"},
		{"script load x", "ERR unsupported: this server does not run scripts"},
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
		c.Expect(t, "-"+r.want+"\r\n", strings.Fields(r.command)...)
	}
	c.Expect(t, "-ERR the key length is zero\r\n", "SET", "", "v")
	c.Expect(t, "$-1\r\n", "GET", "")
	c.Expect(t, "+OK\r\n", "MSET", "a", "1", "b", "2")
	c.Expect(t, "-ERR the quota has been exceeded\r\n", "SET", "c", "3", "GET")
	c.Expect(t, "+OK\r\n", "RENAME", "a", "c")
}

// TestProtocol: requests that a connection may make, and those that are refused.
func TestProtocol(t *testing.T) {
	t.Parallel()
	s, c := start(t, emulator.Options{RedisNotify: "KEA"})
	dial := func() *redistest.Client { return redistest.Dial(t, "tcp", redistest.Address(s.RedisURL())) }

	t.Run("pipeline", func(t *testing.T) {
		c := dial()
		var b []byte
		for i := range 5000 {
			b = append(b, redistest.Request("APPEND", "long", strconv.Itoa(i%10))...)
		}
		if _, err := c.Conn.Write(append(b, "PING\r\n"...)); err != nil {
			t.Fatal(err)
		}
		for i := range 5000 {
			if f, err := c.Frame(); err != nil || string(f) != fmt.Sprintf(":%d\r\n", i+1) {
				t.Fatalf("%d: %q, %v", i, f, err)
			}
		}
		if f, err := c.Frame(); err != nil || string(f) != "+PONG\r\n" {
			t.Errorf("%q, %v", f, err)
		}
	})
	t.Run("errors close", func(t *testing.T) {
		for _, bad := range []string{"*1\r\n:1\r\n", "*9999999999\r\n", "*1\r\n$999999999999\r\n", "set \"a\r\n"} {
			c := dial()
			if _, err := c.Conn.Write([]byte(bad)); err != nil {
				t.Fatal(err)
			}
			if got := c.Closed(t); !bytes.HasPrefix(got, []byte("-ERR Protocol error: ")) {
				t.Errorf("%q: %q", bad, got)
			}
		}
	})
	t.Run("browsers", func(t *testing.T) {
		for _, http := range []string{"POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nfoo\r\n", "post x\r\nset k v\r\n"} {
			c := dial()
			if _, err := c.Conn.Write([]byte(http)); err != nil {
				t.Fatal(err)
			}
			if got := c.Closed(t); bytes.Contains(got, []byte("foo")) {
				t.Errorf("%q: %q", http, got)
			}
		}
	})
	t.Run("quit", func(t *testing.T) {
		c := dial()
		if err := c.Send("QUIT"); err != nil {
			t.Fatal(err)
		}
		if got := c.Closed(t); string(got) != "+OK\r\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("reply off", func(t *testing.T) {
		c := dial()
		for _, args := range [][]string{{"CLIENT", "REPLY", "OFF"}, {"SET", "k", "v"}, {"GET", "k"}, {"SUBSCRIBE", "__keyspace@0__:k"}} {
			if err := c.Send(args...); err != nil {
				t.Fatal(err)
			}
		}
		if f, err := c.Frame(); err != nil || string(f) != "*3\r\n$9\r\nsubscribe\r\n$16\r\n__keyspace@0__:k\r\n:1\r\n" {
			t.Fatalf("%q, %v", f, err)
		}
		dial().Expect(t, ":1\r\n", "DEL", "k")
		if f, err := c.Frame(); err != nil || string(f) != "*3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$3\r\ndel\r\n" {
			t.Fatalf("%q, %v", f, err)
		}
	})
	t.Run("reply off in a transaction", func(t *testing.T) {
		c := dial()
		for _, args := range [][]string{{"CLIENT", "REPLY", "OFF"}, {"MULTI"}, {"SET", "k", "v"}, {"DEL", "k"}, {"EXEC"}} {
			if err := c.Send(args...); err != nil {
				t.Fatal(err)
			}
		}
		c.Expect(t, "+OK\r\n", "CLIENT", "REPLY", "ON")
	})
	t.Run("reply skip", func(t *testing.T) {
		c := dial()
		for _, args := range [][]string{{"CLIENT", "REPLY", "SKIP"}, {"SET", "k", "v"}} {
			if err := c.Send(args...); err != nil {
				t.Fatal(err)
			}
		}
		c.Expect(t, "$1\r\nv\r\n", "GET", "k")
		if err := c.Send("CLIENT", "REPLY", "OFF"); err != nil {
			t.Fatal(err)
		}
		c.Expect(t, "+OK\r\n", "CLIENT", "REPLY", "ON")
	})
	t.Run("pushes", func(t *testing.T) {
		c := dial()
		c.Do(t, "HELLO", "3")
		c.Expect(t, ">3\r\n$9\r\nsubscribe\r\n$16\r\n__keyspace@0__:p\r\n:1\r\n", "SUBSCRIBE", "__keyspace@0__:p")
		// The message about a client's own command comes before its reply.
		c.Expect(t, ">3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:p\r\n$3\r\nset\r\n", "SET", "p", "v")
		if f, err := c.Frame(); err != nil || string(f) != "+OK\r\n" {
			t.Errorf("%q, %v", f, err)
		}
		c.Expect(t, "_\r\n", "GET", "nothing")
	})
	t.Run("kill", func(t *testing.T) {
		victim := dial()
		id := strings.Trim(victim.Do(t, "CLIENT", "ID"), ":\r\n")
		c.Expect(t, ":1\r\n", "CLIENT", "KILL", "ID", id)
		victim.Closed(t)
		c.Expect(t, "-ERR No such client\r\n", "CLIENT", "KILL", "127.0.0.1:1")
		victim = dial()
		id = strings.Trim(victim.Do(t, "CLIENT", "ID"), ":\r\n")
		c.Expect(t, ":0\r\n", "CLIENT", "KILL", "ID", id, "TYPE", "normal", "ID", "999999")
		if got := c.Do(t, "CLIENT", "LIST", "ID", "999999", id, "1", id); !strings.Contains(got, "id="+id+" ") {
			t.Errorf("CLIENT LIST: %q", got)
		}
		c.Expect(t, ":1\r\n", "CLIENT", "KILL", "ID", "999999", "TYPE", "pubsub", "TYPE", "normal", "ID", id) // the last ones count
		victim.Closed(t)
	})
	t.Run("info", func(t *testing.T) {
		got := c.Do(t, "INFO", "server")
		for _, line := range []string{"redis_version:7.0.15\r\n", "redis_mode:standalone\r\n", "statestore_backend:emulator\r\n"} {
			if !strings.Contains(got, line) {
				t.Errorf("INFO has no %q", line)
			}
		}
	})
	t.Run("command", func(t *testing.T) {
		c.Expect(t, "*1\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n", "COMMAND", "INFO", "get")
		n, err := strconv.Atoi(strings.Trim(c.Do(t, "COMMAND", "COUNT"), ":\r\n"))
		if list := c.Do(t, "COMMAND"); err != nil || !strings.HasPrefix(list, fmt.Sprintf("*%d\r\n", n)) {
			t.Errorf("COUNT says %d, and there are %.10q", n, list)
		}
		c.Expect(t, "*2\r\n$1\r\na\r\n$1\r\nc\r\n", "COMMAND", "GETKEYS", "MSET", "a", "b", "c", "d")
	})
}

// TestSlowSubscriber: a subscriber that does not read is disconnected, and delays nobody.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, c := start(t, emulator.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	slow, good := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL())), redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	slow.Do(t, "SUBSCRIBE", "c")
	message := strings.Repeat("x", 1<<20)
	for i := 0; ; i++ {
		if got := c.Do(t, "PUBLISH", "c", message); got == ":0\r\n" {
			break
		} else if i == 200 {
			t.Fatal("the subscriber is still there")
		}
	}
	good.Expect(t, "+PONG\r\n", "PING")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "reads too slowly") {
		t.Errorf("the log says %q", log.String())
	}
}

// TestScan: a key that exists during the whole scan is found once, whatever keys are added and removed
// meanwhile.
func TestScan(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	for i := range 500 {
		c.Expect(t, "+OK\r\n", "SET", fmt.Sprintf("stays:%03d", i), "v")
	}
	found := make(map[string]int)
	cursor := "0"
	for round := 0; ; round++ {
		reply := strings.Split(c.Do(t, "SCAN", cursor, "MATCH", "stays:*", "COUNT", "7"), "\r\n")
		for _, word := range reply {
			if strings.HasPrefix(word, "stays:") {
				found[word]++
				if c.Do(t, "DEL", strings.Replace(word, "stays", "came", 1)); round%2 == 0 {
					c.Expect(t, "+OK\r\n", "SET", word+"x", "v") // directly after word
					c.Expect(t, ":1\r\n", "DEL", word+"x")
				}
				c.Expect(t, "+OK\r\n", "SET", strings.Replace(word, "stays", "came", 1), "v")
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
	c.Expect(t, "*2\r\n$1\r\n0\r\n*0\r\n", "SCAN", "0", "TYPE", "list", "COUNT", "10000")
}
