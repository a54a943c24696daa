package client_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// TestVariants: where the protocol is open, or the store differs from its documentation, the user sees the
// same (protocol.md 2.3, 2.4, 12).
func TestVariants(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		v    emulator.Variants
		note string // note on some of the replies
	}{
		{"as in the SDKs", emulator.Variants{}, ""},
		{"any case", emulator.Variants{AnyCase: true}, ""},
		{"timestamp on all", emulator.Variants{TimestampOnAll: true}, ""},
		{"condition before fence", emulator.Variants{ConditionBeforeFence: true}, ""},
		{"bare -1", emulator.Variants{BareMinusOne: true}, "the reply is -1 without a colon"},
		{"error with colon", emulator.Variants{ErrorColon: true}, ""},
		{"error without CR LF", emulator.Variants{ErrorUnframed: true}, ""},
		{"error with colon, without CR LF", emulator.Variants{ErrorColon: true, ErrorUnframed: true}, ""},
		{"blob without CR LF", emulator.Variants{BlobUnframed: true}, "the reply is a blob without CR LF at its end"},
		{"null as _", emulator.Variants{NullUnderscore: true}, ""},
		{"no status", emulator.Variants{NoStatus: true}, "the reply has no __stat"},
		{"no protocol version", emulator.Variants{NoProtocolVersion: true}, ""},
		{"no content type", emulator.Variants{NoContentType: true}, ""},
		{"padded versions", emulator.Variants{PaddedVersions: true}, ""},
		{"DEL without version", emulator.Variants{DelNoVersion: true}, ""},
		{"mismatch with version", emulator.Variants{MismatchVersion: true}, ""},
		{"repeated KEYNOTIFY", emulator.Variants{RepeatedWatchZero: true}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, emulator.Options{Variants: test.v}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
				notes := conform(t, s)
				if want := test.note != ""; slices.Contains(notes, test.note) != want || !want && len(notes) > 0 {
					t.Errorf("got notes %q, want %q", notes, test.note)
				}
			})
		})
	}
}

// conform checks the rows of protocol.md 2.3 and 3.6 and returns the notes of the replies.
func conform(t *testing.T, s *client.Session) (notes []string) {
	t.Helper()
	do := func(c client.Command) client.Result {
		t.Helper()
		r, err := s.Do(t.Context(), c)
		if err != nil {
			t.Errorf("%s %s: %v", c.Verb(), c.Key(), err)
		}
		if warnings := r.Info().Warnings; len(warnings) > 0 {
			t.Errorf("%s %s: %q", c.Verb(), c.Key(), warnings)
		}
		notes = append(notes, r.Info().Notes...)
		return r
	}
	set := func(value string, condition client.Condition, want bool) wire.Version {
		t.Helper()
		r := do(client.Set("k", []byte(value), client.SetOptions{Condition: condition})).(client.SetResult)
		if r.Applied != want || r.Version.IsZero() {
			t.Errorf("SET %q %s: got %t with version %v", value, condition, r.Applied, r.Version)
		}
		return r.Version
	}
	get := func(key, want string, found bool) wire.Version {
		t.Helper()
		r := do(client.Get(key)).(client.GetResult)
		if r.Found != found || string(r.Value) != want || r.Version.IsZero() == found {
			t.Errorf("GET %s: got %q, %t with version %v", key, r.Value, r.Found, r.Version)
		}
		return r.Version
	}
	counts := func(c client.Command, want int64) {
		t.Helper()
		if r := do(c); count(r) != want {
			t.Errorf("%s %s: got %+v, want %d", c.Verb(), c.Key(), r, want)
		}
	}
	var o client.WriteOptions

	get("k", "", false)
	first := set("v", client.NX, true)
	if now := get("k", "v", true); !now.Equal(first) {
		t.Errorf("GET has version %v, SET had %v", now, first)
	}
	for _, refused := range []wire.Version{set("w", client.NX, false), set("w", client.NEX, false)} {
		if !refused.Equal(first) {
			t.Errorf("a refused SET has version %v, the key %v", refused, first)
		}
	}
	if again := set("v", client.NEX, true); again.Compare(first) <= 0 {
		t.Errorf("%v does not come after %v", again, first)
	}
	set("", client.Always, true)
	get("k", "", true)
	set("a\r\nb", client.Always, true)
	get("k", "a\r\nb", true)
	counts(client.VDel("missing", []byte("v"), o), 0)
	counts(client.VDel("k", []byte("v"), o), -1)
	counts(client.VDel("k", []byte("a\r\nb"), o), 1)
	set("v", client.Always, true)
	counts(client.Del("k", o), 1)
	counts(client.Del("k", o), 0)
	for range 2 { // the protocol leaves open whether the second reply is :0 or +OK
		do(client.Call([]string{"KEYNOTIFY", "k"}, o))
	}
	if v := do(client.Call([]string{"KEYNOTIFY", "k", "STOP"}, o)).(client.CallResult).Value; v.Kind != wire.SimpleString {
		t.Errorf("KEYNOTIFY STOP: got %+v", v)
	}
	if v := do(client.Call([]string{"KEYNOTIFY", "k", "STOP"}, o)).(client.CallResult).Value; v.Kind != wire.Integer || v.Int != 0 {
		t.Errorf("a second KEYNOTIFY STOP: got %+v", v)
	}

	token := set("v", client.Always, true)
	do(client.Set("k", []byte("v"), client.SetOptions{WriteOptions: client.WriteOptions{Fence: token}}))
	_, err := s.Del(t.Context(), "k", o)
	if e := as[*wire.StoreError](t, err); e.Kind() != wire.ErrorFenceRequired {
		t.Error(err)
	}
	counts(client.Del("k", client.WriteOptions{Fence: token}), 1)
	_, err = s.Do(t.Context(), client.Call([]string{"MGET", "k"}, o))
	if e := as[*wire.StoreError](t, err); e.Kind() != wire.ErrorUnknownCommand {
		t.Error(err)
	}
	return notes
}

