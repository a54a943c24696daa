package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// A steered is a store with a control port.
type steered struct {
	t     *testing.T
	store *emulator.Server
	url   string
}

func steer(t *testing.T) steered {
	t.Helper()
	return steerWith(t, emulator.Options{})
}

func steerWith(t *testing.T, o emulator.Options) steered {
	t.Helper()
	store := emulator.Start(t, o)
	f := serveFlags{}
	url, c, err := startControl(store, "127.0.0.1:0", false, f.opener(o, store))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return steered{t, store, url}
}

// ask sends a request, "POST /path {body}", and returns the status and the answer.
func (s steered) ask(text string, change func(*http.Request)) (status int, answer string) {
	s.t.Helper()
	method, rest, _ := strings.Cut(text, " ")
	path, body, _ := strings.Cut(rest, " ")
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(content)
}

// do is ask for a request that must succeed.
func (s steered) do(text string) string {
	s.t.Helper()
	status, answer := s.ask(text, nil)
	if status >= 300 {
		s.t.Fatalf("%s: %d, %s", text, status, answer)
	}
	return answer
}

func (s steered) session(o client.Options) *client.Session {
	s.t.Helper()
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Address = s.store.Addr().String()
	session, err := client.Dial(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return session
}

// TestControl: the clock, faults, connections and restarts, as a client sees them.
func TestControl(t *testing.T) {
	t.Parallel()
	s := steer(t)
	c := s.session(client.Options{RetryFor: time.Minute})
	ctx := t.Context()
	set := func(key string, o client.SetOptions) error { _, err := c.Set(ctx, key, []byte("v"), o); return err }
	found := func(key string) bool {
		t.Helper()
		for {
			r, err := c.Get(ctx, key)
			if isA[*client.LostError](err) {
				continue // sent before the client noticed that the connection was closed
			}
			if err != nil {
				t.Fatal(err)
			}
			return r.Found
		}
	}
	if err := set("lease", client.SetOptions{TTL: time.Hour}); err != nil || !found("lease") {
		t.Fatal(err)
	}
	s.do(`POST /fast-forward {"by": "59m"}`)
	if !found("lease") {
		t.Error("it expired after 59 of 60 minutes")
	}
	s.do(`POST /fast-forward {"by": "2m"}`)
	if found("lease") {
		t.Error("it did not expire")
	}

	s.do(`POST /faults {"verb": "set", "key": "a*", "cut": "after", "count": 2}`)
	for range 2 {
		if err := set("abc", client.SetOptions{}); !isA[*client.LostReplyError](err) {
			t.Errorf("set, whose answer is lost: %v", err)
		}
	}
	if err := set("abc", client.SetOptions{}); err != nil || !strings.Contains(s.do("GET /faults"), `"fired":2,"over":true`) {
		t.Errorf("the third set: %v, %s", err, s.do("GET /faults"))
	}
	s.do(`POST /faults {"key": "late", "delay": "1h"}`)
	late := make(chan error, 1)
	go func() { late <- set("late", client.SetOptions{}) }()
	for {
		var st controlState
		if err := json.Unmarshal([]byte(s.do("GET /state")), &st); err != nil {
			t.Fatal(err)
		}
		if st.Delayed == 1 {
			break
		}
	}
	s.do(`POST /faults {"client": "somebody else", "drop": "request", "count": 0}`)
	s.do(`POST /fast-forward {"by": "1h"}`) // the request has expired, too
	if !found("abc") {
		t.Error("the fault of another client")
	}
	s.do("DELETE /faults")
	if s.do("GET /faults") != "[]\n" {
		t.Error("faults are left")
	}

	s.do(`POST /disconnect {}`)
	if !found("abc") {
		t.Error("lost by a broken connection")
	}
	s.do(`POST /restart {"empty": false}`)
	if !found("abc") {
		t.Error("lost by a restart that keeps the keys")
	}
	s.do(`POST /restart {"empty": true}`)
	if found("abc") {
		t.Error("kept by a restart of an empty store")
	}
}

// TestControlNotification: a notification is dropped, and the next one is not.
func TestControlNotification(t *testing.T) {
	t.Parallel()
	s := steer(t)
	w, err := s.session(client.Options{}).Watch(t.Context(), []string{"k"}, client.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s.do(`POST /faults {"drop": "notification", "key": "k"}`)
	for _, value := range []string{"1", "2"} {
		if _, err := s.store.Set("k", value); err != nil {
			t.Fatal(err)
		}
	}
	for e, err := range w.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == client.EventSet {
			if string(e.Value) != "2" {
				t.Errorf("the dropped notification of %q came", e.Value)
			}
			return
		}
	}
}

// A strict is a client as the SDKs are: it keeps its connection, and refuses a version that is more than a minute ahead
// of its own clock (protocol.md 1.7).
type strict struct {
	*client.Session
	t     *testing.T
	clock *wire.Clock
}

func (s steered) strict(id string) strict {
	return strict{s.session(client.Options{ClientID: id}), s.t, wire.NewClock(id, time.Now)}
}

func (c strict) observe(v client.Version, err error) error {
	return errors.Join(err, c.clock.Observe(v))
}

// lease tries to take a lease of two minutes, and returns its fencing token.
func (c strict) lease(name string) (client.Version, error) {
	l, err := c.AcquireLock(c.t.Context(), name, client.LockOptions{TTL: 2 * time.Minute, Holder: []byte(c.ClientID()), Try: true})
	return l.Token, c.observe(l.Token, err)
}

func (c strict) set(key string, fence client.Version) error {
	r, err := c.Set(c.t.Context(), key, []byte("v"), client.SetOptions{WriteOptions: client.WriteOptions{Fence: fence}})
	return c.observe(r.Version, err)
}

// TestControlLoop: fifty tests of a lease of two minutes with two clients that stay connected, as a suite with
// Microsoft's SDK has them: each begins with a reset, and lets the lease expire. Moving the clock would break the
// clients in the second test.
func TestControlLoop(t *testing.T) {
	t.Parallel()
	s := steer(t)
	a, b := s.strict("a"), s.strict("b")
	for i := range 50 {
		s.do("POST /reset {}")
		token, err := a.lease("lease")
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if _, err := b.lease("lease"); !errors.Is(err, client.ErrLockBusy) {
			t.Fatalf("%d: a lease that another client holds: %v", i, err)
		}
		if err := a.set("work", token); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		s.do(`POST /faults {"verb": "DEL", "error": "quota", "count": 0}`) // the reset removes it
		if got := s.do(`POST /expire {"by": "121s"}`); got != "{\"expired\":1}\n" {
			t.Fatalf("%d: %s", i, got)
		}
		newer, err := b.lease("lease")
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if err := errors.Join(b.set("work", newer), a.clock.Observe(newer)); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if err := a.set("work", token); !errors.Is(err, client.ErrFenced) {
			t.Fatalf("%d: a write with the token of a lease that expired: %v", i, err)
		}
	}
	s.do("POST /reset {}")
	s.do(`POST /fast-forward {"by": "31s"}`)
	if err := a.set("k", client.Version{}); err != nil {
		t.Fatal(err)
	}
	s.do(`POST /fast-forward {"by": "31s"}`)
	if err := a.set("k", client.Version{}); !errors.Is(err, wire.ErrDrift) {
		t.Errorf("after fast-forwards of 62 s: %v", err)
	}
	s.do("POST /reset {}")
	if err := a.set("k", client.Version{}); err != nil {
		t.Error(err)
	}
	select {
	case <-a.Down():
		t.Error("the connection was lost")
	default:
	}
}

// TestControlExpire: keys expire by name, by pattern and by what they have left.
func TestControlExpire(t *testing.T) {
	t.Parallel()
	s := steer(t)
	for key, ttl := range map[string]time.Duration{"a1": time.Minute, "a2": time.Hour, "b": time.Hour, "c": 0, "\xff": time.Second} {
		e := emulator.Entry{}
		if ttl > 0 {
			e.Expires = s.store.Now().Add(ttl)
		}
		if _, err := s.store.SetEntry(key, e); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ body, left string }{
		{`{"by": "1s"}`, "a1 a2 b c"},
		{`{"key": "c"}`, "a1 a2 b c"}, // never expires
		{`{"within": "2m", "key": "b"}`, "a1 a2 b c"},
		{`{"within": "2m"}`, "a2 b c"},
		{`{"key": "a*"}`, "b c"},
		{`{}`, "c"},
	} {
		s.do("POST /expire " + tt.body)
		if got := strings.Join(s.store.Keys(), " "); got != tt.left {
			t.Errorf("after %s: %s, want %s", tt.body, got, tt.left)
		}
	}
}

// TestControlLoad: what /snapshot writes, /load reads, and so do the commands that read an export.
func TestControlLoad(t *testing.T) {
	t.Parallel()
	s := steer(t)
	values := map[string]string{"a": "1", "b\xff": "\x00", "empty": ""}
	for key, value := range values {
		if _, err := s.store.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	lines := s.do("GET /snapshot")
	s.do("POST /reset {}")
	asLines := func(r *http.Request) { r.Header.Set("Content-Type", linesType) }
	if status, answer := s.ask("POST /load "+lines, asLines); status != 200 || !strings.Contains(answer, `"keys":3`) {
		t.Errorf("%d, %s", status, answer)
	}
	for key, value := range values {
		if e, found := s.store.Get(key); !found || string(e.Value) != value {
			t.Errorf("%q: %q", key, e.Value)
		}
	}
	for body, want := range map[string]string{`{"key": 1}`: "body: line 1: key is a number", "x": "body: line 1: ", lines[:20]: "body: line 1: "} {
		if status, answer := s.ask("POST /load "+body, asLines); status != 400 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d, %q, want %s", body, status, answer, want)
		}
	}
}

// TestControlBusy: who sends or reads slowly keeps others waiting for a second, and they learn when to try again.
func TestControlBusy(t *testing.T) {
	t.Parallel()
	s := steer(t)
	slow, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "POST /load HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+linesType+"\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	for {
		resp, err := http.Get(s.url + "/snapshot")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			continue // the slow request has not begun
		}
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s, Retry-After: %q", resp.Status, resp.Header.Get("Retry-After"))
		}
		break
	}
	slow.Close()
	for status := 0; status != http.StatusOK; {
		status, _ = s.ask("GET /snapshot", nil)
	}
}

