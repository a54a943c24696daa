package store_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// base is the time at which the store's clock starts in these tests, as in the published examples:
// 1696374425000 ms.
const base = 1696374425000

// A lab is a store with a clock that the test advances.
type lab struct {
	*store.Store
	now     time.Time
	changes []string // "key cause client value version"
}

func newLab(opts store.Options) *lab {
	l := &lab{now: time.UnixMilli(base)}
	opts.Now = func() time.Time { return l.now }
	opts.Changed = func(c *store.Change) {
		l.changes = append(l.changes, fmt.Sprintf("%s %s %s %q %s", c.Entry.Key(), c.Cause, c.ClientID, c.Entry.Value(), c.Version))
	}
	l.Store = store.New(opts)
	return l
}

// A step is one request and its expected results.
type step struct {
	after time.Duration // the clock advances first
	do    string        // words, or a complete payload if it begins with '*'
	as    string        // client id; "" = c
	ts    string        // `__ts`; "" = an old one on SET; "none" omits it
	ft    string        // `__ft`

	want   string   // bytes of the reply
	wantTS string   // `__ts` of the reply; "" = none
	notes  []string // "client payload __ts"
}

func (l *lab) do(s step) (store.Response, []store.Notification) {
	l.now = l.now.Add(s.after)
	req := store.Request{ClientID: cmp.Or(s.as, "c"), Payload: []byte(s.do)}
	if !strings.HasPrefix(s.do, "*") {
		req.Payload = request(strings.Split(s.do, " ")...)
	}
	switch {
	case s.ts == "none":
	case s.ts != "":
		req.Timestamp = []byte(s.ts)
	case strings.HasPrefix(s.do, "SET "):
		req.Timestamp = []byte("1:0:client")
	}
	if s.ft != "" {
		req.Fence = []byte(s.ft)
	}
	return l.Do(&req, nil), l.TakeNotifications()
}

// request writes RESP3 without package wire, so that a fault in that package shows.
func request(words ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return []byte(b.String())
}

func (l *lab) check(t *testing.T, i int, s step) {
	t.Helper()
	resp, notes := l.do(s)
	if got := string(resp.Payload); got != s.want {
		t.Errorf("step %d, %s: got %q, want %q", i, s.do, got, s.want)
	}
	if got := property(resp.Properties, "__ts"); got != s.wantTS {
		t.Errorf("step %d, %s: got version %q, want %q", i, s.do, got, s.wantTS)
	}
	var got []string
	for _, n := range notes {
		got = append(got, n.ClientID+" "+string(n.Payload)+" "+property(n.Properties, "__ts"))
		if property(n.Properties, "__ts") != string(n.Version) {
			t.Errorf("step %d, %s: the version is %q and the property %q", i, s.do, n.Version, n.Properties)
		}
	}
	if diff := gocmp.Diff(s.notes, got); diff != "" {
		t.Errorf("step %d, %s: notifications (-want +got):\n%s", i, s.do, diff)
	}
}

func property(properties []store.Property, name string) string {
	for _, p := range properties {
		if p.Name == name {
			return string(p.Value)
		}
	}
	return ""
}

// Recurring bytes of replies.
const (
	ok    = "+OK\r\n"
	no    = ":-1\r\n"
	one   = ":1\r\n"
	zero  = ":0\r\n"
	null  = "$-1\r\n"
	first = "1696374425000:0:StateStore" // version of a first write
	later = "1696374425000:1:StateStore"
	third = "1696374425000:2:StateStore"

	errClock     = "-ERR the request timestamp is too far in the future; ensure that the client and broker system clocks are synchronized\r\n"
	errRequired  = "-ERR a fencing token is required for this request\r\n"
	errAhead     = "-ERR the request fencing token timestamp is too far in the future; ensure that the client and broker system clocks are synchronized\r\n"
	errLower     = "-ERR the request fencing token is a lower version than the fencing token protecting the resource\r\n"
	errQuota     = "-ERR the quota has been exceeded\r\n"
	errSyntax    = "-ERR syntax error\r\n"
	errDenied    = "-ERR not authorized\r\n"
	errUnknown   = "-ERR unknown command\r\n"
	errArguments = "-ERR wrong number of arguments\r\n"
	errMissing   = "-ERR missing timestamp\r\n"
	errMalformed = "-ERR malformed timestamp\r\n"
	errEmpty     = "-ERR the key length is zero\r\n"
	errTooLong   = "-ERR the key is too long for a notification topic\r\n"

	deleteNote = "*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n"
)

func setNote(value string) string {
	return fmt.Sprintf("*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$%d\r\n%s\r\n", len(value), value)
}

// Tokens in ascending order, all in the past.
const (
	token1 = "1696374420000:0:lock"
	token2 = "1696374421000:0:lock"
	token3 = "1696374422000:0:lock"
)

// denySecrets is an authorization rule: no client may use secret, and no client may write config.
func denySecrets(_, _, key string, write bool) bool {
	return key != "secret" && !(write && key == "config")
}

