package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

func TestReadBack(t *testing.T) {
	t.Parallel()
	sent := wire.Version{Wall: 1696374425000, Counter: 5, Node: "m"}
	older := "1696374425000:4:StateStore"
	equal := "1696374425000:5:m"
	newer := "1696374425000:5:n"
	o := client.WriteOptions{}
	set := func(o client.SetOptions) client.Command { return client.Set("k", []byte("v"), o) }
	fence := client.WriteOptions{Fence: sent}
	del, vdel := client.Del("k", o), client.VDel("k", []byte("v"), o)
	plain, nex := set(client.SetOptions{}), set(client.SetOptions{Condition: client.NEX, TTL: time.Minute})
	const missing = "missing"
	for _, test := range []struct {
		name       string
		c          client.Command
		value      string // value of the key, or missing
		version    string // empty = the reply has no version
		want       client.Outcome
		unanswered bool // the read got no reply
	}{
		{"SET, newer and equal", plain, "v", newer, client.Fulfilled, false},
		{"SET, newer and different", plain, "w", newer, client.OutcomeUnknown, false},
		{"SET, older and equal", plain, "v", older, client.NotApplied, false},
		{"SET, older and different", plain, "w", older, client.NotApplied, false},
		{"SET, our own timestamp", plain, "v", equal, client.NotApplied, false},
		{"SET, missing", plain, missing, "", client.OutcomeUnknown, false},
		{"SET, no version", plain, "v", "", client.OutcomeUnknown, false},
		{"SET NX, newer and equal", set(client.SetOptions{Condition: client.NX}), "v", newer, client.OutcomeUnknown, false},
		{"SET NEX, newer and equal", set(client.SetOptions{Condition: client.NEX}), "v", newer, client.OutcomeUnknown, false},
		{"SET PX, newer and equal", set(client.SetOptions{TTL: time.Minute}), "v", newer, client.OutcomeUnknown, false},
		{"SET with a fence, newer and equal", set(client.SetOptions{WriteOptions: fence}), "v", newer, client.OutcomeUnknown, false},
		{"SET to be kept, newer and equal", set(client.SetOptions{Persist: true}), "v", newer, client.OutcomeUnknown, false},
		{"SET NEX PX, newer and equal", nex, "v", newer, client.OutcomeUnknown, false},
		{"SET NEX PX, older and equal", nex, "v", older, client.NotApplied, false},
		{"DEL, missing", del, missing, "", client.Fulfilled, false},
		{"DEL with a fence, missing", client.Del("k", fence), missing, "", client.OutcomeUnknown, false}, // the store may have refused the request, and another client deleted the key
		{"DEL, older", del, "v", older, client.OutcomeUnknown, false},                                    // another client may have written the key again
		{"DEL, newer", del, "v", newer, client.OutcomeUnknown, false},
		{"DEL, no version", del, "v", "", client.OutcomeUnknown, false},
		{"VDEL, missing", vdel, missing, "", client.OutcomeUnknown, false},
		{"VDEL, older and equal", vdel, "v", older, client.OutcomeUnknown, false},
		{"VDEL, older and different", vdel, "w", older, client.OutcomeUnknown, false},
		{"VDEL, newer", vdel, "v", newer, client.OutcomeUnknown, false},
		{"call SET, newer and equal", client.Call([]string{"SET", "k", "v"}, o), "v", newer, client.Fulfilled, false},
		{"call SET NX, newer and equal", client.Call([]string{"SET", "k", "v", "NX"}, o), "v", newer, client.OutcomeUnknown, false},
		{"call SET with a fence, newer and equal", client.Call([]string{"SET", "k", "v"}, fence), "v", newer, client.OutcomeUnknown, false},
		{"call SET, older", client.Call([]string{"SET", "k", "v"}, o), "v", older, client.NotApplied, false},
		{"call DEL, missing", client.Call([]string{"DEL", "k"}, o), missing, "", client.Fulfilled, false},
		{"call VDEL, missing", client.Call([]string{"VDEL", "k", "v"}, o), missing, "", client.OutcomeUnknown, false},
		{"call VDEL, older", client.Call([]string{"VDEL", "k", "v"}, o), "v", older, client.OutcomeUnknown, false},
		{"call, unknown verb", client.Call([]string{"INCR", "k"}, o), "v", older, client.OutcomeUnknown, true},
		{"call, lower case", client.Call([]string{"set", "k", "v"}, o), "v", newer, client.OutcomeUnknown, true},
		{"call SET without value", client.Call([]string{"SET", "k"}, o), "v", newer, client.OutcomeUnknown, true},
		{"call DEL without key", client.Call([]string{"DEL"}, o), "v", newer, client.OutcomeUnknown, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			store, s := open(t)
			if test.value != missing {
				must(store.Set("k", test.value))(t)
			}
			store.Intercept(always(emulator.Action{Rewrite: func(a *emulator.Answer) {
				a.Delete("__ts")
				if test.version != "" {
					a.Set("__ts", test.version)
				}
			}}))
			lost := &client.LostReplyError{Command: test.c, Timestamp: sent, Expires: time.Now()}
			r, err := s.ReadBack(t.Context(), lost)
			if err != nil || r.Outcome != test.want {
				t.Errorf("got %d, %v, want %d", r.Outcome, err, test.want)
			}
			if !test.unanswered && r.Now.Found != (test.value != missing) || r.Now.Found && string(r.Now.Value) != test.value {
				t.Errorf("read %q, %t", r.Now.Value, r.Now.Found)
			}
			again, err := readBack(t.Context(), client.Options{Address: store.Addr().String(), NoPipelining: true, Timeout: time.Minute}, lost) // with pipelining, a slow machine asks twice
			if err != nil || again.Outcome != test.want {
				t.Errorf("on a new connection: got %d, %v, want %d", again.Outcome, err, test.want)
			}
			wantRequests := 2
			if test.unanswered {
				wantRequests = 0
			}
			if n := store.State().Requests; n != wantRequests {
				t.Errorf("%d requests, want %d", n, wantRequests)
			}
		})
	}
}