// TestStores: stores in one server have keys, a clock and faults of their own, and end.
func TestStores(t *testing.T) {
	t.Parallel()
	s := steerWith(t, emulator.Options{Redis: "127.0.0.1:0", Load: func(yield func(emulator.Seed, error) bool) { yield(emulator.Seed{Key: "seed"}, nil) }})
	get := func(url, key string) (found bool, err error) {
		t.Helper()
		session, err := client.Dial(t.Context(), client.Options{Address: strings.TrimPrefix(url, "mqtt://"), Timeout: time.Minute})
		if err != nil {
			return false, err
		}
		defer session.Close()
		r, err := session.Get(t.Context(), key)
		return r.Found, err
	}
	var all [2]listedStore
	for i, name := range []string{"a", "b"} {
		if err := json.Unmarshal([]byte(s.do(`POST /stores {"name": "`+name+`"}`)), &all[i]); err != nil || all[i].RedisURL == "" {
			t.Fatalf("%+v, %v", all[i], err)
		}
		if found, err := get(all[i].URL, "seed"); !found || err != nil {
			t.Errorf("%s: %t, %v", name, found, err)
		}
		if all[i].ControlURL != s.url+"/stores/"+name {
			t.Errorf("%s", all[i].ControlURL)
		}
	}
	s.do(`POST /stores/a/faults {"error": "quota", "count": 0}`)
	s.do(`POST /stores/b/fast-forward {"by": "1h"}`)
	if _, err := get(all[0].URL, "seed"); !isA[*client.StoreError](err) {
		t.Errorf("a, with a fault: %v", err)
	}
	if _, err := get(all[1].URL, "seed"); err != nil {
		t.Errorf("b, without: %v", err)
	}
	var now [2]controlState
	for i, name := range []string{"a", "b"} {
		if err := json.Unmarshal([]byte(s.do("GET /stores/"+name+"/state")), &now[i]); err != nil {
			t.Fatal(err)
		}
	}
	if now[0].Requests != 2 || now[1].Now.Sub(now[0].Now) < 59*time.Minute || s.store.State().Requests != 0 {
		t.Errorf("%+v", now)
	}
	if status, answer := s.ask(`POST /stores {"name": "a"}`, nil); status != 400 || !strings.Contains(answer, `a store is named "a"`) {
		t.Errorf("the same name: %d, %s", status, answer)
	}
	s.do("DELETE /stores/a")
	if _, err := get(all[0].URL, "seed"); err == nil {
		t.Error("a goes on")
	}
	for _, request := range []string{"DELETE /stores/a", "GET /stores/a/state", "POST /stores/a/reset {}"} {
		if status, answer := s.ask(request, nil); status != 404 {
			t.Errorf("%s: %d, %s", request, status, answer)
		}
	}
	if got := s.do("GET /stores"); strings.Contains(got, `"a"`) || !strings.Contains(got, `"b"`) {
		t.Error(got)
	}
}