func TestRequests(t *testing.T) {
	fenced := step{do: "SET k v", ft: token2, want: ok, wantTS: first}
	tests := []struct {
		name  string
		opts  store.Options
		steps []step
	}{
		// protocol.md 2.3
		{name: "2.3 SET stored", steps: []step{{do: "SET k v", want: ok, wantTS: first}}},
		{name: "2.3 SET NX not met", steps: []step{
			{do: "SET k v NX", want: ok, wantTS: first},
			{do: "SET k w NX", want: no, wantTS: first},
			{do: "GET k", want: "$1\r\nv\r\n", wantTS: first},
		}},
		{name: "2.3 SET NEX not met", steps: []step{
			{do: "SET k v NEX", want: ok, wantTS: first},
			{do: "SET k v NEX", want: ok, wantTS: later},
			{do: "SET k w NEX", want: no, wantTS: later},
		}},
		{name: "2.3 GET found", steps: []step{
			{do: "SET SETKEY2 1234", want: ok, wantTS: first},
			{do: "GET SETKEY2", want: "$4\r\n1234\r\n", wantTS: first},
		}},
		{name: "2.3 GET empty value", steps: []step{
			{do: "SET k ", want: ok, wantTS: first},
			{do: "GET k", want: "$0\r\n\r\n", wantTS: first},
		}},
		{name: "2.3 GET missing", steps: []step{{do: "GET k", want: null}}},
		{name: "2.3 DEL deleted", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{do: "DEL k", want: one, wantTS: first},
			{do: "GET k", want: null},
		}},
		{name: "2.3 DEL missing", steps: []step{{do: "DEL k", want: zero}}},
		{name: "2.3 VDEL deleted", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{do: "VDEL k v", want: one, wantTS: first},
			{do: "GET k", want: null},
		}},
		{name: "2.3 VDEL missing", steps: []step{{do: "VDEL k v", want: zero}}},
		{name: "2.3 VDEL differs", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{do: "VDEL k w", want: no},
			{do: "GET k", want: "$1\r\nv\r\n", wantTS: first},
		}},
		{name: "2.3 KEYNOTIFY accepted", steps: []step{
			{do: "KEYNOTIFY absent", want: ok},
			{do: "SET k v", want: ok, wantTS: first},
			{do: "KEYNOTIFY k", want: ok},
		}},
		{name: "2.3 KEYNOTIFY STOP was watching", steps: []step{
			{do: "KEYNOTIFY k", want: ok},
			{do: "KEYNOTIFY k STOP", want: ok},
			{do: "SET k v", want: ok, wantTS: first},
		}},
		{name: "2.3 KEYNOTIFY STOP was not watching", steps: []step{
			{do: "KEYNOTIFY k STOP", want: zero},
			{do: "KEYNOTIFY k", as: "d", want: ok},
			{do: "KEYNOTIFY k STOP", want: zero},
		}},
		{name: "2.3 error", steps: []step{{do: "*1\r\n:1\r\n", want: errSyntax}}},
		{name: "2.3 SCAN", opts: store.Options{ScanPage: 2}, steps: []step{
			{do: "SCAN *", want: "*1\r\n*0\r\n"},
			{do: "SET key1 a", want: ok, wantTS: first},
			{do: "SET key2 b", want: ok, wantTS: later},
			{do: "SCAN key*", want: "*1\r\n*2\r\n$4\r\nkey1\r\n$4\r\nkey2\r\n"},
			{do: "SET key3 c", want: ok, wantTS: third},
			{do: "SCAN key*", want: "*2\r\n*2\r\n$4\r\nkey1\r\n$4\r\nkey2\r\n$9\r\n1;1;>key2\r\n"},
			{do: "SCAN key* 1;1;>key2", want: "*1\r\n*1\r\n$4\r\nkey3\r\n"},
			{do: "SCAN key* 1;1;>key2", want: "*1\r\n*1\r\n$4\r\nkey3\r\n"},
			{do: "SCAN key[2-3]", want: "*1\r\n*2\r\n$4\r\nkey2\r\n$4\r\nkey3\r\n"},
			{do: "SCAN other?", want: "*1\r\n*0\r\n"},
		}},

		// protocol.md 2.2, 2.4: forms of requests
		{name: "2.2 byte by byte", steps: []step{
			{do: "*3\r\n$3\r\nSET\r\n$7\r\nSETKEY2\r\n$6\r\nVALUE5\r\n", ts: "1:0:c", want: ok, wantTS: first},
			{do: "*2\r\n$3\r\nGET\r\n$7\r\nSETKEY2\r\n", want: "$6\r\nVALUE5\r\n", wantTS: first},
			{do: "*6\r\n$3\r\nSET\r\n$8\r\nLockName\r\n$7\r\nClient1\r\n$3\r\nNEX\r\n$2\r\nPX\r\n$5\r\n10000\r\n", ts: "1:0:c", want: ok, wantTS: later},
			{do: "*2\r\n$3\r\nDEL\r\n$7\r\nSETKEY2\r\n", want: one, wantTS: first},
		}},
		{name: "2.2 PX before the condition", steps: []step{
			{do: "SET k v PX 10 NX", want: ok, wantTS: first},
			{do: "SET k v NX PX 10", want: no, wantTS: first},
		}},
		{name: "2.2 refused options", steps: []step{
			{do: "SET k v NX NEX", want: errSyntax},
			{do: "SET k v NX NX", want: errSyntax},
			{do: "SET k v PX 1 PX 2", want: errArguments},
			{do: "SET k v PX", want: errSyntax},
			{do: "SET k v PX 0", want: errSyntax},
			{do: "SET k v PX 00", want: errSyntax},
			{do: "SET k v PX -5", want: errSyntax},
			{do: "SET k v PX +5", want: errSyntax},
			{do: "SET k v PX 1.5", want: errSyntax},
			{do: "SET k v PX ", want: errSyntax},
			{do: "SET k v PX 9223372036854775808", want: errSyntax},
			{do: "SET k v nx", want: errSyntax},
			{do: "SET k v XX", want: errSyntax},
			{do: "SET k v NEX v", want: errArguments},
			{do: "SET k v NX PX 10 more", want: errArguments},
			{do: "KEYNOTIFY k stop", want: errSyntax},
			{do: "SCAN ", want: errSyntax},
			{do: "SCAN * foreign", want: errSyntax},
			{do: "GET k", want: null},
		}},
		{name: "2.2 the longest PX", steps: []step{
			{do: "SET k v PX 9223372036854775807", want: ok, wantTS: first},
			{after: 290 * 365 * 24 * time.Hour, do: "GET k", want: "$1\r\nv\r\n", wantTS: first},
		}},

		// protocol.md 2.5, 2.6: notifications
		{name: "2.5 own writes, absent key, after a deletion", steps: []step{
			{do: "KEYNOTIFY k", want: ok},
			{do: "SET k v", want: ok, wantTS: first, notes: []string{"c " + setNote("v") + " " + first}},
			{do: "DEL k", want: one, wantTS: first, notes: []string{"c " + deleteNote + " " + first}},
			{do: "SET k ", want: ok, wantTS: later, notes: []string{"c " + setNote("") + " " + later}},
			{do: "VDEL k ", want: one, wantTS: later, notes: []string{"c " + deleteNote + " " + later}},
		}},
		{name: "2.5 nothing changed, nobody told", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{do: "KEYNOTIFY k", want: ok},
			{do: "KEYNOTIFY absent", want: ok},
			{do: "SET k w NX", want: no, wantTS: first},
			{do: "SET k w NEX", want: no, wantTS: first},
			{do: "VDEL k w", want: no},
			{do: "DEL absent", want: zero},
			{do: "GET k", want: "$1\r\nv\r\n", wantTS: first},
		}},
		{name: "2.5 renewal notifies", steps: []step{
			{do: "SET k v NEX", want: ok, wantTS: first},
			{do: "KEYNOTIFY k", want: ok},
			{do: "SET k v NEX", want: ok, wantTS: later, notes: []string{"c " + setNote("v") + " " + later}},
		}},
		{name: "2.5 registered twice, told once, stopped once", steps: []step{
			{do: "KEYNOTIFY k", want: ok},
			{do: "KEYNOTIFY k", want: ok},
			{do: "SET k v", want: ok, wantTS: first, notes: []string{"c " + setNote("v") + " " + first}},
			{do: "KEYNOTIFY k STOP", want: ok},
			{do: "SET k v", want: ok, wantTS: later},
		}},
		{name: "2.5 several watchers", steps: []step{
			{do: "KEYNOTIFY k", as: "b", want: ok},
			{do: "KEYNOTIFY k", as: "a", want: ok},
			{do: "SET k v", want: ok, wantTS: first, notes: []string{"b " + setNote("v") + " " + first, "a " + setNote("v") + " " + first}},
		}},

		// protocol.md 2.7
		{name: "2.7 expiry", steps: []step{
			{do: "KEYNOTIFY k", want: ok},
			{do: "SET k v PX 1000", want: ok, wantTS: first, notes: []string{"c " + setNote("v") + " " + first}},
			{after: 999 * time.Millisecond, do: "GET k", want: "$1\r\nv\r\n", wantTS: first},
			{after: time.Millisecond, do: "GET k", want: null, notes: []string{"c " + deleteNote + " " + first}},
		}},
		{name: "2.7 NEX restarts the expiry", steps: []step{
			{do: "SET k v NEX PX 1000", want: ok, wantTS: first},
			{after: 900 * time.Millisecond, do: "SET k v NEX PX 1000", want: ok, wantTS: "1696374425900:0:StateStore"},
			{after: 900 * time.Millisecond, do: "GET k", want: "$1\r\nv\r\n", wantTS: "1696374425900:0:StateStore"},
			{after: 100 * time.Millisecond, do: "GET k", want: null},
		}},
		{name: "2.7 SET without PX ends the expiry", steps: []step{
			{do: "SET k v PX 1000", want: ok, wantTS: first},
			{do: "SET k w", want: ok, wantTS: later},
			{after: time.Hour, do: "GET k", want: "$1\r\nw\r\n", wantTS: later},
		}},
		{name: "2.7 expired key counts as absent", steps: []step{
			{do: "SET k v PX 10", want: ok, wantTS: first},
			{after: 10 * time.Millisecond, do: "SET k w NX", want: ok, wantTS: "1696374425010:0:StateStore"},
		}},

		// protocol.md 3.2: effect of `__ts` on the version
		{name: "3.2 the published example", steps: []step{
			{do: "SET k v", ts: "1696374425000:0:CLIENT", want: ok, wantTS: "1696374425000:1:StateStore"},
		}},
		{name: "3.2 greater than a `__ts` of the future", steps: []step{
			{do: "SET k v", ts: "001696374430000:00007:c", want: ok, wantTS: "1696374430000:8:StateStore"},
			{do: "SET k v", want: ok, wantTS: "1696374430000:9:StateStore"},
			{do: "DEL k", want: one, wantTS: "1696374430000:9:StateStore"},
		}},
		{name: "3.2 greater than a `__ts` with our node", steps: []step{
			{do: "SET k v", ts: "1696374430000:7:StateStore", want: ok, wantTS: "1696374430000:8:StateStore"},
		}},
		{name: "3.2 the counter overflows", steps: []step{
			{do: "SET k v", ts: "1696374430000:18446744073709551615:c", want: ok, wantTS: "1696374430001:0:StateStore"},
		}},
		{name: "3.2 not required elsewhere, harmless there", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{do: "GET k", ts: "1696374425000:0:c", want: "$1\r\nv\r\n", wantTS: first},
			{do: "KEYNOTIFY other", ts: "1696374425000:0:c", want: ok},
			{do: "VDEL k w", ts: "nonsense", want: no},
			{do: "DEL k", ts: "1696374999999:0:c", want: one, wantTS: first},
		}},

		// protocol.md 3.6
		{name: "3.6 SET ok", steps: []step{{do: "SET k v", want: ok, wantTS: first}}},
		{name: "3.6 SET refused", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{after: time.Second, do: "SET k v NX", want: no, wantTS: first},
		}},
		{name: "3.6 GET hit", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{after: time.Second, do: "GET k", want: "$1\r\nv\r\n", wantTS: first},
		}},
		{name: "3.6 GET miss", steps: []step{{do: "GET k", want: null}}},
		{name: "3.6 DEL and VDEL success", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{after: time.Second, do: "DEL k", want: one, wantTS: first},
			{do: "SET k v", want: ok, wantTS: "1696374426000:0:StateStore"},
			{after: time.Second, do: "VDEL k v", want: one, wantTS: "1696374426000:0:StateStore"},
		}},
		{name: "3.6 DEL missing, VDEL mismatch, KEYNOTIFY, errors", steps: []step{
			{do: "DEL k", want: zero},
			{do: "KEYNOTIFY other", want: ok},
			{do: "SET k v", ts: "none", want: errMissing},
			{do: "SET k v", want: ok, wantTS: first},
			{do: "VDEL k w", want: no},
		}},
		{name: "3.6 NOTIFY", steps: []step{
			{do: "KEYNOTIFY k", want: ok},
			{do: "SET k v", want: ok, wantTS: first, notes: []string{"c " + setNote("v") + " " + first}},
		}},

		// protocol.md 4
		{name: "4 row 1", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{do: "SET k w", want: ok, wantTS: later},
		}},
		{name: "4 row 2", steps: []step{fenced, {do: "SET k w", want: errRequired}}},
		{name: "4 row 3", steps: []step{
			{do: "SET k v", want: ok, wantTS: first},
			{do: "SET k v", ft: token2, want: ok, wantTS: later},
			{do: "SET k w", want: errRequired},
		}},
		{name: "4 row 4", steps: []step{
			fenced,
			{do: "SET k w", want: errRequired},
			{do: "DEL k", want: errRequired},
			{do: "VDEL k v", want: errRequired},
			{do: "VDEL k w", want: errRequired},
		}},
		{name: "4 row 5", steps: []step{fenced, {do: "SET k w", ft: token1, want: errLower}}},
		{name: "4 row 6", steps: []step{
			fenced,
			{do: "SET k w", ft: token2, want: ok, wantTS: later},
			{do: "SET k x", ft: token1, want: errLower},
			{do: "SET k x", ft: "0" + token2, want: ok, wantTS: third}, // padding does not count
		}},
		{name: "4 row 7", steps: []step{
			fenced,
			{do: "SET k w", ft: token3, want: ok, wantTS: later},
			{do: "SET k x", ft: token2, want: errLower},
		}},
		{name: "4 row 8", steps: []step{
			fenced,
			{do: "DEL k", ft: token1, want: errLower},
			{do: "VDEL k v", ft: token1, want: errLower},
			{do: "VDEL k w", ft: token1, want: errLower},
		}},
		{name: "4 row 9", steps: []step{
			fenced,
			{do: "DEL k", ft: token2, want: one, wantTS: first},
			{do: "SET k v", ft: token2, want: ok, wantTS: later},
			{do: "VDEL k v", ft: token3, want: one, wantTS: later},
			{do: "SET k plain", want: ok, wantTS: third},
		}},
		{name: "4 row 10", steps: []step{
			fenced,
			{do: "VDEL k w", ft: token2, want: no},
			{do: "VDEL k w", ft: token3, want: no},
			{do: "GET k", want: "$1\r\nv\r\n", wantTS: first},
			{do: "SET k v", ft: token2, want: ok, wantTS: later}, // the fence has not changed
		}},
		{name: "4 row 11", steps: []step{
			fenced,
			{do: "GET k", want: "$1\r\nv\r\n", wantTS: first},
			{do: "GET k", ft: "nonsense", want: "$1\r\nv\r\n", wantTS: first},
			{do: "KEYNOTIFY k", ft: token1, want: ok},
			{do: "KEYNOTIFY k STOP", want: ok},
		}},
		{name: "4 row 12", steps: []step{
			{do: "SET k v", ft: "1696374485001:0:lock", want: errAhead},
			{do: "DEL k", ft: "1696374485001:0:lock", want: errAhead},
			{do: "VDEL k v", ft: "1696374485001:0:lock", want: errAhead},
			{do: "SET k v", ft: "1696374485000:99:lock", want: ok, wantTS: first},
		}},
		{name: "4 row 13", steps: []step{
			{do: "SET k v", ft: "nonsense", want: errMalformed},
			{do: "DEL k", ft: "1:2", want: errMalformed},
			{do: "VDEL k v", ft: "1:2:3:4", want: errMalformed},
		}},
		{name: "4 row 14", steps: []step{
			fenced,
			{do: "DEL k", ft: token2, want: one, wantTS: first},
			{do: "SET k v", want: ok, wantTS: later},
			{do: "SET k w", want: ok, wantTS: third},
		}},
		{name: "4 row 15", steps: []step{
			{do: "DEL k", ft: token1, want: zero},
			{do: "VDEL k v", ft: token1, want: zero},
			{do: "SET k v", want: ok, wantTS: first},
			{do: "VDEL k v", ft: token1, want: one, wantTS: first},
		}},
		{name: "4 row 16", steps: []step{
			fenced,
			{do: "SET k w NX", want: errRequired},
			{do: "SET k w NEX", ft: token1, want: errLower},
			{do: "SET k w NX", ft: token3, want: no, wantTS: first},
			{do: "SET k v", ft: token2, want: ok, wantTS: later}, // the fence has not changed
		}},
		{name: "4 row 17", steps: []step{
			{do: "SET k v PX 1000", ft: token2, want: ok, wantTS: first},
			{after: time.Second, do: "GET k", want: null},
			{do: "SET k v", want: ok, wantTS: "1696374426000:0:StateStore"},
		}},
		{name: "4 row 18", steps: []step{
			{do: "SET LockName Client1 NEX PX 10000", want: ok, wantTS: first},
			{do: "SET LockName Client1 NEX PX 10000", want: ok, wantTS: later},
			{do: "SET LockName Client2 NEX PX 10000", want: no, wantTS: later},
			{do: "VDEL LockName Client2", want: no},
			{do: "VDEL LockName Client1", want: one, wantTS: later},
		}},

		// protocol.md 5
		{name: "5 row 1", steps: []step{
			{do: "SET k v", ts: "1696374485001:0:c", want: errClock},
			{do: "SET k v", ts: "9223372036854775807:0:c", want: errClock},
			{do: "SET k v", ts: "1696374485000:0:c", want: ok, wantTS: "1696374485000:1:StateStore"},
			{do: "SET k v", ts: "0:0:c", want: ok, wantTS: "1696374485000:2:StateStore"},
		}},
		{name: "5 row 2", steps: []step{fenced, {do: "DEL k", want: errRequired}}},
		{name: "5 row 3", steps: []step{{do: "SET k v", ft: "1696374999999:0:lock", want: errAhead}}},
		{name: "5 row 4", steps: []step{fenced, {do: "DEL k", ft: token1, want: errLower}}},
		{name: "5 row 5", opts: store.Options{MaxKeys: 2}, steps: []step{
			{do: "SET a 1", want: ok, wantTS: first},
			{do: "SET b 2", want: ok, wantTS: later},
			{do: "SET c 3", want: errQuota},
			{do: "SET a 4", want: ok, wantTS: third},
			{do: "DEL b", want: one, wantTS: later},
			{do: "SET c 3", want: ok, wantTS: "1696374425000:3:StateStore"},
		}},
		{name: "5 row 6", steps: []step{
			{do: "*1", want: errSyntax},
			{do: "*0\r\n", want: errSyntax},
			{do: "*2\r\n$3\r\nGET\r\n$2\r\nk\r\n", want: errSyntax},
			{do: "*2\r\n$3\r\nGET\r\n$1\r\nk\r\ntrailing", want: errSyntax},
			{do: "*2\r\n$3\r\nGET\r\n$-1\r\n", want: errSyntax},
			{do: "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$-0\r\n\r\n", ts: "1:0:c", want: errSyntax},
			{do: "*-0\r\n", want: errSyntax},
			{do: "SET k v PX 1.5", want: errSyntax},
		}},
		{name: "5 row 7", opts: store.Options{Authorize: denySecrets}, steps: []step{
			{do: "GET secret", want: errDenied},
			{do: "KEYNOTIFY secret", want: errDenied},
			{do: "SET secret v", want: errDenied},
			{do: "DEL secret", want: errDenied},
			{do: "VDEL secret v", want: errDenied},
			{do: "SET config v", want: errDenied},
			{do: "GET config", want: null},
			{do: "SET k v", want: ok, wantTS: first},
			{do: "SCAN *", want: "*1\r\n*1\r\n$1\r\nk\r\n"},
		}},
		{name: "5 row 8", steps: []step{
			{do: "MGET a b", want: errUnknown},
			{do: "get k", want: errUnknown},
			{do: " k", want: errUnknown},
		}},
		{name: "5 row 9", steps: []step{
			{do: "GET", want: errArguments},
			{do: "GET a b", want: errArguments},
			{do: "SET k", ts: "1:0:c", want: errArguments},
			{do: "DEL a b", want: errArguments},
			{do: "VDEL k", want: errArguments},
			{do: "KEYNOTIFY", want: errArguments},
			{do: "KEYNOTIFY k STOP more", want: errArguments},
			{do: "SCAN", want: errArguments},
			{do: "SCAN a b c", want: errArguments},
		}},
		{name: "5 row 10", steps: []step{{do: "SET k v", ts: "none", want: errMissing}}},
		{name: "5 row 11", steps: []step{
			{do: "SET k v", ts: "nonsense", want: errMalformed},
			{do: "SET k v", ts: "1696374425000:x:c", want: errMalformed},
			{do: "SET k v", ts: "1696374425000:0:c:d", want: errMalformed},
			{do: "SET k v", ft: "nonsense", want: errMalformed},
		}},
		{name: "5 row 11, signs, spaces and no node", steps: malformed()},
		{name: "5 row 12", steps: []step{
			{do: "GET ", want: errEmpty},
			{do: "SET  v", want: errEmpty},
			{do: "DEL ", want: errEmpty},
			{do: "VDEL  v", want: errEmpty},
			{do: "KEYNOTIFY ", want: errEmpty},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(tt.opts)
			for i, s := range tt.steps {
				l.check(t, i, s)
			}
		})
	}
}