// TestReadBackWaits: a SET whose reply is lost is read back after its expiry, on the same connection and on a
// new one. It is written at most once. The test runs in real time.
func TestReadBackWaits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		a    emulator.Action
		want client.Outcome
	}{
		"applied":                 {emulator.Action{DropReply: true}, client.Fulfilled},
		"applied, connection cut": {emulator.Action{CutAfter: true}, client.Fulfilled},
		"dropped":                 {emulator.Action{Drop: true}, client.NotApplied},
		"connection cut before":   {emulator.Action{Cut: true}, client.NotApplied},
		// The broker delays the request past its expiry, then drops it.
		"expired": {emulator.Action{Delay: time.Minute}, client.NotApplied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, client.Options{}, func(t *testing.T, store *emulator.Server, s *client.Session) {
				must(store.Set("k", "before"))(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				must(s.Get(ctx, "k"))(t) // moves our clock past that version
				var sets atomic.Int32
				var read []time.Time // times of the reads, on one connection after the other
				store.Intercept(func(r emulator.Request) emulator.Action {
					if r.Verb() == wire.VerbGet {
						read = append(read, time.Now())
						return emulator.Action{}
					}
					sets.Add(1)
					return test.a
				})
				_, err := s.Set(t.Context(), "k", []byte("v"))
				lost := as[*client.LostReplyError](t, err)
				r, err := s.ReadBack(ctx, lost)
				if err != nil || r.Outcome != test.want {
					t.Errorf("got %d, %v, want %d", r.Outcome, err, test.want)
				}
				r, err = readBack(ctx, client.Options{Address: "store", Dial: store.Dial}, lost)
				if err != nil || r.Outcome != test.want {
					t.Errorf("on a new connection: got %d, %v, want %d", r.Outcome, err, test.want)
				}
				if len(read) != 2 || read[0].Before(lost.Expires) {
					t.Errorf("it was read at %v, the expiry is %v", read, lost.Expires)
				}
				if n := sets.Load(); n != 1 {
					t.Errorf("%d SETs, want 1", n)
				}
			})
		})
	}
}

// TestExpiryCountsFromTheArrival: the broker counts the expiry from the request's arrival, not from its
// delivery.
func TestExpiryCountsFromTheArrival(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	s := dial(t, store, client.Options{Timeout: time.Minute})
	arrived, goOn := make(chan struct{}), make(chan struct{})
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() == wire.VerbGet {
			return emulator.Action{}
		}
		close(arrived)
		<-goOn // blocks the reader of this connection
		return emulator.Action{Drop: true}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := must(s.Pipeline(1).Send(ctx, client.Set("k", "")))(t)
	<-arrived
	taken := time.Now()
	close(goOn)
	must(s.Get(t.Context(), "l"))(t) // its reply comes after the PUBACK of the SET
	cancel()
	_, err := f.Wait(context.Background())
	if lost := as[*client.LostReplyError](t, err); lost.Expires.Before(taken.Add(time.Minute)) {
		t.Errorf("it expires %v too early", taken.Add(time.Minute).Sub(lost.Expires))
	}
}