// TestControlRefuses: what is not understood is refused with a reason, and web pages are refused.
func TestControlRefuses(t *testing.T) {
	t.Parallel()
	s := steer(t)
	for text, want := range map[string]string{
		`POST /fast-forward {"by": "-1s"}`:                                           "by: \"-1s\": expected more than 0",
		`POST /fast-forward {"by": "10"}`:                                            "has no unit",
		`POST /fast-forward {"to": "1s"}`:                                            "unknown field \"to\"",
		`POST /fast-forward {"by": 31}`:                                              "by: expected a string, got a JSON number",
		`POST /faults {"count": "x"}`:                                                "count: expected a whole number, got a JSON string",
		`POST /faults {"count": 1.5, "drop": "reply"}`:                               "count: expected a whole number, got a JSON number 1.5",
		`POST /restart {"empty": "yes"}`:                                             "empty: expected true or false, got a JSON string",
		`POST /reset []`:                                                             "body: expected an object, got a JSON array",
		`POST /faults {"verb": "FROB", "drop": "reply"}`:                             "verb: \"FROB\": neither a verb of the store nor a command",
		`POST /faults {"verb": "INCR", "drop": "reply"}`:                             "verb: INCR: no port here",
		`POST /faults {"connack": "0x97", "verb": "SET"}`:                            "verb: only a fault of requests",
		`POST /faults {"connack": "5"}`:                                              "connack: \"5\": expected a reason code of 0x80",
		`POST /faults {"puback": "quota"}`:                                           "puback: \"quota\": expected a reason code",
		`POST /faults {"puback": "0x97", "drop": "notification"}`:                    "only one of",
		`POST /faults {"cut_bytes": -1}`:                                             "cut_bytes: must not be negative",
		`POST /faults {"stall": "0s"}`:                                               "stall: \"0s\": expected a duration",
		`POST /expire {"by": "1s", "within": "1s"}`:                                  "by, within: ",
		`POST /expire {"key": "a["}`:                                                 "key: \"a[\": not a pattern",
		`POST /expire {"within": "x"}`:                                               "within: ",
		`POST /stores {"name": "a b"}`:                                               "name: \"a b\": expected",
		`POST /stores {"name": "a", "listen": "0.0.0.0:0"}`:                          "listen: ",
		`POST /stores {"name": "a", "redis": "0.0.0.0:0"}`:                           "redis: ",
		`POST /fast-forward {"by": "1s"} {}`:                                         "more than one value",
		`POST /fast-forward {"by": "200000h"}`:                                       "at most 10 years",
		`POST /faults {}`:                                                            "nothing to do",
		`POST /faults {"drop": "all"}`:                                               "drop: \"all\": expected request, reply or notification",
		`POST /faults {"cut": "x"}`:                                                  "expected before or after",
		`POST /faults {"delay": "x"}`:                                                "delay: ",
		`POST /faults {"drop": "reply", "count": -1}`:                                "must not be negative",
		`POST /faults {"drop": "notification","cut":"after"}`:                        "only one of",
		`POST /faults {"drop": "reply", "key": "` + strings.Repeat("*", 1025) + `"}`: "key: longer than 1024 bytes",
		`POST /faults {"drop": "request", "key": "a["}`:                              "key: \"a[\": ",
		`POST /faults {"drop": "request", "key": "a**"}`:                             "key: \"a**\": ",
		`POST /restart [`:                                                            "body: ",
		`POST /restart ` + strings.Repeat(" ", 100_000):                              "body: ",
	} {
		if status, answer := s.ask(text, nil); status != 400 || !strings.Contains(answer, want) {
			t.Errorf("%.60s: %d, %q, want 400, %s", text, status, answer, want)
		}
	}
	for range 9 {
		s.do(`POST /fast-forward {"by": "87600h"}`)
	}
	s.do(`POST /fast-forward {"by": "87599h"}`)
	if status, answer := s.ask(`POST /fast-forward {"by": "87600h"}`, nil); status != 400 || !strings.Contains(answer, "100 years ahead") {
		t.Errorf("over a century: %d, %q", status, answer)
	}
	for name, tt := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"a form":         {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		"a web page":     {func(r *http.Request) { r.Header.Set("Origin", "http://localhost") }, 403},
		"a rebound name": {func(r *http.Request) { r.Host = "evil.example" }, 403},
		"an image":       {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"IPv6":           {func(r *http.Request) { r.Host = "[::1]" }, 200},
	} {
		if status, answer := s.ask(`POST /disconnect {}`, tt.change); status != tt.status {
			t.Errorf("%s: %d, %q, want %d", name, status, answer, tt.status)
		}
	}
	for text, want := range map[string]int{"GET /x": 404, "GET /restart": 405, "GET /": 200} {
		if status, _ := s.ask(text, nil); status != want {
			t.Errorf("%s: %d, want %d", text, status, want)
		}
	}
	for range emulator.MaxFaults {
		s.do(`POST /faults {"drop": "reply"}`)
	}
	if status, answer := s.ask(`POST /faults {"drop": "reply"}`, nil); status != 400 || !strings.Contains(answer, "there are 1000 faults") {
		t.Errorf("one fault more: %d, %q", status, answer)
	}
	if _, _, err := startControl(s.store, "0.0.0.0:0", false, nil); !isA[*fault.UsageError](err) {
		t.Errorf("all addresses: %v", err)
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