// malformed returns a SET, DEL and VDEL with each text that is not a valid HLC in a request, although clients
// accept it in a reply (protocol.md 3.3).
func malformed() (steps []step) {
	for _, hlc := range []string{
		"-1:0:n", "+1:0:n", "-0:0:n", "1:-1:n", "1:+1:n", "1:0:", "1::n", ":0:n", "::", " 1:0:n", "1:0 :n", "1e3:0:n",
		"9223372036854775808:0:n", "1:18446744073709551616:n",
	} {
		steps = append(
			steps,
			step{do: "SET k v", ts: hlc, want: errMalformed},
			step{do: "SET k v", ft: hlc, want: errMalformed},
			step{do: "DEL k", ft: hlc, want: errMalformed},
			step{do: "VDEL k v", ft: hlc, want: errMalformed},
		)
	}
	return steps
}

func TestVariants(t *testing.T) {
	set := step{do: "SET k v", want: ok, wantTS: first}
	tests := []struct {
		name     string
		variants store.Variants
		steps    []step
	}{
		{"AnyCase", store.Variants{AnyCase: true}, []step{
			{do: "set k v nEx px 10", ts: "1:0:c", want: ok, wantTS: first},
			{do: "keynotify k stop", want: zero},
		}},
		{"TimestampOnAll", store.Variants{TimestampOnAll: true}, []step{
			{do: "GET k", ts: "nonsense", want: errMalformed},
			{do: "DEL k", ts: "1696374999999:0:c", want: errClock},
			{do: "GET k", want: null},
		}},
		{"ConditionBeforeFence", store.Variants{ConditionBeforeFence: true}, []step{
			{do: "SET k v", ft: token2, want: ok, wantTS: first},
			{do: "SET k w NX", want: no, wantTS: first},
			{do: "SET k v NEX", want: errRequired},
		}},
		{"FenceIgnoresNode", store.Variants{FenceIgnoresNode: true}, []step{
			{do: "SET k v", ft: "1696374420000:0:b", want: ok, wantTS: first},
			{do: "SET k v", ft: "1696374420000:0:a", want: ok, wantTS: later},
		}},
		{"without FenceIgnoresNode", store.Variants{}, []step{
			{do: "SET k v", ft: "1696374420000:0:b", want: ok, wantTS: first},
			{do: "SET k v", ft: "1696374420000:0:a", want: errLower},
		}},
		{"KeepTTL", store.Variants{KeepTTL: true}, []step{
			{do: "SET k v PX 1000", want: ok, wantTS: first},
			{do: "SET k w", want: ok, wantTS: later},
			{after: time.Second, do: "GET k", want: null},
		}},
		{"BareMinusOne", store.Variants{BareMinusOne: true}, []step{
			set, {do: "SET k v NX", want: "-1\r\n", wantTS: first}, {do: "VDEL k w", want: "-1\r\n"},
		}},
		{"ErrorColon", store.Variants{ErrorColon: true}, []step{{do: "GET", want: "-ERR: wrong number of arguments\r\n"}}},
		{"ErrorUnframed", store.Variants{ErrorUnframed: true}, []step{{do: "*", want: "-ERR syntax error"}}},
		{"BlobUnframed", store.Variants{BlobUnframed: true}, []step{set, {do: "GET k", want: "$1\r\nv", wantTS: first}}},
		{"NullUnderscore", store.Variants{NullUnderscore: true}, []step{{do: "GET k", want: "_\r\n"}}},
		{"PaddedVersions", store.Variants{PaddedVersions: true}, []step{
			{do: "SET k v", want: ok, wantTS: "001696374425000:00000:StateStore"},
		}},
		{"DelNoVersion", store.Variants{DelNoVersion: true}, []step{set, {do: "DEL k", want: one}}},
		{"MismatchVersion", store.Variants{MismatchVersion: true}, []step{set, {do: "VDEL k w", want: no, wantTS: first}}},
		{"RepeatedWatchZero", store.Variants{RepeatedWatchZero: true}, []step{
			{do: "KEYNOTIFY k", want: ok}, {do: "KEYNOTIFY k", want: zero}, {do: "KEYNOTIFY k STOP", want: ok},
		}},
		{"NotifyDEL", store.Variants{NotifyDEL: true}, []step{
			set, {do: "KEYNOTIFY k", want: ok},
			{do: "DEL k", want: one, wantTS: first, notes: []string{"c *2\r\n$6\r\nNOTIFY\r\n$3\r\nDEL\r\n " + first}},
		}},
		{"NotifyEXPIRED", store.Variants{NotifyEXPIRED: true}, []step{
			{do: "SET k v PX 10", want: ok, wantTS: first}, {do: "KEYNOTIFY k", want: ok},
			{after: time.Second, do: "GET k", want: null, notes: []string{"c *2\r\n$6\r\nNOTIFY\r\n$7\r\nEXPIRED\r\n " + first}},
		}},
		{"NotifyNoValue", store.Variants{NotifyNoValue: true}, []step{
			{do: "KEYNOTIFY k", want: ok},
			{do: "SET k v", want: ok, wantTS: first, notes: []string{"c *2\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n " + first}},
		}},
		{"NotifyNoVersion", store.Variants{NotifyNoVersion: true}, []step{
			{do: "KEYNOTIFY k", want: ok},
			{do: "SET k v", want: ok, wantTS: first, notes: []string{"c " + setNote("v") + " "}},
		}},
		{"DeleteNoVersion", store.Variants{DeleteNoVersion: true}, []step{
			set, {do: "KEYNOTIFY k", want: ok}, {do: "DEL k", want: one, wantTS: first, notes: []string{"c " + deleteNote + " "}},
		}},
		{"DeleteNewVersion", store.Variants{DeleteNewVersion: true}, []step{
			set, {do: "KEYNOTIFY k", want: ok},
			{after: time.Second, do: "DEL k", want: one, wantTS: "1696374426000:0:StateStore", notes: []string{"c " + deleteNote + " 1696374426000:0:StateStore"}},
			{do: "SET k v PX 1000", want: ok, wantTS: "1696374426000:1:StateStore", notes: []string{"c " + setNote("v") + " 1696374426000:1:StateStore"}},
			{after: time.Second, do: "GET k", want: null, notes: []string{"c " + deleteNote + " 1696374427000:0:StateStore"}},
		}},
		{"SilentRenewal", store.Variants{SilentRenewal: true}, []step{
			set, {do: "KEYNOTIFY k", want: ok},
			{do: "SET k v NEX", want: ok, wantTS: later},
			{do: "SET k v", want: ok, wantTS: third, notes: []string{"c " + setNote("v") + " " + third}},
		}},
		{"NoScan", store.Variants{NoScan: true}, []step{{do: "SCAN *", want: errUnknown}}},
		{"ScanEmptyPage", store.Variants{ScanEmptyPage: true}, []step{
			set,
			{do: "SCAN *", want: "*2\r\n*0\r\n$4\r\n1;1;\r\n"},
			{do: "SCAN * 1;1;", want: "*1\r\n*1\r\n$1\r\nk\r\n"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(store.Options{Variants: tt.variants})
			for i, s := range tt.steps {
				l.check(t, i, s)
			}
		})
	}
}

func TestReplyProperties(t *testing.T) {
	for _, tt := range []struct {
		name     string
		variants store.Variants
		want     string
	}{
		{"plain", store.Variants{}, "__stat=200 __ts=" + first + " __protVer=1.0"},
		{"NoStatus", store.Variants{NoStatus: true}, "__ts=" + first + " __protVer=1.0"},
		{"NoProtocolVersion", store.Variants{NoProtocolVersion: true}, "__stat=200 __ts=" + first},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(store.Options{Variants: tt.variants})
			resp, _ := l.do(step{do: "SET k v"})
			var got []string
			for _, p := range resp.Properties {
				got = append(got, p.Name+"="+string(p.Value))
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got properties %s, want %s", got, tt.want)
			}
		})
	}
}