// TestOddAnswers sends replies for which the emulator has no variant.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	must(store.Set("k", "v"))(t)
	for _, test := range []struct {
		name          string
		rewrite       func(*emulator.Answer)
		warning, note string // a part of the warning or note
	}{
		{"status 204", func(a *emulator.Answer) { a.Set("__stat", "204") }, "", ""},
		{"version 1", func(a *emulator.Answer) { a.Set("__protVer", "1") }, "", ""},
		{"version 1.7", func(a *emulator.Answer) { a.Set("__protVer", "1.7") }, "", ""},
		{"content type with parameter", func(a *emulator.Answer) { a.ContentType = "application/octet-stream;x=1" }, "", ""},
		{"content type with suffix", func(a *emulator.Answer) { a.ContentType = "application/octet-stream+x" }, "", ""},
		{"other content type", func(a *emulator.Answer) { a.ContentType = "text/plain" }, "", `content type is "text/plain"`},
		{"no version", func(a *emulator.Answer) { a.Delete("__ts") }, "the store sent no version", ""},
		{"old version", func(a *emulator.Answer) { a.Set("__ts", "1:0:x") }, "", ""},
		{"version without node", func(a *emulator.Answer) { a.Set("__ts", "1696374425000:1:") }, "", ""},
		{"version of the far future", func(a *emulator.Answer) { a.Set("__ts", "9223372036854775807:18446744073709551615:x") }, "ahead of the local clock", ""},
		{"unknown property", func(a *emulator.Answer) { a.Set("__new", "x") }, "", ""},
	} {
		store.Intercept(always(emulator.Action{Rewrite: test.rewrite}))
		for _, c := range []client.Command{client.Get("k"), client.Set("l", "")} {
			r, err := s.Do(t.Context(), c)
			if err != nil {
				t.Errorf("%s: %s: %v", test.name, c.Verb(), err)
				continue
			}
			warnings, notes := strings.Join(r.Info().Warnings, "; "), strings.Join(r.Info().Notes, "; ")
			if !strings.Contains(warnings, test.warning) || (test.warning == "") != (warnings == "") ||
				!strings.Contains(notes, test.note) || (test.note == "") != (notes == "") {
				t.Errorf("%s: %s: got warnings %q and notes %q", test.name, c.Verb(), warnings, notes)
			}
		}
	}
	store.Intercept(nil)
	// The version from the far future must not have advanced the clock.
	must(s.Set(t.Context(), "k", nil))(t)
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	get, set, del, vdel := client.Get("k"), client.Set("k", ""), client.Del("k"), client.VDel("k", "")
	payload := func(p string) func(*emulator.Answer) {
		return func(a *emulator.Answer) { a.Payload = []byte(p) }
	}
	for _, test := range []struct {
		name    string
		c       client.Command
		rewrite func(*emulator.Answer)
	}{
		{"empty", get, payload("")},
		{"text", get, payload("hello")},
		{"JSON", set, payload(`{"ok":true}`)},
		{"short blob", get, payload("$9\r\nabc\r\n")},
		{"huge blob", get, payload("$9223372036854775807\r\nabc\r\n")},
		{"negative blob", get, payload("$-2\r\n")},
		{"two values", get, payload("$1\r\na\r\n$1\r\nb\r\n")},
		{"GET, +OK", get, payload("+OK\r\n")},
		{"GET, :-1", get, payload(":-1\r\n")},
		{"GET, array", get, payload("*0\r\n")},
		{"SET, blob", set, payload("$2\r\nOK\r\n")},
		{"SET, +NO", set, payload("+NO\r\n")},
		{"SET, :0", set, payload(":0\r\n")},
		{"SET, null", set, payload("$-1\r\n")},
		{"DEL, :-1", del, payload(":-1\r\n")},
		{"DEL, +OK", del, payload("+OK\r\n")},
		{"VDEL, :-2", vdel, payload(":-2\r\n")},
		{"VDEL, null", vdel, payload("_\r\n")},
		{"HLC", set, func(a *emulator.Answer) { a.Set("__ts", "yesterday") }},
		{"HLC of four parts", set, func(a *emulator.Answer) { a.Set("__ts", "1:2:3:4") }},
		{"empty HLC", set, func(a *emulator.Answer) { a.Set("__ts", "") }},
		{"status", set, func(a *emulator.Answer) { a.Set("__stat", "OK") }},
		{"version 2", set, func(a *emulator.Answer) { a.Set("__protVer", "2.0") }},
		{"version 10", set, func(a *emulator.Answer) { a.Set("__protVer", "10.0") }},
	} {
		store.Intercept(always(emulator.Action{Rewrite: test.rewrite}))
		_, err := s.Do(t.Context(), test.c)
		if lost, ok := err.(*client.LostReplyError); ok != (test.c.Verb() != wire.VerbGet) {
			t.Errorf("%s: got %T %v", test.name, err, err)
		} else if ok {
			err = lost.Err
		}
		if _, ok := err.(*client.ReplyError); !ok {
			t.Errorf("%s: got %T %v", test.name, err, err)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the message has two lines: %q", test.name, err)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	for _, test := range []struct {
		status, message, want string
		open                  bool // a write may have been applied
	}{
		{"400", "bad", `the store answered with status 400: "bad"`, false},
		{"408", "", "the store answered with status 408", true},
		{"500", "oh\x1b[2J", `the store answered with status 500: "oh\x1b[2J"`, true},
		{"503", "", "the store answered with status 503", true},
		{"505", "", "the store answered with status 505", false},
		{"0", "", "the store answered with status 0", true},
	} {
		for _, payload := range []string{"", "+OK\r\n"} {
			store.Intercept(always(emulator.Action{Rewrite: func(a *emulator.Answer) {
				a.Payload = []byte(payload)
				a.Set("__stat", test.status)
				if test.message != "" {
					a.Set("__stMsg", test.message)
				}
			}}))
			_, err := s.Get(t.Context(), "k")
			if as[*client.StatusError](t, err); err.Error() != test.want {
				t.Errorf("got %v", err)
			}
			_, err = s.Set(t.Context(), "k", nil)
			want := test.want
			if lost, ok := err.(*client.LostReplyError); ok != test.open {
				t.Errorf("SET, status %s: got %T %v", test.status, err, err)
			} else if ok {
				want = "SET was sent: " + want
				err = lost
			}
			if as[*client.StatusError](t, err); err.Error() != want {
				t.Errorf("got %v", err)
			}
		}
	}
}

