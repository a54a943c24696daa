package policycmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/redistest"
	"github.com/sscli/sscli/internal/wire"
)

// TestRights: the rights that suggest finds in a log are enough for the request, and no one of them can be left out.
func TestRights(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	granted := make(map[string]policy.Method)
	var logged map[string]policy.Method // by the last event
	o := emulator.Options{Redis: "127.0.0.1:0", Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
		mu.Lock()
		defer mu.Unlock()
		m, _ := policy.ParseMethod(string(a.Method))
		return granted[a.On]&m != 0
	})}
	o.Observe = func(e emulator.Event) {
		mu.Lock()
		defer mu.Unlock()
		logged = make(map[string]policy.Method)
		for i, key := range e.Keys {
			for _, m := range rights(e.Access[i]) {
				logged[key] |= m
			}
		}
	}
	s := emulator.Start(t, o)
	c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	allowed := func(rights map[string]policy.Method, words []string) bool {
		grant := func(all map[string]policy.Method) {
			mu.Lock()
			defer mu.Unlock()
			granted = all
		}
		all := policy.Read | policy.Write
		grant(map[string]policy.Method{"k": all, "k2": all})
		c.Expect(t, "+OK\r\n", "SET", "k", "1")
		c.Expect(t, "+OK\r\n", "SET", "k2", "1")
		grant(rights)
		return c.Do(t, words...) != "-ERR not authorized\r\n"
	}
	for _, text := range []string{
		"get k", "set k 1", "set k 1 nx", "set k 1 KEEPTTL GET", "setnx k 1", "setex k 9 1", "psetex k 9000 1", "getset k 1", "getdel k", "getex k",
		"getex k ex 9", "mget k k2", "mset k 1 k2 1", "msetnx k 1", "strlen k", "getrange k 0 1", "substr k 0 1", "setrange k 1 1", "append k 1",
		"incr k", "decr k", "incrby k 1", "decrby k 1", "setbit k 1 1", "getbit k 1", "incrbyfloat k 1", "del k k2", "unlink k", "delifeq k 1", "delex k",
		"exists k k2", "touch k", "type k", "rename k k2", "renamenx k k2", "copy k k2", "expire k 9", "expire k 9 gt", "pexpireat k 9000000000000 LT", "expire k 9 xx", "pexpire k 9000", "expireat k 9000000000",
		"pexpireat k 9000000000000", "ttl k", "pttl k", "expiretime k", "pexpiretime k", "persist k", "object|encoding k", "object|refcount k",
		"object|idletime k", "object|freq k", "memory|usage k", "ss.get k", "ss.version k", "ss.set k 1", "ss.del k", "ss.vdel k 1", "watch k",
	} {
		verb, rest, _ := strings.Cut(text, " ")
		words := append(strings.Split(verb, "|"), strings.Fields(rest)...)
		keys := slices.DeleteFunc(strings.Fields(rest), func(word string) bool { return !strings.HasPrefix(word, "k") })
		allowed(map[string]policy.Method{"k": policy.Read | policy.Write, "k2": policy.Read | policy.Write}, words)
		mu.Lock()
		needs := logged
		mu.Unlock()
		if !allowed(needs, words) {
			t.Errorf("%s: refused with %v", text, needs)
		}
		for _, key := range keys {
			for _, m := range needs[key].Each() {
				fewer := map[string]policy.Method{"k": needs["k"], "k2": needs["k2"]}
				fewer[key] &^= m
				if allowed(fewer, words) {
					t.Errorf("%s: allowed without %s of %s", text, m, key)
				}
			}
		}
	}
}