// TestDoAppends: Do keeps the contents of the buffer that it is given.
func TestDoAppends(t *testing.T) {
	l := newLab(store.Options{})
	resp := l.Do(&store.Request{Payload: request("GET", "k")}, []byte("before "))
	if got := string(resp.Payload); got != "before "+null {
		t.Errorf("got %q", got)
	}
}

func TestDisconnect(t *testing.T) {
	l := newLab(store.Options{})
	l.do(step{do: "KEYNOTIFY k", as: "a"})
	l.do(step{do: "KEYNOTIFY j", as: "a"})
	l.do(step{do: "KEYNOTIFY k", as: "b"})
	if a, all := l.Watching("a"), l.Registrations(); a != 2 || all != 3 {
		t.Errorf("a watches %d keys and all together %d", a, all)
	}
	l.Disconnect("a")
	if a, all := l.Watching("a"), l.Registrations(); a != 0 || all != 1 {
		t.Errorf("a still watches %d keys and all together %d", a, all)
	}
	l.check(t, 0, step{do: "SET k v", want: ok, wantTS: first, notes: []string{"b " + setNote("v") + " " + first}})
	l.check(t, 1, step{do: "SET j v", want: ok, wantTS: later})
}

// TestKeyNotifyLongKeys: MQTT topics have at most 65,535 bytes. The topic of a notification has two bytes for
// each byte of the key and of the client id, and 75 others (protocol.md 1.1).
func TestKeyNotifyLongKeys(t *testing.T) {
	const most = (65535 - 75) / 2
	for _, tt := range []struct {
		client, key int // lengths in bytes
		want        string
	}{
		{1, most - 1, ok},
		{1, most, errTooLong},
		{most - 1, 1, ok},
		{most, 1, errTooLong},
		{1, 1 << 20, errTooLong},
	} {
		l := newLab(store.Options{})
		client, key := strings.Repeat("c", tt.client), strings.Repeat("k", tt.key)
		stop, note := zero, 0
		if tt.want == ok {
			stop, note = ok, 1
		}
		l.check(t, 0, step{do: "KEYNOTIFY " + key, as: client, want: tt.want})
		_, notes := l.do(step{do: "SET " + key + " v"})
		if len(notes) != note {
			t.Errorf("%d notifications, want %d", len(notes), note)
		}
		for _, n := range notes {
			if len(n.Topic()) > 65535 || len(n.Topic()) < 65534 {
				t.Errorf("the topic has %d bytes", len(n.Topic()))
			}
		}
		l.check(t, 1, step{do: "KEYNOTIFY " + key + " STOP", as: client, want: stop})
	}
}