// TestReadBackConnectsLate: the new connection is opened after the wait.
func TestReadBackConnectsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		lost := &client.LostReplyError{Command: client.Del("k"), Expires: start.Add(5 * time.Second)}
		r, err := readBack(t.Context(), client.Options{Address: "127.0.0.1:1"}, lost)
		if as[*mqtt.DialError](t, err); r.Outcome != client.OutcomeUnknown || time.Since(start) != 5*time.Second {
			t.Errorf("got %d, %v after %v", r.Outcome, err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		lost.Expires = time.Now().Add(5 * time.Second)
		if _, err := readBack(ctx, client.Options{Address: "127.0.0.1:1"}, lost); err != context.DeadlineExceeded {
			t.Error(err)
		}
		unknown := &client.LostReplyError{Command: client.Call([]string{"NEW"}), Expires: time.Now().Add(time.Hour)}
		start = time.Now()
		if r, err := readBack(t.Context(), client.Options{Address: "127.0.0.1:1"}, unknown); err != nil || r.Outcome != client.OutcomeUnknown || time.Since(start) > 0 {
			t.Errorf("got %d, %v after %v", r.Outcome, err, time.Since(start))
		}
	})
}

// TestReadBackUnreadable: if the key cannot be read, ReadBack returns an error and the outcome stays unknown.
func TestReadBackUnreadable(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.Method != emulator.Read })})
	s := dial(t, store, client.Options{})
	lost := &client.LostReplyError{Command: client.Set("k", ""), Err: errors.New("lost")}
	r, err := s.ReadBack(t.Context(), lost)
	if e := as[*wire.StoreError](t, err); e.Kind() != wire.ErrorNotAuthorized || r.Outcome != client.OutcomeUnknown {
		t.Errorf("got %d, %v", r.Outcome, err)
	}
}

// TestSilentConnection: a request that times out on a silent connection closes the connection, and the next
// request opens a new one. A PUBACK shows that the connection is alive.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		puback bool
		again  int32 // connections after the first
	}{"silent": {false, 1}, "acknowledged": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// shorter than the interval between two PINGREQs, whose answer would show that the broker lives
			virtual(t, client.Options{Timeout: 200 * time.Millisecond}, func(t *testing.T, store *emulator.Server, s *client.Session) {
				var again, requests atomic.Int32
				store.RefuseConnect(func(string, string) byte {
					again.Add(1)
					return 0
				})
				store.Intercept(func(emulator.Request) emulator.Action {
					return emulator.Action{Drop: requests.Add(1) <= 2, NoPuback: !c.puback && again.Load() == 0}
				})
				time.Sleep(time.Millisecond) // what has arrived until now arrived before the requests
				f := must(s.Pipeline(2).Send(t.Context(), client.Get("a")))(t)
				if _, err := s.Get(t.Context(), "b"); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, client.ErrSilent) {
					t.Error(err)
				}
				if _, err := f.Wait(context.Background()); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, client.ErrSilent) {
					t.Error(err)
				}
				must(s.Get(t.Context(), "c"))(t)
				if n := again.Load(); n != c.again {
					t.Errorf("%d more connections, want %d", n, c.again)
				}
			})
		})
	}
}

// TestReadBackAsksAgain: a read whose reply is lost too is sent again within ReadBack's time.
func TestReadBackAsksAgain(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]emulator.Action{"lost": {DropReply: true}, "cut": {Cut: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, client.Options{}, func(t *testing.T, store *emulator.Server, s *client.Session) {
				must(store.Set("k", "v"))(t)
				var reads atomic.Int32
				store.Intercept(func(emulator.Request) (a emulator.Action) {
					if reads.Add(1) == 1 {
						a = action
					}
					return a
				})
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				lost := &client.LostReplyError{Command: client.Set("k", []byte("v")), Err: errors.New("lost")}
				if r, err := s.ReadBack(ctx, lost); err != nil || r.Outcome != client.Fulfilled || reads.Load() != 2 {
					t.Errorf("got %d, %v after %d reads", r.Outcome, err, reads.Load())
				}
			})
		})
	}
}
