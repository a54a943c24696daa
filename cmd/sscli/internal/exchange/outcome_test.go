package exchange

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
)

// TestLostWrites: the rule for a write without a reply. Each case is tried alone and in a window, where several
// writes are lost together and read back within one timeout.
func TestLostWrites(t *testing.T) {
	t.Parallel()
	const applied, notApplied, unknown = "applied", "not applied", "unknown"
	fenced := client.SetOptions{WriteOptions: client.WriteOptions{Fence: client.Version{Wall: 1, Node: "n"}}}
	drop, dropReply := emulator.Action{Drop: true}, emulator.Action{DropReply: true}
	for _, tt := range []struct {
		name    string
		held    string // the value of the key before the write; empty = it is missing
		command client.Command
		action  emulator.Action // of the write
		silent  bool            // the reads that follow get no reply either
		want    string
		says    string
	}{
		{"a SET that came", "", client.Set("k", []byte("v")), dropReply, false, applied, "the key holds this value, perhaps set by another client"},
		{"a SET that did not come, the key is missing", "", client.Set("k", []byte("v")), drop, false, unknown, "the key is missing now"},
		{"a SET that did not come, the key is older", "old", client.Set("k", []byte("v")), drop, false, notApplied, "the write was not applied"},
		{"a SET NX that came", "", client.Set("k", []byte("v"), client.SetOptions{Condition: client.NX}), dropReply, false, unknown, `the key holds "v" since`},
		{"a SET PX that came", "", client.Set("k", []byte("v"), client.SetOptions{TTL: time.Hour}), dropReply, false, unknown, `the key holds "v" since`},
		{"a SET with a token that came", "", client.Set("k", []byte("v"), fenced), dropReply, false, unknown, `the key holds "v" since`},
		{"a DEL that came", "old", client.Del("k"), dropReply, false, applied, "the key is gone, perhaps deleted by another client"},
		{"a DEL that did not come", "old", client.Del("k"), drop, false, unknown, `the key holds "old" since`},
		{"a VDEL that came", "old", client.VDel("k", []byte("old")), dropReply, false, unknown, "the key is missing now"},
		{"an unknown verb", "old", client.Call([]string{"MSET", "k", "v"}), drop, false, unknown, "what the request does is not known"},
		{"the key cannot be read back", "old", client.Set("k", []byte("v")), drop, true, unknown, "the key could not be read back within another"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := emulator.Start(t, emulator.Options{InProcess: true})
				s, err := client.Dial(t.Context(), client.Options{Address: "store", Dial: server.Dial})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				check := func(where string, o Outcome) {
					t.Helper()
					got, says := applied, o.Warning
					switch {
					case fault.IsA[*fault.UnknownError](o.Err):
						got, says = unknown, o.Err.Error()
					case fault.IsA[*fault.NotAppliedError](o.Err):
						got, says = notApplied, o.Err.Error()
					case o.Err != nil:
						got = o.Err.Error()
					}
					if got != tt.want || !strings.Contains(says, tt.says) {
						t.Errorf("%s: %s: %q, want %s: %q", where, got, says, tt.want, tt.says)
					}
				}
				begin := func() {
					server.Intercept(nil)
					server.Delete("k")
					if tt.held != "" {
						if _, err := server.Set("k", tt.held); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(time.Second) // the store's clock ticks
					server.Intercept(func(r emulator.Request) emulator.Action {
						switch {
						case r.Verb() == tt.command.Verb():
							return tt.action
						case r.Verb() == "GET" && r.Key() == "k" && tt.silent:
							return drop
						}
						return emulator.Action{}
					})
				}
				store := Over(s)
				begin()
				check("alone", store.Do(t.Context(), tt.command, func(ctx context.Context) (client.Result, error) { return s.Do(ctx, tt.command) }))

				begin()
				var outcomes []Outcome
				w := NewWindow(store, Options{Limit: 4}, func(_ string, o Outcome) error {
					outcomes = append(outcomes, o)
					return nil
				})
				began := time.Now()
				for _, c := range []client.Command{client.Get("before"), tt.command, client.Set("other", []byte("1"), client.SetOptions{Condition: client.NEX}), client.Get("after")} {
					if err := w.Add(t.Context(), c.Key(), &c); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Finish(t.Context(), nil); err != nil || len(outcomes) != 4 {
					t.Fatalf("%d outcomes, %v", len(outcomes), err)
				}
				check("in a window", outcomes[1])
				if took := time.Since(began); outcomes[0].Err != nil || outcomes[3].Err != nil || took > 3*client.DefaultTimeout {
					t.Errorf("neighbours: %v, %v; after %v", outcomes[0].Err, outcomes[3].Err, took)
				}
			})
		})
	}
}

// TestNothingAfterLoss: after a write without a reply, or a request that could not be sent, a window sends nothing more
// until its outcome was passed on. With Options.Ends, it returns the error of one that could not be sent because of the
// connection.
func TestNothingAfterLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := emulator.Start(t, emulator.Options{InProcess: true})
		s, err := client.Dial(t.Context(), client.Options{Address: "store", Dial: server.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		lost, invalid := false, 0
		server.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{Drop: r.Key() == "lost"} })
		w := NewWindow(Over(s), Options{Limit: 8, Ends: true}, func(key string, o Outcome) error {
			lost = lost || fault.IsA[*fault.UnknownError](o.Err)
			if fault.IsA[*client.InvalidError](o.Err) {
				invalid++
			}
			if key == "closed" {
				t.Errorf("passed on: %v", o.Err)
			}
			return nil
		})
		set := func(key string) error {
			return w.Add(t.Context(), key, new(client.Set(key, []byte("v"))))
		}
		if err := set("lost"); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		<-w.Ready()
		if w.Room() {
			t.Error("there is room after a loss")
		}
		if err := set("next"); err != nil || !lost {
			t.Errorf("the next write was sent before the outcome of the lost one was known: %v", err)
		}
		if err := w.Add(t.Context(), "", new(client.Del(""))); err != nil || w.Room() {
			t.Errorf("there is room before the outcome of an invalid request was passed on: %v", err)
		}
		s.Close()
		if err := w.Finish(t.Context(), set("closed")); !errors.Is(err, client.ErrClosed) || invalid != 1 {
			t.Errorf("after the end of the session: %v; %d invalid requests, want 1", err, invalid)
		}
	})
}
