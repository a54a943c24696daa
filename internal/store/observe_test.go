package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/wire"
)

// TestObserve: each request, each expiry and each write of another front end is observed once, in order, with
// its outcome, the reason for it, and the clients notified.
func TestObserve(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	var got []string
	s := New(Options{
		Now: func() time.Time { return now }, MaxKeys: 2,
		Authorize: func(_, _, key string, write bool) bool { return key != "secret" || !write },
		Observe: func(e observe.Event) {
			words := append([]string{strings.ToUpper(e.Verb)}, e.Keys...)
			if e.Value != nil {
				words = append(words, string(e.Value))
			}
			for _, w := range e.Options {
				words = append(words, string(w))
			}
			line := fmt.Sprintf("%s %s %s: %s", e.Op, e.Client, strings.TrimSpace(strings.Join(words, " ")), e.Outcome)
			if e.Cause != "" {
				line += ", " + e.Cause
			}
			if e.Version != "" {
				line += " @" + strings.TrimPrefix(e.Version, "17000000")
			}
			for _, n := range e.Notified {
				line += " >" + n
			}
			got = append(got, line)
		},
	})
	ts := []byte("1700000000000:0:c")
	do := func(fence string, words ...string) {
		req := &Request{ClientID: "c", Payload: wire.AppendRequest(nil, words...), Timestamp: ts}
		if fence != "" {
			req.Fence = []byte(fence)
		}
		s.Do(req, nil)
	}
	want := []string{}
	step := func(fence, words string, lines ...string) {
		do(fence, strings.Fields(words)...)
		want = append(want, lines...)
	}
	step("", "KEYNOTIFY k", "request c KEYNOTIFY k: ok")
	step("", "KEYNOTIFY k STOP", "request c KEYNOTIFY k STOP: ok")
	step("", "KEYNOTIFY k STOP", "request c KEYNOTIFY k STOP: no, not watched")
	step("", "KEYNOTIFY k", "request c KEYNOTIFY k: ok")
	step("", "GET k", "request c GET k: no, missing")
	step("", "SET k v NEX PX 1000", "request c SET k v NEX PX 1000: ok, was missing @00000:1:StateStore >c")
	step("", "SET k v NEX PX 1000", "request c SET k v NEX PX 1000: ok, same value @00000:2:StateStore >c")
	step("", "SET k w NEX", "request c SET k w NEX: no, another value @00000:2:StateStore")
	step("", "SET k w NX", "request c SET k w NX: no, exists @00000:2:StateStore")
	step("", "VDEL k w", "request c VDEL k w: no, another value")
	step("", "DEL other", "request c DEL other: no, missing")
	step("", "SET k v", "request c SET k v: ok @00000:3:StateStore >c")
	step("1700000000000:9:x", "SET f 1", "request c SET f 1: ok @00000:4:StateStore")
	step("1700000000000:8:x", "SET f 2", "request c SET f 2: refused, "+wire.TextFenceLower)
	step("", "DEL f", "request c DEL f: refused, "+wire.TextFenceRequired)
	step("", "SET full 1", "request c SET full 1: refused, "+wire.TextQuota)
	step("", "SET secret 1", "request c SET secret 1: refused, "+wire.TextNotAuthorized)
	step("", "SET", "request c SET: refused, "+wire.TextWrongArguments)
	step("", "BLAH x", "request c BLAH x: refused, "+wire.TextUnknownCommand)
	step("", "SCAN *", "request c SCAN *: ok")
	step("", "DEL k", "request c DEL k: ok @00000:3:StateStore >c")
	step("", "SET k v PX 5", "request c SET k v PX 5: ok @00000:5:StateStore >c")
	now = now.Add(time.Second)
	step("", "SET k v", "expire  k: ok @00000:5:StateStore >c", "request c SET k v: ok @01000:0:StateStore >c")
	s.TakeNotifications()
	if refusal := s.Apply(Write{ClientID: "redis-1", Cause: "append", Key: []byte("k"), Value: []byte("vw")}); refusal != "" {
		t.Fatal(refusal)
	}
	want = append(want, "apply redis-1 k: ok @01000:1:StateStore >c")
	s.Apply(Write{ClientID: "redis-1", Cause: CauseDel, Key: []byte("gone"), Delete: true}) // changes nothing
	s.Do(&Request{ClientID: "c", Payload: []byte("*1\r\n"), Timestamp: ts}, nil)
	want = append(want, "request c : refused, "+wire.TextSyntax)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnobserved: without an observer, a request has no cost for observation.
func TestUnobserved(t *testing.T) {
	s := New(Options{})
	get := &Request{ClientID: "c", Payload: wire.AppendRequest(nil, "GET", "k")}
	set := &Request{ClientID: "c", Payload: wire.AppendRequest(nil, "SET", "k", "v"), Timestamp: []byte("1:0:c")}
	dst := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(1000, func() {
		s.Do(set, dst)
		s.Do(get, dst)
	}); n >= 1 {
		t.Errorf("%v allocations for a SET and a GET", n)
	}
}
