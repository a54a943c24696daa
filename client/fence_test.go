package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// TestFencing checks the rows of protocol.md 4.
func TestFencing(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMilli()
	older := wire.Version{Wall: now - 2000, Node: "lock"}
	equal := wire.Version{Wall: now - 1000, Node: "lock"}
	newer := wire.Version{Wall: now, Node: "lock"}
	ahead := wire.Version{Wall: now + 3_600_000, Node: "lock"}
	none := wire.Version{}
	ok := wire.ErrorKind("")
	set := func(f wire.Version) client.Command {
		return client.Set("k", []byte("w"), client.SetOptions{WriteOptions: client.WriteOptions{Fence: f}})
	}
	del := func(f wire.Version) client.Command { return client.Del("k", client.WriteOptions{Fence: f}) }
	vdel := func(f wire.Version) client.Command {
		return client.VDel("k", []byte("v"), client.WriteOptions{Fence: f})
	}
	differs := func(f wire.Version) client.Command {
		return client.VDel("k", []byte("x"), client.WriteOptions{Fence: f})
	}
	const missing, plain, fenced = 0, 1, 2
	for _, test := range []struct {
		row    string
		before int
		c      client.Command
		kind   wire.ErrorKind
		count  int64
		fence  wire.Version // fence of the key after the request
		gone   bool
	}{
		{"1 missing", missing, set(none), ok, 0, none, false},
		{"1 present", plain, set(none), ok, 0, none, false},
		{"2", missing, set(equal), ok, 0, equal, false},
		{"3", plain, set(equal), ok, 0, equal, false},
		{"4 SET", fenced, set(none), wire.ErrorFenceRequired, 0, equal, false},
		{"4 DEL", fenced, del(none), wire.ErrorFenceRequired, 0, equal, false},
		{"4 VDEL", fenced, vdel(none), wire.ErrorFenceRequired, 0, equal, false},
		{"5", fenced, set(older), wire.ErrorFenceLower, 0, equal, false},
		{"6", fenced, set(equal), ok, 0, equal, false},
		{"7", fenced, set(newer), ok, 0, newer, false},
		{"8 DEL", fenced, del(older), wire.ErrorFenceLower, 0, equal, false},
		{"8 VDEL", fenced, vdel(older), wire.ErrorFenceLower, 0, equal, false},
		{"9 DEL equal", fenced, del(equal), ok, 1, none, true},
		{"9 DEL newer", fenced, del(newer), ok, 1, none, true},
		{"9 VDEL equal", fenced, vdel(equal), ok, 1, none, true},
		{"10", fenced, differs(newer), ok, -1, equal, false},
		{"11", fenced, client.Get("k"), ok, 0, equal, false},
		{"12 SET", plain, set(ahead), wire.ErrorFenceAhead, 0, none, false},
		{"12 DEL", fenced, del(ahead), wire.ErrorFenceAhead, 0, equal, false},
		{"15 DEL missing", missing, del(equal), ok, 0, none, true},
		{"15 DEL plain", plain, del(equal), ok, 1, none, true},
		{"15 VDEL plain", plain, vdel(equal), ok, 1, none, true},
	} {
		t.Run(test.row, func(t *testing.T) {
			t.Parallel()
			onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, store *emulator.Server, s *client.Session) {
				if test.before == plain {
					must(s.Set(t.Context(), "k", []byte("v")))(t)
				}
				if test.before == fenced {
					must(s.Set(t.Context(), "k", []byte("v"), client.SetOptions{WriteOptions: client.WriteOptions{Fence: equal}}))(t)
				}
				r, err := s.Do(t.Context(), test.c)
				if test.kind != ok {
					if e := as[*wire.StoreError](t, err); e.Kind() != test.kind {
						t.Errorf("got %v, want %s", err, test.kind)
					}
					not[*client.LostReplyError](t, err)
				} else if err != nil {
					t.Error(err)
				} else if count(r) != test.count {
					t.Errorf("got %d, want %d", count(r), test.count)
				}
				if store == nil {
					return // no request returns the fence
				}
				if e, found := store.Get("k"); found == test.gone || !e.Fence.Equal(test.fence) {
					t.Errorf("found %t with fence %v, want %v", found, e.Fence, test.fence)
				}
			})
		})
	}
}

// TestFenceIsSentVerbatim: a token is sent as the text that was received (row 13).
func TestFenceIsSentVerbatim(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	got := make(chan string, 1)
	store.Intercept(func(r emulator.Request) emulator.Action {
		token, _ := r.Property(wire.PropFence)
		got <- token
		return emulator.Action{}
	})
	for _, text := range []string{"1696374425000:1:StateStore", "001696374425000:00001:StateStore", "0001696374425001:01:x", "1696374425002:1:a node"} {
		fence := must(wire.ParseVersion(text))(t)
		for _, c := range []client.Command{
			client.Set("k", "", client.SetOptions{WriteOptions: client.WriteOptions{Fence: fence}}),
			client.VDel("k", []byte("other"), client.WriteOptions{Fence: fence}),
			client.Del("k", client.WriteOptions{Fence: fence}),
			client.Call([]string{"SET", "l", "v"}, client.WriteOptions{Fence: fence}),
		} {
			if _, err := s.Do(t.Context(), c); err != nil {
				t.Errorf("%s with %q: %v", c.Verb(), text, err)
			}
			if got := <-got; got != text {
				t.Errorf("%s sent %q, want %q", c.Verb(), got, text)
			}
		}
	}
}

// TestFenceEndsWithTheKey: the fence ends when the key is deleted (row 14).
func TestFenceEndsWithTheKey(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	fence := must(store.Set("lock", "holder"))(t)
	o := client.SetOptions{WriteOptions: client.WriteOptions{Fence: fence}, TTL: 10 * time.Second}
	must(s.Set(t.Context(), "deleted", nil, o))(t)
	must(s.Set(t.Context(), "expired", nil, o))(t)
	must(s.Del(t.Context(), "deleted", o.WriteOptions))(t)
	store.FastForward(10 * time.Second)
	for _, key := range []string{"deleted", "expired"} {
		must(s.Set(t.Context(), key, nil))(t)
	}
}

// TestUnsendableFence: a token that no MQTT string can hold is refused, and does not end the connection.
func TestUnsendableFence(t *testing.T) {
	t.Parallel()
	_, s := open(t)
	for _, node := range []string{"a\xff", "a\x00", strings.Repeat("x", 1<<16)} {
		fence := client.WriteOptions{Fence: wire.Version{Wall: 1, Node: node}}
		_, err := s.Del(t.Context(), "k", fence)
		as[*client.InvalidError](t, err)
		_, err = s.Pipeline(1).Send(t.Context(), client.Set("k", "", client.SetOptions{WriteOptions: fence}))
		as[*client.InvalidError](t, err)
		if err := client.Del("k", fence).WithFence(wire.Version{}).Check(); err != nil {
			t.Errorf("without the token: %v", err)
		}
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}
