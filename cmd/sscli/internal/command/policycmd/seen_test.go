package policycmd

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/redistest"
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

// TestNamesAreText: no rule can hold a name that is not UTF-8.
func TestNamesAreText(t *testing.T) {
	for _, q := range []question{{user: "\xff"}, {client: "\xff"}, {attributes: []string{"a=\xff"}}, {attributes: []string{"\xff=a"}}} {
		if p, err := q.principal(); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
			t.Errorf("%+v, %v", p, err)
		}
	}
}
