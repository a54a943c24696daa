package client_test

import (
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

func TestSetConditions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		before    string // empty = missing
		condition client.Condition
		want      bool
	}{
		{"always, missing", "", client.Always, true},
		{"always, same", "v", client.Always, true},
		{"always, other", "w", client.Always, true},
		{"NX, missing", "", client.NX, true},
		{"NX, same", "v", client.NX, false},
		{"NX, other", "w", client.NX, false},
		{"NEX, missing", "", client.NEX, true},
		{"NEX, same", "v", client.NEX, true},
		{"NEX, other", "w", client.NEX, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
				var before wire.Version
				if test.before != "" {
					before = put(t, s, "k", test.before)
				}
				r := must(s.Set(t.Context(), "k", []byte("v"), client.SetOptions{Condition: test.condition}))(t)
				now, version := value(t, s, "k")
				want := "v"
				if !test.want {
					want = test.before
				}
				if r.Applied != test.want || now != want {
					t.Errorf("got %t and %q, want %t and %q", r.Applied, now, test.want, want)
				}
				// protocol.md 3.6: the reply to a refused SET also has the version of the key.
				if !r.Version.Equal(version) || r.Version.Compare(before) < 0 || r.Applied == r.Version.Equal(before) {
					t.Errorf("got version %v, before %v, now %v", r.Version, before, version)
				}
				if len(r.Warnings)+len(r.Notes) > 0 {
					t.Errorf("got %+v", r)
				}
			})
		})
	}
}

func TestSetTTL(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	must(s.Set(t.Context(), "short", []byte("v"), client.SetOptions{TTL: 10 * time.Second, Condition: client.NX}))(t)
	must(s.Set(t.Context(), "long", []byte("v"), client.SetOptions{TTL: time.Hour, Condition: client.NEX}))(t)
	must(s.Set(t.Context(), "ever", []byte("v")))(t)
	store.FastForward(15 * time.Second)
	for key, want := range map[string]bool{"short": false, "long": true, "ever": true} {
		r := must(s.Get(t.Context(), key))(t)
		if r.Found != want {
			t.Errorf("%s: found %t, want %t", key, r.Found, want)
		}
	}
}

func TestSetPayload(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		o    client.SetOptions
		want string // protocol.md 2.2
	}{
		{client.SetOptions{}, "*3\r\n$3\r\nSET\r\n$7\r\nSETKEY2\r\n$6\r\nVALUE5\r\n"},
		{client.SetOptions{Condition: client.NX}, "*4\r\n$3\r\nSET\r\n$7\r\nSETKEY2\r\n$6\r\nVALUE5\r\n$2\r\nNX\r\n"},
		{client.SetOptions{Condition: client.NEX}, "*4\r\n$3\r\nSET\r\n$7\r\nSETKEY2\r\n$6\r\nVALUE5\r\n$3\r\nNEX\r\n"},
		{client.SetOptions{TTL: 10 * time.Millisecond}, "*5\r\n$3\r\nSET\r\n$7\r\nSETKEY2\r\n$6\r\nVALUE5\r\n$2\r\nPX\r\n$2\r\n10\r\n"},
		{client.SetOptions{Condition: client.NX, TTL: 10 * time.Millisecond}, "*6\r\n$3\r\nSET\r\n$7\r\nSETKEY2\r\n$6\r\nVALUE5\r\n$2\r\nNX\r\n$2\r\nPX\r\n$2\r\n10\r\n"},
	} {
		store, s := open(t)
		got := make(chan string, 1)
		store.Intercept(func(r emulator.Request) emulator.Action {
			got <- string(r.Payload)
			return emulator.Action{}
		})
		must(s.Set(t.Context(), "SETKEY2", []byte("VALUE5"), test.o))(t)
		if got := <-got; got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestInvalidCommands(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	for name, c := range map[string]client.Command{
		"GET, empty key":     client.Get(""),
		"SET, empty key":     client.Set("", []byte("v")),
		"DEL, empty key":     client.Del(""),
		"VDEL, empty key":    client.VDel("", []byte("v")),
		"half a millisecond": client.Set("k", "", client.SetOptions{TTL: time.Millisecond / 2}),
		"one and a half":     client.Set("k", "", client.SetOptions{TTL: time.Millisecond * 3 / 2}),
		"negative TTL":       client.Set("k", "", client.SetOptions{TTL: -time.Second}),
		"lower-case nx":      client.Set("k", "", client.SetOptions{Condition: "nx"}),
		"empty request":      client.Call(nil),
	} {
		_, err := s.Do(t.Context(), c)
		as[*client.InvalidError](t, err)
		as[*client.InvalidError](t, c.Check())
		_, err = s.Pipeline(1).Send(t.Context(), c)
		as[*client.InvalidError](t, err)
		_, err = single(t.Context(), client.Options{Address: "127.0.0.1:1"}, c)
		as[*client.InvalidError](t, err)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	must(s.Get(t.Context(), "k"))(t)
	if n := store.State().Requests; n != 1 {
		t.Errorf("%d requests were sent, want 1", n)
	}
}