// TestStoreAhead: a store that is ahead of the local clock causes a warning, and does not advance the local
// clock to times that the store would refuse (protocol.md 1.7 item 5).
func TestStoreAhead(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Skew: 70 * time.Second})
	s := dial(t, store, client.Options{})
	for range 2 {
		r := must(s.Set(t.Context(), "k", []byte("v")))(t)
		if !r.Applied || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "ahead of the local clock") {
			t.Errorf("got %+v", r)
		}
	}
	stamp := sentStamp(t, store, s)
	if ahead := time.Until(stamp.Time()); ahead > time.Second {
		t.Errorf("the clock is %v ahead", ahead)
	}
}

// TestClockFollows: the clock is never behind a received version (protocol.md 3.4).
func TestClockFollows(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Skew: 30 * time.Second})
	s := dial(t, store, client.Options{})
	must(store.Set("k", "v"))(t)
	r := must(s.Get(t.Context(), "k"))(t)
	if len(r.Warnings) > 0 {
		t.Error(r.Warnings)
	}
	first := sentStamp(t, store, s)
	if first.Compare(r.Version) <= 0 {
		t.Errorf("sent %v after %v", first, r.Version)
	}
	if second := sentStamp(t, store, s); second.Compare(first) <= 0 || second.Node != first.Node {
		t.Errorf("sent %v after %v", second, first)
	}
}

// sentStamp sends a request and returns its `__ts`.
func sentStamp(t *testing.T, store *emulator.Server, s *client.Session) wire.Version {
	t.Helper()
	got := make(chan string, 1)
	store.Intercept(func(r emulator.Request) emulator.Action {
		stamp, _ := r.Property(wire.PropTimestamp)
		got <- stamp
		return emulator.Action{}
	})
	defer store.Intercept(nil)
	must(s.Get(t.Context(), "missing"))(t)
	return must(wire.ParseVersion(<-got))(t)
}
