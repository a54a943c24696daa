package store_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// FuzzRequest: every request gets a reply that a client can parse, and notifications can be parsed too.
func FuzzRequest(f *testing.F) {
	f.Add(request("SET", "k", "v", "NEX", "PX", "10"), "1696374425000:0:c", "")
	f.Add(request("VDEL", "k", "v"), "", "1696374425000:0:c")
	f.Add(request("SCAN", "*[a-z]?", "\x00\xffk"), "", "")
	f.Add(request("KEYNOTIFY", "k", "STOP"), "x", "y")
	f.Add([]byte("*1000000000\r\n"), "9223372036854775807:18446744073709551615:", ":")
	f.Fuzz(func(t *testing.T, payload []byte, ts, ft string) {
		l := newLab(store.Options{MaxKeys: 3, ScanPage: 1})
		for _, s := range []string{"SET k v", "KEYNOTIFY k", "SET j w PX 5"} {
			l.do(step{do: s})
		}
		req := store.Request{ClientID: "c", Payload: payload, Timestamp: []byte(ts), Fence: []byte(ft)}
		before := bytes.Clone(payload)
		for range 2 {
			resp, notes := l.Do(&req, nil), l.TakeNotifications()
			if !bytes.Equal(payload, before) {
				t.Fatalf("%q became %q", before, payload)
			}
			reply, err := wire.ParseReply(resp.Payload)
			if err != nil {
				t.Fatalf("%q is answered with %q: %v", payload, resp.Payload, err)
			}
			if reply.Note != "" {
				t.Errorf("%q is answered with %q: %s", payload, resp.Payload, reply.Note)
			}
			words, _ := wire.ParseRequest(payload)
			if seen, err := wire.ParseVersion(ts); err == nil && string(resp.Payload) == ok && string(words[0]) == "SET" && version(t, resp.Version).Compare(seen) <= 0 {
				t.Errorf("the version %s is not greater than `__ts` %q", resp.Version, ts)
			}
			for _, n := range notes {
				if _, err := wire.ParseNotification(n.Payload); err != nil {
					t.Errorf("notification %q: %v", n.Payload, err)
				}
			}
			l.now = l.now.Add(time.Millisecond)
		}
	})
}

// version parses a version from the store.
func version(t *testing.T, text []byte) wire.Version {
	t.Helper()
	v, err := wire.ParseVersion(string(text))
	if err != nil {
		t.Error(err)
	}
	return v
}

// modelKey is the model's state of a key.
type modelKey struct {
	value   string
	version string
	dies    time.Time
	fence   int // 0 = none
}

// FuzzModel: after any sequence of operations, each reply and each GET agrees with a plain map; versions only
// grow, and a deletion has the version of the deleted value; watchers are notified of every change.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 0, 0, 4, 0, 0, 1, 0, 0})
	f.Add([]byte{0x10, 0, 3, 0x20, 1, 9, 5, 0, 40, 3, 1, 2})
	f.Add(bytes.Repeat([]byte{0x13, 7, 1, 0x31, 2, 30}, 9))
	f.Fuzz(func(t *testing.T, ops []byte) {
		l := newLab(store.Options{})
		for _, key := range []string{"k0", "k1", "k2"} {
			l.do(step{do: "KEYNOTIFY " + key})
		}
		model := make(map[string]modelKey)
		var last wire.Version
		ops = ops[:min(len(ops), 300)]
		for ; len(ops) >= 3; ops = ops[3:] {
			verb, key, value := ops[0]%6, fmt.Sprintf("k%d", ops[1]%3), fmt.Sprintf("v%d", ops[1]/3%2)
			fence := int(ops[0] >> 4 % 4) // 0 = none
			l.now = l.now.Add(time.Duration(ops[2]%16) * time.Millisecond)
			changes := 0
			deleted := make(map[string]string) // from key to version
			for k, m := range model {
				if !m.dies.IsZero() && !l.now.Before(m.dies) {
					delete(model, k)
					deleted[k] = m.version
					changes++
				}
			}
			s := step{do: "GET " + key}
			m, there := model[key]
			fenceError := ""
			switch {
			case there && m.fence > 0 && fence == 0:
				fenceError = errRequired
			case there && m.fence > fence:
				fenceError = errLower
			}
			want := null
			if there {
				want = fmt.Sprintf("$%d\r\n%s\r\n", len(m.value), m.value)
			}
			set := func(words string, met bool, px time.Duration) {
				s.do = "SET " + key + " " + value + words
				switch {
				case fenceError != "":
					want = fenceError
				case !met:
					want = no
				default:
					want = ok
					next := modelKey{value: value, fence: max(fence, m.fence)}
					if !there {
						next.fence = fence
					}
					if px > 0 {
						next.dies = l.now.Add(px)
					}
					model[key] = next
					changes++
				}
			}
			switch verb {
			case 0:
				set("", true, 0)
			case 1:
				set(" NX", !there, 0)
			case 2:
				set(" NEX PX 20", !there || m.value == value, 20*time.Millisecond)
			case 3, 4:
				s.do = "DEL " + key
				if verb == 4 {
					s.do = "VDEL " + key + " " + value
				}
				switch {
				case fenceError != "":
					want = fenceError
				case !there:
					want = zero
				case verb == 4 && m.value != value:
					want = no
				default:
					want = one
					delete(model, key)
					deleted[key] = m.version
					changes++
				}
			}
			if fence > 0 {
				s.ft = fmt.Sprintf("%d:0:lock", fence)
			}
			resp, notes := l.do(s)
			if got := string(resp.Payload); got != want {
				t.Fatalf("%s with fence %d: got %q, want %q", s.do, fence, got, want)
			}
			if len(notes) != changes {
				t.Errorf("%s: %d notifications of %d changes", s.do, len(notes), changes)
			}
			for _, n := range notes {
				_, of, _ := wire.ParseNotifyTopic(n.Topic())
				if string(n.Payload) == deleteNote {
					if string(n.Version) != deleted[of] {
						t.Errorf("%s: %s was deleted with the version %s, it was %s", s.do, of, n.Version, deleted[of])
					}
					continue
				}
				if v := version(t, n.Version); v.Compare(last) <= 0 {
					t.Errorf("%s: version %v after %v", s.do, v, last)
				} else {
					last = v
				}
			}
			if m, there := model[key]; there && want == ok {
				m.version = string(resp.Version)
				model[key] = m
			}
			for _, key := range []string{"k0", "k1", "k2"} {
				m, want := model[key]
				e, there := l.Lookup([]byte(key))
				if there != want {
					t.Fatalf("after %s, %s is there: %t; want %t", s.do, key, there, want)
				}
				if want && (string(e.Value()) != m.value || string(e.Version()) != m.version) {
					t.Errorf("after %s, %s is %q of %s; want %q of %s", s.do, key, e.Value(), e.Version(), m.value, m.version)
				}
			}
		}
	})
}