func TestExpiryOrder(t *testing.T) {
	l := newLab(store.Options{})
	for _, s := range []string{"KEYNOTIFY a", "KEYNOTIFY b", "KEYNOTIFY c", "SET a 1 PX 300", "SET b 2 PX 100", "SET c 3 PX 200", "SET c 3 PX 400"} {
		l.do(step{do: s})
	}
	if due, ok := l.NextExpiry(); !ok || !due.Equal(time.UnixMilli(base+100)) {
		t.Errorf("next expiry: got %v, %t", due, ok)
	}
	l.Expire()
	if notes := l.TakeNotifications(); len(notes) != 0 {
		t.Errorf("nothing is due, got %v", notes)
	}
	l.now = l.now.Add(time.Second)
	l.Expire()
	var got []string
	for _, n := range l.TakeNotifications() {
		got = append(got, string(n.Version)+" "+n.Topic())
	}
	const topics = "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/63/command/notify/"
	want := []string{later + " " + topics + "62", first + " " + topics + "61", "1696374425000:3:StateStore " + topics + "63"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
	if due, ok := l.NextExpiry(); ok {
		t.Errorf("nothing expires any more, got %v", due)
	}
}

// TestExpiryTogether: keys that expire at the same instant are removed in the order of their names.
func TestExpiryTogether(t *testing.T) {
	l := newLab(store.Options{})
	for _, key := range []string{"b", "c", "a"} {
		l.do(step{do: "SET " + key + " v PX 100"})
	}
	l.changes = nil
	l.now = l.now.Add(time.Second)
	l.Expire()
	want := []string{`a expired  "v" ` + third, `b expired  "v" ` + first, `c expired  "v" ` + later}
	if diff := gocmp.Diff(want, l.changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestExpiredIsMissing: a key whose time has come is missing, even if more keys are due than are removed at once.
func TestExpiredIsMissing(t *testing.T) {
	for _, s := range []step{
		{do: "GET k199", want: "$-1\r\n"},
		{do: "DEL k199", want: ":0\r\n"},
		{do: "VDEL k199 v", want: ":0\r\n"},
		{do: "SET k199 v NX", want: "+OK\r\n"},
	} {
		l := newLab(store.Options{})
		for i := range 200 {
			l.do(step{do: fmt.Sprintf("SET k%03d v PX 10", i)})
		}
		l.now = l.now.Add(10 * time.Millisecond)
		if got, _ := l.do(s); string(got.Payload) != s.want {
			t.Errorf("%s of an expired key: %q, want %q", s.do, got.Payload, s.want)
		}
	}
}

func TestChanges(t *testing.T) {
	l := newLab(store.Options{})
	for _, s := range []string{"SET a 1", "SET b 2 PX 100", "SET c 3", "SET d 4", "SET a 5 NX", "DEL c", "VDEL d 4", "VDEL a 9", "DEL z"} {
		l.do(step{do: s})
	}
	l.now = l.now.Add(time.Second)
	l.Expire()
	want := []string{
		`a set c "1" ` + first, `b set px c "2" ` + later, `c set c "3" ` + third, `d set c "4" 1696374425000:3:StateStore`,
		`c del c "3" ` + third, `d vdel c "4" 1696374425000:3:StateStore`, `b expired  "2" ` + later,
	}
	if diff := gocmp.Diff(want, l.changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestApply(t *testing.T) {
	l := newLab(store.Options{MaxKeys: 2, Authorize: denySecrets})
	l.do(step{do: "KEYNOTIFY n"})
	apply := func(w store.Write, want string) {
		t.Helper()
		w.ClientID = "front"
		if got := l.Apply(w); got != want {
			t.Errorf("%s of %q: got %q, want %q", w.Cause, w.Key, got, want)
		}
	}
	n := []byte("n")
	expires := time.UnixMilli(base + 1000)
	apply(store.Write{Cause: "incrby", Key: n, Value: []byte("1")}, "")
	apply(store.Write{Cause: "expire", Key: n, Value: l.entry(t, n).Value(), Expires: expires}, "")
	if e := l.entry(t, n); string(e.Value()) != "1" || !e.Expires().Equal(expires) || string(e.Version()) != later {
		t.Errorf("got %q, version %s, expires %v", e.Value(), e.Version(), e.Expires())
	}
	apply(store.Write{Cause: "del", Key: n, Delete: true}, "")
	apply(store.Write{Cause: "del", Key: n, Delete: true}, "")
	apply(store.Write{Cause: "incrby", Value: []byte("1")}, wire.TextEmptyKey)
	apply(store.Write{Cause: "incrby", Key: []byte("config"), Value: []byte("1")}, wire.TextNotAuthorized)
	l.do(step{do: "SET fenced v", ft: token1})
	apply(store.Write{Cause: "append", Key: []byte("fenced"), Value: []byte("vv")}, wire.TextFenceRequired)
	apply(store.Write{Cause: "del", Key: []byte("fenced"), Delete: true}, wire.TextFenceRequired)
	l.do(step{do: "SET second v"})
	apply(store.Write{Cause: "incrby", Key: n, Value: []byte("1")}, wire.TextQuota)

	want := []string{
		`n incrby front "1" ` + first, `n expire front "1" ` + later, `n del front "1" ` + later,
		`fenced set c "v" ` + third, `second set c "v" 1696374425000:3:StateStore`,
	}
	if diff := gocmp.Diff(want, l.changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestNotificationsTogether: the notifications of several changes in one step are taken together, and later
// changes do not alter them.
func TestNotificationsTogether(t *testing.T) {
	l := newLab(store.Options{})
	l.do(step{do: "KEYNOTIFY k"})
	for _, value := range []string{"1", "2", "3"} {
		l.Apply(store.Write{Cause: "set", Key: []byte("k"), Value: []byte(value)})
	}
	l.Apply(store.Write{Cause: "del", Key: []byte("k"), Delete: true})
	var got []string
	for _, n := range l.TakeNotifications() {
		got = append(got, string(n.Payload)+property(n.Properties, "__ts"))
	}
	want := []string{setNote("1") + first, setNote("2") + later, setNote("3") + third, deleteNote + third}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
	if notes := l.TakeNotifications(); len(notes) != 0 {
		t.Errorf("taken twice: %v", notes)
	}
}

func TestLookup(t *testing.T) {
	l := newLab(store.Options{})
	l.Do(&store.Request{
		ClientID: "c", Payload: request("SET", "k", "v", "PX", "100"),
		Timestamp: []byte("1:0:c"), Fence: []byte(token1), Persist: true,
	}, nil)
	e := l.entry(t, []byte("k"))
	if string(e.Key()) != "k" || string(e.Value()) != "v" || string(e.Version()) != first || string(e.Fence()) != token1 ||
		!e.Persist() || !e.Expires().Equal(time.UnixMilli(base+100)) {
		t.Errorf("got %+v", e)
	}
	l.now = l.now.Add(time.Second)
	if e, found := l.Lookup([]byte("k")); found {
		t.Errorf("the key has expired, got %+v", e)
	}
	if keys := l.keys(""); len(keys) != 0 {
		t.Errorf("the key has expired, got %q", keys)
	}
}

// entry returns the entry of an existing key.
func (l *lab) entry(t *testing.T, key []byte) store.Entry {
	t.Helper()
	e, found := l.Lookup(key)
	if !found {
		t.Fatalf("%q is missing", key)
	}
	return e
}

// keys returns the keys starting at from.
func (l *lab) keys(from string) (keys []string) {
	for e := range l.From([]byte(from)) {
		keys = append(keys, string(e.Key()))
	}
	return keys
}

func TestFrom(t *testing.T) {
	l := newLab(store.Options{})
	for _, key := range []string{"b", "a\xff", "a", "c", "a\x00"} {
		l.do(step{do: "SET " + key + " v"})
	}
	for from, want := range map[string][]string{
		"":      {"a", "a\x00", "a\xff", "b", "c"},
		"a\x00": {"a\x00", "a\xff", "b", "c"},
		"aa":    {"a\xff", "b", "c"},
		"d":     nil,
	} {
		if diff := gocmp.Diff(want, l.keys(from)); diff != "" {
			t.Errorf("from %q (-want +got):\n%s", from, diff)
		}
	}
	for e := range l.From(nil) {
		if string(e.Key()) != "a" {
			t.Errorf("the loop went on to %q", e.Key())
		}
		break
	}
}

// TestScanIsBounded: a page of SCAN that finds little ends nevertheless, and the next page continues after
// it.
func TestScanIsBounded(t *testing.T) {
	secret := func(_, _, key string, _ bool) bool { return !strings.HasPrefix(key, "secret") }
	l := newLab(store.Options{Authorize: secret})
	l.do(step{do: "SET last v"})
	for i := range 25_000 {
		l.Apply(store.Write{Cause: "set", Key: fmt.Appendf(nil, "k%05d", i)})
	}
	var found []string
	pages, words := 0, []string{"SCAN", "*t"}
	for words != nil {
		pages++
		reply, err := wire.ParseReply(l.Do(&store.Request{ClientID: "c", Payload: request(words...)}, nil).Payload)
		if err != nil {
			t.Fatal(err)
		}
		words = nil
		for i, item := range reply.Value.Items {
			for _, key := range item.Items {
				found = append(found, string(key.Text))
			}
			if i == 1 {
				words = []string{"SCAN", "*t", string(item.Text)}
			}
		}
	}
	if pages < 3 || pages > 20 || len(found) != 1 || found[0] != "last" {
		t.Errorf("%d pages with %q", pages, found)
	}
	// With a prefix, only the keys with that prefix are examined.
	l.check(t, 0, step{do: "SCAN l*", want: "*1\r\n*1\r\n$4\r\nlast\r\n"})
}

// TestScanOfLongKeys: a page ends before matching takes long, and a pattern that could take
// longer is refused.
func TestScanOfLongKeys(t *testing.T) {
	l := newLab(store.Options{})
	for i := range 50 {
		l.Apply(store.Write{Cause: "set", Key: fmt.Appendf(nil, "%s%02d", strings.Repeat("a", 60_000), i)})
	}
	pattern := "*" + strings.Repeat("a", 500) + "[" + strings.Repeat("b", 500) + "]"
	reply, err := wire.ParseReply(l.Do(&store.Request{ClientID: "c", Payload: request("SCAN", pattern)}, nil).Payload)
	if err != nil || len(reply.Value.Items) != 2 {
		t.Errorf("50 keys: %v, %d items, want a token", err, len(reply.Value.Items))
	}
	l.check(t, 0, step{do: "SCAN " + pattern + strings.Repeat("a", 100), want: "-ERR syntax error\r\n"})
}

// scanPage returns the keys of a page and its token.
func scanPage(t *testing.T, l *lab, words ...string) (keys []string, token string) {
	t.Helper()
	payload := request(append([]string{"SCAN"}, words...)...)
	reply, err := wire.ParseReply(l.Do(&store.Request{ClientID: "c", Payload: payload}, nil).Payload)
	if err != nil || len(reply.Value.Items) == 0 {
		t.Fatalf("SCAN %q: %v, %+v", words, err, reply.Value)
	}
	for _, item := range reply.Value.Items[0].Items {
		keys = append(keys, string(item.Text))
	}
	if len(reply.Value.Items) == 2 {
		token = string(reply.Value.Items[1].Text)
	}
	return keys, token
}

// TestScanTokenHidesKeys: a page also counts keys that the client may not read. A token does not reveal them.
func TestScanTokenHidesKeys(t *testing.T) {
	l := newLab(store.Options{Authorize: func(client, _, key string, _ bool) bool { return client == "root" || key == "a" || key == "z" }})
	for _, key := range []string{"a", "z"} {
		l.do(step{do: "SET " + key + " v"})
	}
	for i := range 10_000 {
		l.Apply(store.Write{ClientID: "root", Cause: "set", Key: fmt.Appendf(nil, "secret%05d", i)})
	}
	var found []string
	keys, token := scanPage(t, l, "*")
	pages := 1
	for ; token != ""; pages++ {
		found = append(found, keys...)
		if !strings.HasPrefix(token, "1;1;") || strings.Contains(token, "secret") {
			t.Fatalf("token %q", token)
		}
		keys, token = scanPage(t, l, "*", token)
	}
	if found = append(found, keys...); pages < 4 || !slices.Equal(found, []string{"a", "z"}) {
		t.Errorf("%d pages: %q", pages, found)
	}
}

// TestScanChains: with ScanChains, keys come in the order of the hash chains, each once, whatever the page
// size.
func TestScanChains(t *testing.T) {
	l := newLab(store.Options{ScanPage: 4, Variants: store.Variants{ScanChains: true}})
	for i := range 50 {
		l.do(step{do: fmt.Sprintf("SET k%02d v", i)})
	}
	var found []string
	chains := map[string]bool{}
	keys, token := scanPage(t, l, "k*")
	for ; token != ""; keys, token = scanPage(t, l, "k*", token) {
		found = append(found, keys...)
		chain, _, _ := strings.Cut(token, ";")
		chains[chain] = true
	}
	found = append(found, keys...)
	if slices.IsSorted(found) || len(chains) != 3 {
		t.Errorf("%d chains: %q", len(chains), found)
	}
	slices.Sort(found)
	if found = slices.Compact(found); len(found) != 50 {
		t.Errorf("%d keys: %q", len(found), found)
	}
}

// TestScanTokens: a token that does not come from the store is an error.
func TestScanTokens(t *testing.T) {
	l := newLab(store.Options{})
	for _, token := range []string{"", "1", "1;", "1;1", "0;1;", "2;1;", "1;2;", "1;1;x", "1;1;#x", "a;1;", "-1;1;", "99999999999999999999;1;"} {
		l.check(t, 0, step{do: "SCAN * " + token, want: "-ERR syntax error\r\n"})
	}
}

// TestScanHidesBinaryKeys: patterns match text (protocol.md 9, a draft).
func TestScanHidesBinaryKeys(t *testing.T) {
	for _, bytewise := range []bool{false, true} {
		l := newLab(store.Options{Variants: store.Variants{ScanGlobBytes: bytewise}})
		for _, key := range []string{"caf\xc3\xa9", "caf\xff", "cafe"} {
			l.do(step{do: "SET " + key + " v"})
		}
		for _, tt := range []struct {
			pattern     string
			text, bytes []string
		}{
			{"*", []string{"cafe", "café"}, []string{"cafe", "café", "caf\xff"}},
			{"caf?", []string{"cafe", "café"}, []string{"cafe", "caf\xff"}},
			{"caf[à-ö]", []string{"café"}, nil},
			{"caf[!a-z]", []string{"café"}, []string{"cafe"}},
			{"caf\xff", nil, []string{"caf\xff"}},
			{"caf\xc3?", nil, []string{"café"}},
		} {
			want := tt.text
			if bytewise {
				want = tt.bytes
			}
			if got, _ := scanPage(t, l, tt.pattern); !slices.Equal(got, want) {
				t.Errorf("bytewise %t, %q: got %q, want %q", bytewise, tt.pattern, got, want)
			}
		}
	}
}

// TestStoreOwnsValues: stored values don't change when the caller reuses its buffers.
func TestStoreOwnsValues(t *testing.T) {
	l := newLab(store.Options{})
	payload, fence := request("SET", "k", "value"), []byte(token2)
	l.Do(&store.Request{ClientID: "c", Payload: payload, Timestamp: []byte("1:0:c"), Fence: fence}, nil)
	clear(payload)
	clear(fence)
	l.check(t, 0, step{do: "GET k", want: "$5\r\nvalue\r\n", wantTS: first})
	l.check(t, 1, step{do: "SET k v", ft: token1, want: errLower})
}

// TestRewrite: values of all sizes replace each other, in place or not.
func TestRewrite(t *testing.T) {
	l := newLab(store.Options{})
	l.do(step{do: "SET k first", ft: token1})
	for i, size := range []int{0, 1, 10, 100, 90, 4000, 4100, 5000, 4200, 3, 100_000, 0, 50} {
		value := strings.Repeat("v", size)
		l.do(step{do: "SET k " + value, ft: token1})
		e := l.entry(t, []byte("k"))
		if string(e.Key()) != "k" || string(e.Value()) != value || string(e.Fence()) != token1 || string(e.Version()) != fmt.Sprintf("1696374425000:%d:StateStore", i+1) {
			t.Errorf("size %d: %q %s %s, a value of %d bytes", size, e.Key(), e.Version(), e.Fence(), len(e.Value()))
		}
	}
}

// TestGlob: the patterns of authorization rules, and those of SCAN in a variant.
func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		match   string // matching keys, separated by spaces
		differ  string
	}{
		{"*", "a abc *", ""},
		{"a*", "a ab", "b ba"},
		{"*a", "a ba aa", "ab"},
		{"a*b*c", "abc aXbYc abbcc", "ab acb"},
		{"?", "a *", "ab"},
		{"char?", "char1", "char char12"},
		{"number[0-9]", "number0 number9", "numbera number number00"},
		{"[abc]", "a b c", "d ["},
		{"[a-]", "a -", "b"},
		{"[ab", "[ab", "a b"},
		{"[]", "[]", "a"},
		{"colors/*", "colors/ colors/red/dark", "colors"},
		{"**", "a", ""},
	} {
		l := newLab(store.Options{Variants: store.Variants{ScanGlobBytes: true}})
		want := strings.Fields(tt.match)
		for _, key := range append(want, strings.Fields(tt.differ)...) {
			l.do(step{do: "SET " + key + " v"})
		}
		resp, _ := l.do(step{do: "SCAN " + tt.pattern})
		reply, err := wire.ParseReply(resp.Payload)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]bool)
		for _, v := range reply.Value.Items[0].Items {
			got[string(v.Text)] = true
		}
		for _, key := range want {
			if !got[key] {
				t.Errorf("%q does not match %q", tt.pattern, key)
			}
			delete(got, key)
		}
		for key := range got {
			t.Errorf("%q matches %q", tt.pattern, key)
		}
	}
}

// TestManyRegistrations: the registrations of a client that disconnects end at once, and their memory is
// released in steps.
func TestManyRegistrations(t *testing.T) {
	reserved := 0
	s := store.New(store.Options{Reserve: func(n int) bool { reserved += n; return true }})
	notify := func(client, key string) {
		t.Helper()
		got := s.Do(&store.Request{ClientID: client, Payload: wire.AppendRequest(nil, wire.VerbKeyNotify, key)}, nil)
		if string(got.Payload) != "+OK\r\n" {
			t.Fatalf("%q", got.Payload)
		}
	}
	const keys = 5000
	for i := range keys {
		notify("a", fmt.Sprint(i))
	}
	release := s.Disconnect("a")
	if release == nil || s.Registrations() == 0 {
		t.Fatal("all registrations were removed in one step")
	}
	for i := range keys {
		s.Apply(store.Write{Key: fmt.Append(nil, i), Value: []byte("v")})
	}
	if got := s.TakeNotifications(); len(got) != 0 {
		t.Errorf("%d notifications for a client that has disconnected", len(got))
	}
	notify("a", "1")
	for release() {
	}
	if got := s.Registrations(); got != 1 {
		t.Errorf("%d registrations, want 1", got)
	}
	if s.Disconnect("a") != nil || reserved != 0 {
		t.Errorf("%d bytes are still reserved", reserved)
	}
}

// TestReleases: requests keep no large value in memory, neither one that they carried nor one that they
// deleted.
func TestReleases(t *testing.T) {
	s := store.New(store.Options{})
	do := func(want string, words ...string) {
		t.Helper()
		r := &store.Request{ClientID: "a", Timestamp: stampNow(), Payload: wire.AppendRequest(nil, words...)}
		if got := s.Do(r, nil).Payload; !strings.HasPrefix(string(got), want) {
			t.Fatalf("%s: %.60q, want %q", words[0], got, want)
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const size = 16 << 20
	before := heap()
	do("+OK", "SET", "large", strings.Repeat("v", size))
	do("*", "SCAN", "*")
	do(":1", "DEL", "large")
	if left := heap() - before; int64(left) > size/2 {
		t.Errorf("%d bytes are left of a value of %d", left, size)
	}
	runtime.KeepAlive(s)
}

// TestManyWords: a request of millions of words is refused before its words are read.
func TestManyWords(t *testing.T) {
	s := store.New(store.Options{})
	for _, payload := range []string{"*1000000\r\n" + strings.Repeat("$0\r\n\r\n", 1_000_000), "*0000100\r\n$3\r\nGET\r\n"} {
		request := &store.Request{ClientID: "a", Payload: []byte(payload)}
		var got []byte
		if n := testing.AllocsPerRun(3, func() { got = s.Do(request, got[:0]).Payload }); n > 5 || !strings.HasPrefix(string(got), "-ERR wrong number of arguments") {
			t.Errorf("%.20q: %.60q, with %.0f allocations", payload, got, n)
		}
	}
	if got := s.Do(&store.Request{Payload: []byte("*99\r\n$3\r\nGET\r\n")}, nil).Payload; string(got) != "-ERR syntax error\r\n" {
		t.Errorf("%q", got)
	}
}