// TestLoggedKeys: keys that are not UTF-8 are read from a log.
func TestLoggedKeys(t *testing.T) {
	t.Parallel()
	s := &seen{known: make(map[string]bool)}
	for _, line := range []string{
		`{"op":"request","port":"redis","client":"c","user":"ann","verb":"mget","access":"read","keys":["a",{"b64":"/w=="}]}`,
		`{"op":"request","port":"redis","client":"c","user":"ann","verb":"rename","access":"read+write","key_b64":"/g=="}`,
	} {
		if err := s.event([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, d := range s.deeds {
		got = append(got, fmt.Sprintf("%s %q", d.Method, d.On))
	}
	if want := []string{`Read "a"`, `Read "\xff"`, `Read "\xfe"`, `Write "\xfe"`}; !slices.Equal(got, want) {
		t.Errorf("%s", got)
	}
}

// TestRefused: a client gets no right from a request that was refused because it lacked one, or a login.
func TestRefused(t *testing.T) {
	t.Parallel()
	const (
		log   = `{"op":"request","client":"c","user":"bob",`
		redis = `{"op":"request","port":"redis","client":"redis-1",`
		sent  = " Connect  Publish " + wire.RequestTopic + " Subscribe r Write k"
	)
	line := func(p format.Packet) string { return string(p.JSON()) }
	answer := func(kind string, id int, codes ...int) string {
		return line(format.Packet{Type: kind, ID: id, Codes: codes})
	}
	subscribe := func(filters ...string) string {
		return line(format.Packet{Sent: true, Type: "SUBSCRIBE", ID: 1, Filters: filters})
	}
	reply := func(correlation, text string) string {
		return line(format.Packet{Type: "PUBLISH", ID: 1, Topic: "r", Correlation: correlation, Payload: []byte(text), Duplicate: true})
	}
	connect := line(format.Packet{Sent: true, Type: "CONNECT", Client: "c", User: "bob"})
	request := line(format.Packet{Sent: true, Type: "PUBLISH", ID: 2, Topic: wire.RequestTopic, ResponseTopic: "r", Correlation: "01ff", Words: [][]byte{[]byte("SET"), []byte("k"), []byte("1")}})
	news := line(format.Packet{Sent: true, Type: "PUBLISH", ID: 2, Topic: "news", Payload: []byte("x")})
	for _, c := range []struct {
		lines, want       string
		refused, nameless int
	}{
		{log + `"verb":"get","access":"read","key":"k","outcome":"refused","cause":"not authorized"}`, "", 1, 0},
		{log + `"verb":"set","access":"write","key":"k","outcome":"ignored","cause":"a response topic that is not the client's"}`, "", 1, 0},
		{log + `"verb":"set","access":"write","key":"k","topic":"r","outcome":"refused","cause":"the quota has been exceeded"}`, sent, 0, 0},
		{log + `"verb":"set","access":"write","key":"k","outcome":"refused","cause":"not authorized"}` + "\n" + log + `"verb":"set","access":"write","key":"k","topic":"r","outcome":"ok"}`, sent, 1, 0},
		{redis + `"verb":"get","access":"read","key":"k","outcome":"refused","cause":"NOAUTH Authentication required."}`, "", 1, 0},
		{redis + `"verb":"get","access":"read","key":"k","outcome":"ok"}`, "", 0, 1},
		{redis + `"user":"bob","verb":"get","access":"read","key":"k","outcome":"ok"}`, " Read k", 0, 0},
		{redis + `"user":"bob","verb":"flushall","outcome":"refused","cause":"NOPERM this user has no permissions to run the 'flushall' command"}`, "", 0, 0},
		{connect + answer("CONNACK", 0, 0x87), "", 1, 0},
		{connect + subscribe("r") + answer("CONNACK", 0, 0x86), "", 2, 0},
		{connect + answer("CONNACK", 0, 0x87) + connect + answer("CONNACK", 0, 0), " Connect ", 1, 0},
		{connect + subscribe("r", "s, 0x87", "t") + answer("SUBACK", 1, 1, 0x87, 1), " Connect  Subscribe r Subscribe t", 1, 0},
		{connect + request, sent, 0, 0},
		{connect + request + answer("PUBACK", 2, 0), sent, 0, 0},
		{connect + request + answer("PUBACK", 2, 0x87), " Connect ", 1, 0},
		{connect + request + answer("PUBACK", 3, 0x87), sent, 0, 0},
		{connect + request + answer("PUBACK", 2, 0x97), sent, 0, 0},
		{connect + request + reply("01ff", "-ERR not authorized\r\n"), " Connect ", 1, 0},
		{connect + request + reply("02", "-ERR not authorized\r\n"), sent, 0, 0},
		{connect + request + reply("01ff", "-ERR syntax error\r\n"), sent, 0, 0},
		{connect + news + answer("PUBACK", 2, 0x87), " Connect ", 1, 0},
		{connect + reply("", "message"), " Connect ", 0, 0},
		{answer("PUBACK", 2, 0x87), "", 0, 0},
		{connect + request + connect + answer("PUBACK", 2, 0x87), sent, 0, 0},
		{connect + request + connect + request + reply("01ff", "-ERR not authorized\r\n"), " Connect ", 2, 0},
	} {
		file := filepath.Join(t.TempDir(), "seen")
		if err := os.WriteFile(file, []byte(c.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := readLogs(t.Context(), &app.App{}, []string{file}, question{})
		if err != nil {
			t.Fatalf("%s: %v", c.lines, err)
		}
		got := ""
		for _, d := range s.deeds {
			if d.ClientID != "c" && d.ClientID != "redis-1" || d.Username != "bob" {
				t.Errorf("%s: %+v", c.lines, d)
			}
			got += " " + d.Method.String() + " " + d.On
		}
		if got != c.want || s.refused != c.refused || s.nameless != c.nameless {
			t.Errorf("%s:\n%q, want %q; %d refused, %d nameless", c.lines, got, c.want, s.refused, s.nameless)
		}
		if len(s.without) > 0 != (c.refused+c.nameless > 0) {
			t.Errorf("%s: what was refused is not compared: %+v", c.lines, s.without)
		}
	}
}

// TestNamesAreText: no rule can hold a name that is not UTF-8.
func TestNamesAreText(t *testing.T) {
	for _, q := range []question{{user: "\xff"}, {client: "\xff"}, {attributes: []string{"a=\xff"}}, {attributes: []string{"\xff=a"}}} {
		if p, err := q.principal(); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
			t.Errorf("%+v, %v", p, err)
		}
	}
}
