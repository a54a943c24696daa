package explain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// A stage is a store with a key and the lock that protects the key.
type stage struct {
	t      *testing.T
	server *emulator.Server
	s      *client.Session
}

const (
	key  = "valve/position"
	lock = "valve"
)

func newStage(t *testing.T) *stage {
	t.Helper()
	server := emulator.Start(t)
	s, err := client.Dial(t.Context(), client.Options{Address: server.Addr().String(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &stage{t, server, s}
}

// write writes the key, with a token unless the token is zero, and returns the key's version.
func (st *stage) write(token client.Version) client.Version {
	st.t.Helper()
	r, err := st.s.Set(st.t.Context(), key, []byte("1"), client.SetOptions{WriteOptions: client.WriteOptions{Fence: token}})
	if err != nil {
		st.t.Fatal(err)
	}
	return r.Version
}

// hold acquires or renews the lock and returns its token.
func (st *stage) hold(holder string) client.Version {
	st.t.Helper()
	r, err := st.s.Set(st.t.Context(), lock, []byte(holder), client.SetOptions{Condition: client.NEX, TTL: time.Minute})
	if err != nil || !r.Applied {
		st.t.Fatalf("lock by %s: %+v, %v", holder, r, err)
	}
	return r.Version
}

func (st *stage) release(holder string) {
	st.t.Helper()
	if _, err := st.s.VDel(st.t.Context(), lock, []byte(holder)); err != nil {
		st.t.Fatal(err)
	}
}

// later returns a token that nobody issued, with the time in d from now.
func later(d time.Duration) client.Version {
	return client.Version{Wall: time.Now().Add(d).UnixMilli(), Node: "someone"}
}

// answer sends a write and returns "accepted" or the reason for the store's refusal.
func (st *stage) answer(verb string, token client.Version) string {
	st.t.Helper()
	o := client.WriteOptions{Fence: token}
	var err error
	switch verb {
	case wire.VerbSet:
		_, err = st.s.Set(st.t.Context(), key, []byte("2"), client.SetOptions{WriteOptions: o})
	case wire.VerbDel:
		_, err = st.s.Del(st.t.Context(), key, o)
	case wire.VerbVDel:
		_, err = st.s.VDel(st.t.Context(), key, []byte("another value"), o)
	}
	if refusal, ok := errors.AsType[*wire.StoreError](err); ok {
		return refusal.Text
	}
	if err != nil {
		st.t.Fatal(err)
	}
	return accepted
}

const accepted = "accepted"

// ask returns the verdict of explain --ask, which must not change the key.
func (st *stage) ask(f facts) format.Explanation {
	st.t.Helper()
	before, err := st.s.Get(st.t.Context(), key)
	if err != nil {
		st.t.Fatal(err)
	}
	f.asked = true
	if err := f.ask(st.t.Context(), st.s); err != nil {
		st.t.Fatal(err)
	}
	if err := f.read(st.t.Context(), st.s); err != nil {
		st.t.Fatal(err)
	}
	after, err := st.s.Get(st.t.Context(), key)
	if err != nil {
		st.t.Fatal(err)
	}
	if before.Found != after.Found || !before.Version.Equal(after.Version) || string(before.Value) != string(after.Value) {
		st.t.Errorf("--ask changed the key: %+v, then %+v", before, after)
	}
	return f.verdict()
}

// TestFutureToken: explain --ask says that the key's token is from the future, and until when. A token that the lock
// issues after that time passes.
func TestFutureToken(t *testing.T) {
	st := newStage(t)
	written := st.write(later(50 * time.Second))
	f := facts{key: key, lock: lock, token: st.hold("a")}
	e := st.ask(f)
	latest := written.Time().Add(time.Minute).Format("15:04:05.000Z")
	if e.Verdict != refused || e.Rule != ruleLower || !strings.Contains(e.Why, "from the future") || !strings.Contains(e.Why, latest) || !strings.Contains(e.Hint, latest) {
		t.Errorf("want the end of the future at %s: %+v", latest, e)
	}
	st.server.FastForward(time.Minute)
	f.token = st.hold("a")
	if e := st.ask(f); e.Verdict != passes {
		t.Errorf("after a minute: %+v", e)
	}
	if got := st.answer(wire.VerbSet, f.token); got != accepted {
		t.Errorf("after a minute the store answers %q", got)
	}
}

// TestEveryRule compares the verdict of explain with the store's reply to the write, for each rule of fencing
// (protocol.md 4).
func TestEveryRule(t *testing.T) {
	none := client.Version{}
	tests := []struct {
		row     int
		what    string
		prepare func(st *stage) client.Version // returns the token for the write
		lock    bool                           // whether --lock is given
		verdict string
		rule    string
		store   string // the store's reply to SET, DEL, and VDEL with another value
	}{
		{1, "a missing key, no token", func(*stage) client.Version { return none }, false, passes, ruleUnfenced, accepted},
		{1, "a key that was never fenced, no token", func(st *stage) client.Version { st.write(none); return none }, false, unknown, "", accepted},
		{2, "a missing key, a token", func(st *stage) client.Version { return st.hold("a") }, true, passes, ruleUnfenced, accepted},
		{3, "a key that was never fenced, a newer token", func(st *stage) client.Version { st.write(none); return st.hold("a") }, false, unknown, "", accepted},
		{3, "a key that was never fenced, an older token", func(st *stage) client.Version { token := st.hold("a"); st.write(none); return token }, false, unknown, "", accepted},
		{4, "a fenced key, no token", func(st *stage) client.Version { st.write(st.hold("a")); return none }, false, unknown, "", wire.TextFenceRequired},
		{4, "a fenced key, no token, its lock", func(st *stage) client.Version { st.write(st.hold("a")); return none }, true, refused, ruleRequired, wire.TextFenceRequired},
		{5, "an older token", func(st *stage) client.Version {
			old := st.hold("a")
			st.release("a")
			st.write(st.hold("b"))
			return old
		}, true, refused, ruleLower, wire.TextFenceLower},
		{5, "an older token, no lock", func(st *stage) client.Version {
			old := st.hold("a")
			st.release("a")
			st.write(st.hold("b"))
			return old
		}, false, unknown, "", wire.TextFenceLower},
		{5, "an older token, and the lock is free", func(st *stage) client.Version {
			old := st.hold("a")
			st.release("a")
			st.write(st.hold("b"))
			st.release("b")
			return old
		}, true, unknown, "", wire.TextFenceLower},
		{5, "an older token, and the lock was renewed since the key was written", func(st *stage) client.Version {
			old := st.hold("a")
			st.release("a")
			st.write(st.hold("b"))
			st.hold("b")
			return old
		}, true, unknown, "", wire.TextFenceLower},
		{6, "an equal token", func(st *stage) client.Version { token := st.hold("a"); st.write(token); return token }, true, passes, ruleEqual, accepted},
		{6, "an equal token, no lock", func(st *stage) client.Version { token := st.hold("a"); st.write(token); return token }, false, unknown, "", accepted},
		{7, "a newer token", func(st *stage) client.Version { st.write(st.hold("a")); return st.hold("a") }, true, unknown, "", accepted},
		{7, "the version of the key, as --force-fence takes it", func(st *stage) client.Version { return st.write(st.hold("a")) }, false, unknown, "", accepted},
		{7, "a token of another lock", func(st *stage) client.Version {
			token := st.hold("a")
			r, err := st.s.Set(st.t.Context(), "another", nil)
			if err != nil {
				st.t.Fatal(err)
			}
			st.write(token)
			return r.Version
		}, true, passes, ruleNewer, accepted},
		{12, "a token of the future", func(st *stage) client.Version { return later(2 * time.Minute) }, false, refused, ruleAhead, wire.TextFenceAhead},
		{12, "a token of the near future", func(st *stage) client.Version { st.write(none); return later(30 * time.Second) }, false, unknown, "", accepted},
		{7, "a token a minute newer than the key", func(st *stage) client.Version {
			st.write(st.hold("a"))
			st.server.FastForward(time.Minute)
			return st.hold("a")
		}, true, passes, ruleNewer, accepted},
		{5, "the key's token is from the future", func(st *stage) client.Version {
			st.write(later(50 * time.Second))
			return st.hold("a")
		}, true, unknown, "", wire.TextFenceLower},
		{5, "the key's token is from the future, no lock", func(st *stage) client.Version {
			st.write(later(50 * time.Second))
			return st.hold("a")
		}, false, unknown, "", wire.TextFenceLower},
		{7, "the key's token was from the future", func(st *stage) client.Version {
			st.write(later(50 * time.Second))
			st.server.FastForward(time.Minute)
			return st.hold("a")
		}, true, passes, ruleNewer, accepted},
		{14, "deleted and created again, no token", func(st *stage) client.Version {
			token := st.hold("a")
			st.write(token)
			if got := st.answer(wire.VerbDel, token); got != accepted {
				st.t.Fatal(got)
			}
			return none
		}, true, passes, ruleUnfenced, accepted},
		{17, "a fenced key that has expired, no token", func(st *stage) client.Version {
			_, err := st.s.Set(st.t.Context(), key, nil, client.SetOptions{TTL: time.Second, WriteOptions: client.WriteOptions{Fence: st.hold("a")}})
			if err != nil {
				st.t.Fatal(err)
			}
			st.server.FastForward(2 * time.Second)
			return none
		}, true, passes, ruleUnfenced, accepted},
	}
	for _, test := range tests {
		// DEL and VDEL are rows 8, 9, 10 and 15.
		for _, verb := range []string{wire.VerbSet, wire.VerbDel, wire.VerbVDel} {
			t.Run(fmt.Sprintf("%d %s %s", test.row, test.what, verb), func(t *testing.T) {
				t.Parallel()
				st := newStage(t)
				f := facts{key: key, token: test.prepare(st)}
				if test.lock {
					f.lock = lock
				}
				if err := f.read(t.Context(), st.s); err != nil {
					t.Fatal(err)
				}
				e := f.verdict()
				if e.Verdict != test.verdict || e.Rule != test.rule {
					t.Errorf("explain says %q by %q (%s), want %q by %q", e.Verdict, e.Rule, e.Why, test.verdict, test.rule)
				}
				if got, want := st.ask(f), test.store == accepted; got.Verdict == passes != want || got.Verdict == unknown {
					t.Errorf("explain --ask says %q (%s), the store answers %q", got.Verdict, got.Why, test.store)
				}
				if got := st.answer(verb, f.token); got != test.store {
					t.Errorf("the store answers %q, want %q", got, test.store)
				}
			})
		}
	}
}

// TestStoreClock: if the store's clock is wrong, every verdict that does not say that it assumes a clock matches the
// store's reply, unless the store refuses the request for its timestamp, whatever the token.
func TestStoreClock(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-time.Hour, -50 * time.Second, -20 * time.Second, 0, 5 * time.Minute} {
		for _, exists := range []bool{false, true} {
			for _, ahead := range []time.Duration{-3 * time.Minute, 0, 20 * time.Second, 50 * time.Second, 2 * time.Minute} {
				server := emulator.Start(t, emulator.Options{Skew: skew})
				s, err := client.Dial(t.Context(), client.Options{Address: server.Addr().String(), Timeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				st := &stage{t, server, s}
				if exists {
					if _, err := server.Set(key, "1"); err != nil {
						t.Fatal(err)
					}
				}
				f := facts{key: key, token: later(ahead)}
				if err := f.read(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				e, got := f.verdict(), st.answer(wire.VerbSet, f.token)
				if e.Verdict != unknown && !e.AssumesClock && got != wire.TextClockAhead && (e.Verdict == passes) != (got == accepted) {
					t.Errorf("skew %v, the key exists: %v, a token %v ahead: explain says %q by %q, the store answers %q", skew, exists, ahead, e.Verdict, e.Rule, got)
				}
				s.Close()
			}
		}
	}
}

// TestMalformedToken: a token that is not an HLC is a usage error, and the store would refuse it (row 13).
func TestMalformedToken(t *testing.T) {
	const text = "1696374425000-0-a"
	if _, err := wire.ParseToken(text); err == nil {
		t.Errorf("%q is a token", text)
	}
	server := emulator.Start(t)
	now := client.Version{Wall: server.Now().UnixMilli(), Node: "n"}
	got := server.Do(emulator.NewRequest("", wire.AppendRequest(nil, wire.VerbSet, key, "1"),
		emulator.Property{Name: wire.PropTimestamp, Value: now.String()}, emulator.Property{Name: wire.PropFence, Value: text}))
	if !strings.Contains(string(got.Payload), wire.TextMalformedTimestamp) {
		t.Errorf("the store answers %q", got.Payload)
	}
}

// TestStoreNeverContradicts: in random histories of a lock and the key that it protects, the store agrees with explain
// if every write carries the newest token of the lock. Otherwise only a verdict that states this assumption may be
// wrong.
func TestStoreNeverContradicts(t *testing.T) {
	st := newStage(t)
	ctx := t.Context()
	counts := make(map[string]int)
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, k := range []string{lock, key} {
			if _, err := st.s.Set(ctx, k, nil, client.SetOptions{WriteOptions: client.WriteOptions{Fence: later(time.Second)}}); err != nil {
				t.Fatal(err)
			}
			if _, err := st.s.Del(ctx, k, client.WriteOptions{Fence: later(2 * time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
		disciplined := seed%2 == 0
		holder, tokens := "", []client.Version{}
		for range 2 + r.IntN(10) {
			switch {
			case holder == "":
				holder = string(rune('a' + r.IntN(3)))
				tokens = append(tokens, st.hold(holder))
			case r.IntN(4) == 0:
				st.release(holder)
				holder = ""
			case r.IntN(3) == 0:
				tokens = append(tokens, st.hold(holder))
			case disciplined:
				st.write(tokens[len(tokens)-1])
			case r.IntN(2) == 0:
				_ = st.answer(wire.VerbSet, client.Version{})
			default:
				_ = st.answer(wire.VerbSet, tokens[r.IntN(len(tokens))])
			}
		}
		f := facts{key: key}
		if r.IntN(4) > 0 {
			f.lock = lock
		}
		if r.IntN(5) > 0 {
			f.token = tokens[r.IntN(len(tokens))]
		}
		if err := f.read(ctx, st.s); err != nil {
			t.Fatal(err)
		}
		e, asked := f.verdict(), st.ask(f)
		got := st.answer(wire.VerbSet, f.token)
		if (asked.Verdict == passes) != (got == accepted) {
			t.Errorf("seed %d: explain --ask says %q by %q, the store answers %q\n%+v", seed, asked.Verdict, asked.Rule, got, f)
		}
		counts[e.Verdict]++
		if !disciplined && e.Assumes || e.Verdict == unknown {
			continue
		}
		if (e.Verdict == passes) != (got == accepted) {
			t.Errorf("seed %d: explain says %q by %q, the store answers %q\n%+v", seed, e.Verdict, e.Rule, got, f)
		}
	}
	for _, verdict := range []string{passes, refused, unknown} {
		if counts[verdict] < 20 {
			t.Errorf("%q was said %d times: the histories are too much alike", verdict, counts[verdict])
		}
	}
}
