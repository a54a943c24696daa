package emulator_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/testkit/await"
)

// observations collects what a server observed, as lines.
type observations struct {
	mu    sync.Mutex
	lines []string
}

func (all *observations) add(e observe.Event) {
	line := fmt.Sprintf("%s %s", e.Op, e.Client)
	if e.Port != "" {
		line = fmt.Sprintf("%s %s", e.Port, e.Client)
	}
	if e.User != "" {
		line += "(" + e.User + ")"
	}
	switch {
	case e.Op == observe.Request || e.Op == observe.Expire:
		if e.Port != "" {
			line += " " + e.Verb
		} else if e.Verb != "" {
			line += " " + strings.ToUpper(e.Verb)
		}
		for _, k := range e.Keys {
			line += " " + k
		}
		if e.Port == "" {
			for _, w := range append([][]byte{e.Value}, e.Options...) {
				line = strings.TrimSuffix(line+" "+string(w), " ")
			}
			line = strings.Replace(line, "expire  ", "expire ", 1)
		}
		switch {
		case e.Port != "" && e.Outcome == observe.OK:
			line += ": " + e.Result
		default:
			line += ": " + string(e.Outcome)
		}
		if e.Cause != "" {
			line += ", " + e.Cause
		}
		if e.Topic != "" {
			line += " to " + e.Topic
		}
	default:
		if e.Remote == "" || e.Protocol == "" {
			line += " (no address)"
		}
		line += " " + e.Reason
	}
	if e.Version != "" {
		line += " versioned"
	}
	for _, client := range e.Notified {
		line += " >" + client
	}
	all.mu.Lock()
	all.lines = append(all.lines, line)
	all.mu.Unlock()
}

func (all *observations) expect(t *testing.T, want ...string) {
	t.Helper()
	all.mu.Lock()
	defer all.mu.Unlock()
	if diff := cmp.Diff(want, all.lines); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
	all.lines = nil
}

func TestObserve(t *testing.T) {
	t.Parallel()
	var seen observations
	s := emulator.Start(t, emulator.Options{
		Observe:    seen.add,
		CheckLogin: func(user string, password []byte) bool { return string(password) == "right" },
	})
	login := func(password string) func(*packets.Connect) {
		return func(c *packets.Connect) {
			c.UsernameFlag, c.PasswordFlag, c.Username, c.Password = true, true, "ann", []byte(password)
		}
	}
	dial(t, s, "x").Hello(login("wrong"))
	w := connect(t, s, "w", login("right"))
	w.do("KEYNOTIFY k", "+OK")
	seen.expect(t,
		"refuse x bad username or password",
		"connect w(ann) ",
		"request w(ann) KEYNOTIFY k: ok to clients/w/response")

	c := connect(t, s, "c", login("right"))
	c.do("SET k v NX PX 3600000", "+OK")
	c.do("SET k v NX", ":-1")
	s.FastForward(time.Hour)
	c.do("GET k", "$-1")
	seen.expect(t,
		"connect c(ann) ",
		"request c(ann) SET k v NX PX 3600000: ok to clients/c/response versioned >w",
		"request c(ann) SET k v NX: no, exists to clients/c/response versioned",
		"expire k: ok versioned >w",
		"request c(ann) GET k: no, missing to clients/c/response")

	// Requests without a reply.
	for _, change := range []func(p *packets.Publish){
		func(p *packets.Publish) { p.QoS = 0 },
		func(p *packets.Publish) { p.Properties.ResponseTopic = "" },
		func(p *packets.Publish) { p.Properties.CorrelationData = nil },
	} {
		p := c.publication("GET", "k")
		change(p)
		c.Send(p)
	}
	c.Expect("PUBACK 0x00", "PUBACK 0x00")
	seen.expect(t,
		"request c(ann) GET k: ignored, QoS 0, not 1",
		"request c(ann) GET k: ignored, no response topic",
		"request c(ann) GET k: ignored, no correlation data")

	// Ways to disconnect.
	c.Send(&packets.Disconnect{Properties: &packets.Properties{}})
	c.Ended()
	again := connect(t, s, "w", login("right"))
	s.DropAll()
	again.Ended()
	last := connect(t, s, "last", login("right"))
	last.Conn.Close()
	await.State(t, s, func(st emulator.State) bool { return st.Clients == 0 })
	seen.expect(t,
		"disconnect c(ann) normal disconnection",
		"disconnect w(ann) session taken over",
		"connect w(ann) ",
		"disconnect w(ann) cut off",
		"connect last(ann) ",
		"disconnect last(ann) connection lost: closed by the client")
}

// TestObserveLater: delayed requests are observed when they reach the store, or when they have expired
// before.
func TestObserveLater(t *testing.T) {
	t.Parallel()
	var seen observations
	s := emulator.Start(t, emulator.Options{Observe: seen.add, Latency: 2 * time.Hour})
	c := connect(t, s, "c")
	p := c.publication("GET", "old")
	p.Properties.MessageExpiry = pointer(uint32(3600))
	c.Send(p)
	c.ask("GET k")
	c.Expect("PUBACK 0x00", "PUBACK 0x00")
	seen.expect(t, "connect c ")
	s.FastForward(3 * time.Hour)
	c.Expect("reply $-1")
	seen.expect(t,
		"request c GET old: ignored, its message expiry had passed",
		"request c GET k: no, missing to clients/c/response")
}

