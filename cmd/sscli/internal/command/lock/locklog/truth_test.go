package locklog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/pipenet"
)

// A stage is a store in virtual time, and a trace of the lock build.
type stage struct {
	t        *testing.T
	server   *emulator.Server
	listener *pipenet.Listener
	said     []format.LockEvent
}

func (st *stage) dial() *client.Session {
	s, err := client.Dial(st.t.Context(), client.Options{Dial: st.listener.Dial})
	if err != nil {
		st.t.Fatal(err)
	}
	return s
}

// play runs a script while the lock is traced.
func play(t *testing.T, o Options, variants emulator.Variants, script func(st *stage)) (said []format.LockEvent, changes []emulator.Change) {
	t.Helper()
	listener := pipenet.Listen()
	server, err := emulator.New(emulator.Options{Listener: listener, Variants: variants, Changes: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	st := &stage{t: t, server: server, listener: listener}
	s := st.dial()
	defer s.Close()
	w, err := s.Watch(t.Context(), []string{"build"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h := New(o)
	var tracing sync.WaitGroup
	tracing.Go(func() {
		for e, err := range w.Events(ctx) {
			if err != nil {
				return
			}
			if s, ok := h.See(e); ok {
				st.said = append(st.said, s)
			}
		}
	})
	script(st)
	time.Sleep(10 * time.Minute) // all remaining leases expire
	synctest.Wait()
	stop()
	tracing.Wait()
	return st.said, server.Changes()
}

// hold holds the lock for d, as lock run does, and then calls ends.
func (st *stage) hold(holder string, ttl, d time.Duration, ends func(*client.Session, *client.Lock)) {
	s := st.dial()
	l, err := s.Lock(st.t.Context(), "build", client.LockOptions{Holder: []byte(holder), TTL: ttl})
	if err != nil {
		st.t.Error(err)
		return
	}
	time.Sleep(d)
	ends(s, l)
}

// releases and crashes are the ways in which a hold ends.
func (st *stage) releases(s *client.Session, l *client.Lock) {
	if err := l.Release(st.t.Context()); err != nil {
		st.t.Error(err)
	}
	_ = s.Close()
}

func (st *stage) crashes(s *client.Session, _ *client.Lock) { _ = s.Close() }

// truth returns what really happened in each change, in the words of the statements.
func truth(changes []emulator.Change) (words []string) {
	holder, held, expired := "", false, false
	for _, c := range changes {
		word := ""
		switch {
		case c.Cause == "expired":
			word = Expired
		case c.Cause == "del" || c.Cause == "vdel":
			word = Released
		case !held && expired && string(c.Value) != holder:
			word = TakenOver
		case !held:
			word = Acquired
		case string(c.Value) == holder:
			word = Renewed
		default:
			word = ChangedHands
		}
		words = append(words, word)
		held, expired = word != Expired && word != Released, word == Expired
		if held {
			holder = string(c.Value)
		}
	}
	return words
}

// compare compares statements with what really happened. It returns how many inferences were right and wrong, and how
// many deletions were left undecided.
func compare(t *testing.T, said []format.LockEvent, changes []emulator.Change) (right, wrong, open int) {
	t.Helper()
	words := truth(changes)
	said = said[1:] // the initial state of the lock
	if len(said) != len(words) {
		t.Fatalf("%d statements about %d changes: %v", len(said), len(words), words)
	}
	for i, s := range said {
		c := changes[i]
		if string(c.Value) != s.Holder || s.Token.String() != c.Version.String() {
			t.Errorf("change %d: said %s by %q with %v, the store had %q with %v", i, s.What, s.Holder, s.Token, c.Value, c.Version)
		}
		switch {
		case s.What == words[i] && s.Inferred:
			right++
		case s.What == words[i]:
		case s.Inferred:
			wrong++
		case s.What == Deleted && (words[i] == Released || words[i] == Expired):
			open++
		case s.What == Acquired && words[i] == TakenOver: // the deletion before it was left undecided
			open++
		default:
			t.Errorf("change %d: said %s as a fact, it was %s (%s)", i, s.What, words[i], c.Cause)
		}
	}
	return right, wrong, open
}

// TestTruthAboutHolders: if holders renew like client.Lock, every end of a hold is inferred correctly once a renewal
// interval was seen.
func TestTruthAboutHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		said, changes := play(t, Options{}, emulator.Variants{}, func(st *stage) {
			for i, ttl := range []time.Duration{15 * time.Second, time.Second, time.Minute, 5 * time.Minute} {
				o := client.LockOptions{TTL: ttl}
				timing, err := o.Timing()
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range []float64{1.01, 1.5, 1.99, 2.5, 7.3} {
					held := time.Duration(part * float64(timing.Interval))
					st.hold(fmt.Sprintf("releases-%d", i), ttl, held, st.releases)
					st.hold(fmt.Sprintf("crashes-%d", i), ttl, held, st.crashes)
					n += 2
				}
			}
		})
		right, wrong, open := compare(t, said, changes)
		// Each crash but the last one is followed by a take-over.
		if takeovers := n / 2; right != n+takeovers-1 || wrong != 0 || open != 0 {
			t.Errorf("of %d ends and %d take-overs %d were inferred rightly, %d wrongly, %d left open", n, takeovers-1, right, wrong, open)
		}
	})
}

// TestTruthWithLease: if the length of the lease is known, every end is inferred correctly, even if nobody renews.
func TestTruthWithLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		said, changes := play(t, Options{Lease: ttl}, emulator.Variants{SilentRenewal: true}, func(st *stage) {
			s := st.dial()
			defer s.Close()
			for _, held := range []time.Duration{time.Millisecond, 3 * time.Second, 9 * time.Second, 0} {
				if _, err := s.AcquireLock(t.Context(), "build", client.LockOptions{Holder: []byte(held.String()), TTL: ttl}); err != nil {
					t.Fatal(err)
				}
				if held == 0 {
					continue // the lease expires
				}
				time.Sleep(held)
				if err := s.ReleaseLock(t.Context(), "build", []byte(held.String())); err != nil {
					t.Fatal(err)
				}
			}
		})
		if right, wrong, open := compare(t, said, changes); right != 4 || wrong != 0 || open != 0 {
			t.Errorf("%d inferences were right, %d wrong, %d ends left open; want 4, 0, 0", right, wrong, open)
		}
	})
}

