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
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/redistest"
	"github.com/sscli/sscli/internal/wire"
)

// TestRights: the rights that suggest finds in a log are enough for the request, and no one of them can be left out.
func TestRights(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	granted := make(map[string]policy.Method)
	s := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0", Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
		mu.Lock()
		defer mu.Unlock()
		return granted[a.On]&a.Method != 0
	})})
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
		"exists k k2", "touch k", "type k", "rename k k2", "renamenx k k2", "copy k k2", "expire k 9", "pexpire k 9000", "expireat k 9000000000",
		"pexpireat k 9000000000000", "ttl k", "pttl k", "expiretime k", "pexpiretime k", "persist k", "object|encoding k", "object|refcount k",
		"object|idletime k", "object|freq k", "memory|usage k", "ss.get k", "ss.version k", "ss.set k 1", "ss.del k", "ss.vdel k 1", "watch k",
	} {
		verb, rest, _ := strings.Cut(text, " ")
		words := append(strings.Split(verb, "|"), strings.Fields(rest)...)
		keys := slices.DeleteFunc(strings.Fields(rest), func(word string) bool { return !strings.HasPrefix(word, "k") })
		_, options, _ := strings.Cut(rest, " ")
		needs := make(map[string]policy.Method)
		for i, key := range keys {
			needs[key] |= rights(verb, options, i)
		}
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
		`{"op":"request","port":"redis","client":"c","user":"ann","verb":"mget","keys":["a",{"b64":"/w=="}]}`,
		`{"op":"request","port":"redis","client":"c","user":"ann","verb":"rename","key_b64":"/g=="}`,
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
		log     = `{"op":"request","client":"c","user":"bob",`
		redis   = `{"op":"request","port":"redis","client":"redis-1",`
		connect = ` 0.1 -> CONNECT (61 bytes) client id "c", clean start true, keep alive 60s, user name "bob", password` + "\n"
		request = ` 0.3 -> PUBLISH #2 (344 bytes) request SET k 1, correlation 01ff, __ts=1, __srcId=c, response topic "r", expires in 10s` + "\n"
		sent    = " Connect  Publish " + wire.RequestTopic + " Subscribe r Write k"
	)
	for _, c := range []struct {
		lines, want       string
		refused, nameless int
	}{
		{log + `"verb":"get","key":"k","outcome":"refused","cause":"not authorized"}`, "", 1, 0},
		{log + `"verb":"set","key":"k","outcome":"ignored","cause":"a response topic that is not the client's"}`, "", 1, 0},
		{log + `"verb":"set","key":"k","topic":"r","outcome":"refused","cause":"the quota has been exceeded"}`, sent, 0, 0},
		{log + `"verb":"set","key":"k","outcome":"refused","cause":"not authorized"}` + "\n" + log + `"verb":"set","key":"k","topic":"r","outcome":"ok"}`, sent, 1, 0},
		{redis + `"verb":"get","key":"k","outcome":"refused","cause":"NOAUTH Authentication required."}`, "", 1, 0},
		{redis + `"verb":"get","key":"k","outcome":"ok"}`, "", 0, 1},
		{redis + `"user":"bob","verb":"get","key":"k","outcome":"ok"}`, " Read k", 0, 0},
		{redis + `"user":"bob","verb":"flushall","outcome":"refused","cause":"NOPERM this user has no permissions to run the 'flushall' command"}`, "", 0, 0},
		{connect + ` 0.2 <- CONNACK (22 bytes) 0x87 not authorized ("not authorized")`, "", 1, 0},
		{connect + ` 0.2 -> SUBSCRIBE #1 (70 bytes) "r" QoS 1` + "\n" + ` 0.2 <- CONNACK (22 bytes) 0x86 bad user name or password`, "", 2, 0},
		{connect + ` 0.2 <- CONNACK (22 bytes) 0x87 not authorized` + "\n" + connect + ` 0.2 <- CONNACK (22 bytes) 0x00 success`, " Connect ", 1, 0},
		{connect + ` 0.2 -> SUBSCRIBE #1 (70 bytes) "r" QoS 1, "s, 0x87" QoS 1, "t" QoS 1` + "\n" + ` 0.2 <- SUBACK #1 (6 bytes) 0x01 granted QoS 1 (", 0x87"), 0x87 not authorized, 0x01 granted QoS 1`, " Connect  Subscribe r Subscribe t", 1, 0},
		{connect + request, sent, 0, 0},
		{connect + request + ` 0.4 <- PUBACK #2 (4 bytes) 0x00 success`, sent, 0, 0},
		{connect + request + ` 0.4 <- PUBACK #2 (4 bytes) 0x87 not authorized`, " Connect ", 1, 0},
		{connect + request + ` 0.4 <- PUBACK #3 (4 bytes) 0x87 not authorized`, sent, 0, 0},
		{connect + request + ` 0.4 <- PUBACK #2 (4 bytes) 0x97 quota exceeded`, sent, 0, 0},
		{connect + request + ` 0.4 <- PUBLISH #1 (169 bytes) DUP reply "-ERR not authorized\r\n", correlation 01ff, __stat=200`, " Connect ", 1, 0},
		{connect + request + ` 0.4 <- PUBLISH #1 (169 bytes) reply "-ERR not authorized\r\n", correlation 02, __stat=200`, sent, 0, 0},
		{connect + request + ` 0.4 <- PUBLISH #1 (169 bytes) reply "-ERR syntax error\r\n", correlation 01ff`, sent, 0, 0},
		{connect + ` 0.3 -> PUBLISH #2 (30 bytes) message "x -> y" on news` + "\n" + ` 0.4 <- PUBACK #2 (4 bytes) 0x87 not authorized`, " Connect ", 1, 0},
		{connect + ` 0.3 <- PUBLISH #2 (30 bytes) message "0 -> PUBLISH #1 (3 bytes) message 1" on news`, " Connect ", 0, 0},
		{` 0.4 <- PUBACK #2 (4 bytes) 0x87 not authorized`, "", 0, 0},
		{connect + request + connect + ` 0.4 <- PUBACK #2 (4 bytes) 0x87 not authorized`, sent, 0, 0},
		{connect + request + connect + request + ` 0.4 <- PUBLISH #1 (169 bytes) reply "-ERR not authorized\r\n", correlation 01ff`, " Connect ", 2, 0},
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