// TestObserveRedis: commands of Redis clients are observed as typed, each with its effect on the store, and
// without passwords.
func TestObserveRedis(t *testing.T) {
	t.Parallel()
	var seen observations
	var bytes strings.Builder
	s, c := startWithRedis(t, emulator.Options{Observe: func(e observe.Event) {
		seen.add(e)
		if e.Port == "redis" {
			fmt.Fprintf(&bytes, "%q %q %q", e.Keys, e.Value, e.Options)
		}
	}})
	w := connect(t, s, "w")
	w.do("KEYNOTIFY k", "+OK")
	seen.expect(t, "connect w ", "request w KEYNOTIFY k: ok to clients/w/response")
	c.Expect(t, "+OK\r\n", "SET", "k", "1", "NX", "PX", "3600000")
	c.Expect(t, "$-1\r\n", "SET", "k", "1", "NX")
	c.Expect(t, ":2\r\n", "INCR", "k")
	c.Expect(t, "$1\r\n2\r\n", "GET", "k")
	c.Expect(t, "+OK\r\n", "MSET", "k", "3", "j", "3")
	c.Expect(t, ":-1\r\n", "SS.VDEL", "k", "4")
	c.Expect(t, "+OK\r\n", "MULTI")
	c.Expect(t, "+QUEUED\r\n", "APPEND", "k", "4")
	c.Expect(t, "+QUEUED\r\n", "DEL", "j")
	c.Expect(t, "*2\r\n:2\r\n:1\r\n", "EXEC")
	c.Expect(t, "+PONG\r\n", "PING")
	for _, name := range []string{"AUTH", "AUHT"} {
		if err := c.Send(name, "hunter2"); err != nil {
			t.Fatal(err)
		}
		if f, err := c.Frame(); err != nil || f[0] != '-' {
			t.Fatalf("%q, %v", f, err)
		}
	}
	s.FastForward(2 * time.Hour)
	c.Expect(t, "+PONG\r\n", "PING")
	seen.expect(t,
		"redis redis-1 set k: OK versioned >w",
		"redis redis-1 set k: no, exists versioned",
		"redis redis-1 incr k: 2 versioned >w",
		"redis redis-1 get k: 1 byte versioned",
		"redis redis-1 mset k j: OK versioned >w",
		"redis redis-1 ss.vdel k: no, another value versioned",
		"redis redis-1 multi: OK",
		"redis redis-1 append k: 2 versioned >w",
		"redis redis-1 del j: 1 versioned",
		"redis redis-1 exec: 2 items",
		"redis redis-1 ping: PONG",
		"redis redis-1 auth: refused, AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
		"redis redis-1 auht: refused, unknown command 'AUHT'",
		"redis redis-1 ping: PONG")
	if regexp.MustCompile("hunter").MatchString(bytes.String()) {
		t.Errorf("a password was observed: %s", bytes.String())
	}
}

// TestObserveRedisUnmet: which commands of Redis clients did not do what they ask for, and why.
func TestObserveRedisUnmet(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 8)
	_, c := startWithRedis(t, emulator.Options{Observe: func(e observe.Event) {
		if e.Op == observe.Request {
			seen <- strings.TrimSpace(string(e.Outcome) + " " + e.Cause + e.Result)
		}
	}})
	for _, row := range []struct{ command, want string }{ // the key k exists, and n does not
		{"GET n", "no missing"}, {"GETDEL n", "no missing"}, {"GETDEL k", "ok 1 byte"}, {"GETEX n", "no missing"}, {"GETEX k", "ok 1 byte"},
		{"SS.GET n", "no missing"}, {"SS.GET k", "ok 2 items"}, {"SS.VERSION n", "no missing"},
		{"GETSET n 1", "ok nil"}, {"MGET n", "ok 1 item"}, {"STRLEN n", "ok 0"}, {"EXPIRE n 10", "ok 0"}, {"COPY n m", "ok 0"},
		{"SET k 1 NX", "no exists"}, {"SET k 1 NX GET", "no exists"}, {"SET n 1 NX GET", "ok nil"}, {"SET n 1 GET", "ok nil"},
		{"SET n 1 XX", "no missing"}, {"SET n 1 XX GET", "no missing"}, {"SET k 1 XX", "ok OK"},
		{"SETNX k 1", "no exists"}, {"SETNX n 1", "ok 1"}, {"MSETNX n 1 k 1", "no exists"}, {"MSETNX n 1 m 1", "ok 1"},
		{"SS.SET k 1 NX", "no exists"}, {"SS.SET n 1 NX", "ok 2 items"},
		{"DEL n m", "no missing"}, {"DEL k n", "ok 1"}, {"UNLINK n", "no missing"}, {"DELEX n", "no missing"},
		{"EXISTS n", "no missing"}, {"EXISTS k n", "ok 1"}, {"TOUCH n", "no missing"},
		{"DELIFEQ n 0", "no missing"}, {"DELIFEQ k 1", "no another value"}, {"DELIFEQ k 0", "ok 1"}, {"DELEX k IFEQ 1", "no another value"},
		{"SS.DEL n", "no missing"}, {"SS.DEL k", "ok 1"}, {"SS.VDEL n 0", "no missing"}, {"SS.VDEL k 1", "no another value"}, {"SS.VDEL k 0", "ok 1"},
		{"EXEC", "no a watched key changed"},
	} {
		scene := []string{"FLUSHALL", "SET k 0"}
		if row.command == "EXEC" {
			scene = append(scene, "WATCH k", "SET k 1", "MULTI")
		}
		for _, command := range append(scene, row.command) {
			c.Do(t, strings.Fields(command)...)
		}
		got := ""
		for range len(scene) + 1 {
			got = <-seen
		}
		if got != row.want {
			t.Errorf("%s: observed %q, want %q", row.command, got, row.want)
		}
	}
}