// TestTruthInRandomHistories: in random histories, with holders that crash, release late or never renew, and operators
// that overwrite or delete the lock, every statement of fact is right. An inference may be wrong.
func TestTruthInRandomHistories(t *testing.T) {
	right, wrong, open := 0, 0, 0
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			said, changes := play(t, Options{}, emulator.Variants{}, func(st *stage) {
				operator := st.dial()
				defer operator.Close()
				for range 12 {
					ttl := time.Duration(1+r.IntN(20)) * time.Second
					d := time.Duration(r.Int64N(int64(2 * ttl)))
					holder := string(rune('a' + r.IntN(3)))
					switch r.IntN(6) {
					case 0, 1:
						st.hold(holder, ttl, d, st.releases)
					case 2, 3:
						st.hold(holder, ttl, d, st.crashes)
					case 4: // the holder never renews
						if _, err := operator.AcquireLock(t.Context(), "build", client.LockOptions{Holder: []byte(holder), TTL: ttl}); err != nil {
							t.Fatal(err)
						}
						time.Sleep(d / 2)
					default:
						st.hold(holder, ttl, d, func(s *client.Session, l *client.Lock) {
							if r.IntN(2) == 0 {
								_, _ = operator.Set(t.Context(), "build", []byte("operator"), client.SetOptions{TTL: ttl})
							} else {
								_, _ = operator.Del(t.Context(), "build")
							}
							_ = l.Release(t.Context()) // the lock may be lost
							_ = s.Close()
						})
					}
				}
			})
			a, b, c := compare(t, said, changes)
			right, wrong, open = right+a, wrong+b, open+c
		})
	}
	t.Logf("inferences: %d right, %d wrong; %d left open", right, wrong, open)
	if right < 200 || wrong > right/10 || open < 20 {
		t.Errorf("inferences: %d right, %d wrong; %d left open", right, wrong, open)
	}
}
