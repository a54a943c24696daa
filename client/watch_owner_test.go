package client

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// within runs f, fails unless f returns within d, and returns f's error.
func within(t *testing.T, d time.Duration, what string, f func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	begin := time.Now()
	err := f(ctx)
	if took := time.Since(begin); took > d {
		t.Errorf("%s took %v, its context had %v", what, took, d)
	}
	return err
}

// dropping returns an Intercept function that drops the requests with one of verbs while on is true.
func dropping(on *atomic.Bool, verbs ...string) func(emulator.Request) emulator.Action {
	return func(r emulator.Request) emulator.Action {
		for _, verb := range verbs {
			if on.Load() && r.Verb() == verb {
				return emulator.Action{Drop: true}
			}
		}
		return emulator.Action{}
	}
}

// TestWatchCallsEndWithTheirContexts: while an audit of one watch gets no reply, calls for other watches
// still end with their contexts.
func TestWatchCallsEndWithTheirContexts(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		var silent atomic.Bool
		store.Intercept(dropping(&silent, wire.VerbKeyNotify, wire.VerbGet))
		audited := startWatch(t, s, WatchOptions{Audit: time.Second}, "a")
		other := startWatch(t, s, WatchOptions{}, "b")
		silent.Store(true)
		time.Sleep(1500 * time.Millisecond) // the audit has begun
		_ = within(t, 300*time.Millisecond, "Close", other.close)
		_ = within(t, closeTimeout, "Close", func(context.Context) error { return audited.Close() })
		err := within(t, 300*time.Millisecond, "Watch", func(ctx context.Context) error {
			_, err := s.Watch(ctx, []string{"c"})
			return err
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Watch: %v", err)
		}
		// Without a deadline, the call has the session's timeout.
		begin := time.Now()
		if _, err := s.Watch(context.Background(), []string{"c"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > s.o.Timeout {
			t.Errorf("Watch ended after %v with %v", time.Since(begin), err)
		}
	})
}

// TestWatchCallsEndWithTheirContextsInAnOutage: in an outage, Watch and Close end with their contexts too.
func TestWatchCallsEndWithTheirContextsInAnOutage(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		w := startWatch(t, s, WatchOptions{Audit: time.Second}, "a")
		var refusing atomic.Bool
		refusing.Store(true)
		store.RefuseConnect(func(string, string) byte {
			if refusing.Load() {
				return mqtt.ReasonServerBusy
			}
			return 0
		})
		store.DropAll()
		time.Sleep(5 * time.Second)
		for range 5 {
			if err := within(t, 300*time.Millisecond, "Watch", func(ctx context.Context) error {
				_, err := s.Watch(ctx, []string{"b"})
				return err
			}); err == nil {
				t.Error("a watch began without a connection")
			}
		}
		refusing.Store(false)
		later := startWatch(t, s, WatchOptions{}, "b")
		wantEvents(t, later, "initial b")
		if err := within(t, 300*time.Millisecond, "Close", w.close); err != nil {
			t.Error(err)
		}
	})
}

// TestWatchOfAKeyThatIsRefusedAfterABreak: a refusal ends the watches of one key, and of no other.
func TestWatchOfAKeyThatIsRefusedAfterABreak(t *testing.T) {
	t.Parallel()
	var closed atomic.Bool
	policy := emulator.PolicyFunc(func(a emulator.Access) bool { return !closed.Load() || a.On != "b" })
	locked(t, emulator.Options{Policy: policy}, func(t *testing.T, store *virtualStore, s *Session) {
		both := startWatch(t, s, WatchOptions{}, "a", "b")
		only := startWatch(t, s, WatchOptions{}, "b")
		other := startWatch(t, s, WatchOptions{}, "c")
		wantEvents(t, both, "initial a", "initial b")
		wantEvents(t, only, "initial b")
		wantEvents(t, other, "initial c")
		closed.Store(true)
		store.DropAll()
		wantEvents(t, other, "down", "gap c unknown", "resync c unknown", "up")
		events := wantEvents(t, both, "down", "error b", "gap a unknown", "resync a unknown", "up")
		if refused, ok := errors.AsType[*wire.StoreError](events[1].Err); !ok || refused.Kind() != wire.ErrorNotAuthorized {
			t.Errorf("the event says %v", events[1].Err)
		}
		wantEvents(t, only, "down")
		_, err := only.Next(t.Context())
		if refused, ok := errors.AsType[*wire.StoreError](err); !ok || refused.Kind() != wire.ErrorNotAuthorized {
			t.Errorf("the watch of that key alone ended with %v", err)
		}
		closed.Store(false)
		write(t, store.Server, "SET", "b", "1")
		write(t, store.Server, "SET", "a", "1")
		wantEvents(t, both, `set a "1"`)
	})
}

// TestWatchOfAKeyThatIsRefusedInAnAudit: a key that is refused in an audit does not affect other keys.
func TestWatchOfAKeyThatIsRefusedInAnAudit(t *testing.T) {
	t.Parallel()
	var closed atomic.Bool
	policy := emulator.PolicyFunc(func(a emulator.Access) bool { return !closed.Load() || a.On != "b" })
	locked(t, emulator.Options{Policy: policy}, func(t *testing.T, store *virtualStore, s *Session) {
		w := startWatch(t, s, WatchOptions{Audit: time.Second}, "a", "b")
		wantEvents(t, w, "initial a", "initial b")
		closed.Store(true)
		wantEvents(t, w, "error b")
		write(t, store.Server, "SET", "a", "1")
		wantEvents(t, w, `set a "1"`)
	})
}

// TestAuditGapBeginsWithTheLastProof: the gap of an audit begins with the last audit that found the known
// state.
func TestAuditGapBeginsWithTheLastProof(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		const every = 25 * time.Second // longer than the timeout of a request
		begin := time.Now()
		w := startWatch(t, s, WatchOptions{Audit: every}, "k")
		wantEvents(t, w, "initial k")
		var silent atomic.Bool
		store.Intercept(dropping(&silent, wire.VerbGet))
		time.Sleep(3*every + every/2) // three audits found the known state
		// The registration is lost without a broken connection, and the key changes.
		store.Do(emulator.NewRequest(s.ClientID(), wire.AppendRequest(nil, wire.VerbKeyNotify, "k", wire.OptionStop)))
		write(t, store.Server, "SET", "k", "1")
		silent.Store(true) // two audits get no reply
		time.Sleep(2 * every)
		silent.Store(false)
		var gap Event
		for gap.Kind != EventGap {
			var err error
			if gap, err = w.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if from := gap.From.Sub(begin); from != 3*every {
			t.Errorf("the gap begins at %v, want %v", from, 3*every)
		}
	})
}

// TestGapOfAnIdleWatch: the gap of a watch without events begins with one of the last pings, not with the
// watch.
func TestGapOfAnIdleWatch(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		w := startWatch(t, s, WatchOptions{}, "k")
		wantEvents(t, w, "initial k")
		time.Sleep(time.Hour)
		store.DropAll()
		gap := wantEvents(t, w, "down", "gap k unknown", "resync k unknown", "up")[1]
		if early := gap.To.Sub(gap.From); early < mqtt.DefaultKeepAlive/2 || early > 2*mqtt.DefaultKeepAlive {
			t.Errorf("the gap begins %v before its end", early)
		}
	})
}

// TestAuditWithoutAnAnswer: each audit that fails is reported.
func TestAuditWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		w := startWatch(t, s, WatchOptions{Audit: time.Minute}, "k", "l")
		wantEvents(t, w, "initial k", "initial l")
		var silent atomic.Bool
		store.Intercept(dropping(&silent, wire.VerbGet))
		silent.Store(true)
		for range 15 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			e, err := w.Next(ctx)
			cancel()
			if err != nil {
				t.Fatalf("two minutes without an audit and without a word: %v", err)
			}
			if e.Kind != "unaudited" || !errors.Is(e.Err, context.DeadlineExceeded) {
				t.Fatalf("got %s, %v; want unaudited", told(e), e.Err)
			}
		}
		silent.Store(false)
		write(t, store.Server, "SET", "k", "1")
		wantEvents(t, w, `set k "1"`)
	})
}

// TestAuditOnASilentConnection: an audit that times out on a silent connection closes the connection long
// before the keep-alive would.
func TestAuditOnASilentConnection(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		w := startWatch(t, s, WatchOptions{Audit: time.Second}, "k")
		wantEvents(t, w, "initial k")
		var connected atomic.Bool
		store.RefuseConnect(func(string, string) byte {
			connected.Store(true)
			return 0
		})
		store.Intercept(func(emulator.Request) emulator.Action {
			silent := !connected.Load()
			return emulator.Action{Drop: silent, NoPuback: silent}
		})
		begin := time.Now()
		e := next(t, w)
		for e.Kind == EventUnaudited && time.Since(begin) < time.Minute {
			e = next(t, w)
		}
		if e.Kind != EventDown || !errors.Is(e.Err, ErrSilent) {
			t.Errorf("got %s, %v; want down, %v", told(e), e.Err, ErrSilent)
		}
		if took := time.Since(begin); took > s.o.Timeout+2*time.Second {
			t.Errorf("the connection ended after %v", took)
		}
		for e.Kind != EventUp {
			e = next(t, w)
		}
	})
}

// TestStoreSilentAfterABreak: if the store does not answer on a new connection that works, the watch closes the
// connection and comes back over another one.
func TestStoreSilentAfterABreak(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{wire.VerbKeyNotify, wire.VerbGet} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
				put(t, store.Server, "k", "1")
				w := startWatch(t, s, WatchOptions{}, "k")
				wantEvents(t, w, `initial k "1"`)
				var connected atomic.Int32
				var trouble error
				store.RefuseConnect(func(string, string) byte {
					if connected.Add(1) == 2 {
						trouble = w.Trouble()
					}
					return 0
				})
				store.Intercept(func(r emulator.Request) emulator.Action {
					return emulator.Action{Drop: r.Verb() == verb && connected.Load() == 1}
				})
				store.DropAll()
				wantEvents(t, w, "down", `resync k "1" proven`, "up")
				if n := connected.Load(); n != 2 {
					t.Errorf("connected %d times, want twice", n)
				}
				if !isA[*WatchError](trouble) || !errors.Is(trouble, context.DeadlineExceeded) {
					t.Errorf("the connection was closed because of %v", trouble)
				}
				put(t, store.Server, "k", "2")
				wantEvents(t, w, `set k "2"`)
			})
		})
	}
}

// TestAuditInAnOutage: in an outage there are no audits, and each missed one is reported.
func TestAuditInAnOutage(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		w := startWatch(t, s, WatchOptions{Audit: time.Minute}, "k")
		wantEvents(t, w, "initial k")
		store.RefuseConnect(func(string, string) byte { return mqtt.ReasonServerBusy })
		store.DropAll()
		wantEvents(t, w, "down")
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			e, err := w.Next(ctx)
			cancel()
			if err != nil || e.Kind != "unaudited" || e.Err == nil {
				t.Fatalf("got %s, %v; want unaudited", told(e), err)
			}
		}
		store.RefuseConnect(nil)
		for e := next(t, w); e.Kind != EventUp; e = next(t, w) {
			if e.Kind != EventGap && e.Kind != EventResync && e.Kind != "unaudited" {
				t.Errorf("got %s", told(e))
			}
		}
	})
}

// TestWatchRetryForEndsOnTime: the pause between two attempts does not exceed RetryFor.
func TestWatchRetryForEndsOnTime(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		const patience = 3500 * time.Millisecond
		short := startWatch(t, s, WatchOptions{RetryFor: patience}, "k")
		long := startWatch(t, s, WatchOptions{RetryFor: 2 * patience}, "k")
		wantEvents(t, short, "initial k")
		wantEvents(t, long, "initial k")
		store.RefuseConnect(func(string, string) byte { return mqtt.ReasonServerBusy })
		begin := time.Now()
		store.DropAll()
		for i, w := range []*Watch{short, long} {
			want := time.Duration(i+1) * patience
			wantEvents(t, w, "down")
			_, err := w.Next(t.Context())
			if took := time.Since(begin); took != want {
				t.Errorf("ended after %v, want %v", took, want)
			}
			if err == nil || !strings.Contains(err.Error(), "no connection for "+want.String()) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}

// TestFailedWatchLeavesNoRegistration: a Watch that fails removes its registrations.
func TestFailedWatchLeavesNoRegistration(t *testing.T) {
	t.Parallel()
	policy := emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != "k" })
	locked(t, emulator.Options{Policy: policy}, func(t *testing.T, store *virtualStore, s *Session) {
		if _, err := s.Watch(t.Context(), []string{"free", "k", "other"}); err == nil {
			t.Fatal("a key that may not be read is watched")
		}
		time.Sleep(time.Second)
		if n := store.State().Registrations; n != 0 {
			t.Errorf("%d registrations are left", n)
		}
		// The reply to KEYNOTIFY is lost: the key may be registered.
		var silent atomic.Bool
		silent.Store(true)
		store.Intercept(func(r emulator.Request) emulator.Action {
			return emulator.Action{DropReply: silent.Load() && r.Verb() == wire.VerbKeyNotify}
		})
		if err := within(t, time.Second, "Watch", func(ctx context.Context) error {
			_, err := s.Watch(ctx, []string{"free"})
			return err
		}); err == nil {
			t.Fatal("a watch began without an answer")
		}
		silent.Store(false)
		time.Sleep(time.Minute)
		if n := store.State().Registrations; n != 0 {
			t.Errorf("%d registrations are left", n)
		}
	})
}

// TestRetainedNotificationIsNoEvent: a retained message on the notification topic is not a notification.
func TestRetainedNotificationIsNoEvent(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	s := watchSession(t, Options{Address: server.Addr().String()})
	retain(t, server.Addr().String(), wire.NotifyTopic(s.ClientID(), "k"), wire.AppendNotification(nil, wire.Notification{Op: wire.OpDelete}))
	write(t, server, "SET", "k", "1")
	w := startWatch(t, s, WatchOptions{}, "k")
	write(t, server, "SET", "k", "2")
	wantEvents(t, w, `initial k "1"`, `set k "2"`)
}

// retain publishes a retained message.
func retain(t *testing.T, address, topic string, payload []byte) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	send := func(p interface {
		WriteTo(io.Writer) (int64, error)
	}, answer byte) {
		t.Helper()
		if _, err := p.WriteTo(nc); err != nil {
			t.Fatal(err)
		}
		if got, err := packets.ReadPacket(nc); err != nil || got.Type != answer {
			t.Fatalf("got %v, %v; want packet type %d", got, err, answer)
		}
	}
	send(&packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: "retainer", CleanStart: true, Properties: &packets.Properties{}}, packets.CONNACK)
	send(&packets.Publish{Topic: topic, QoS: 1, PacketID: 1, Retain: true, Payload: payload, Properties: &packets.Properties{}}, packets.PUBACK)
}

// TestWatchOfAKeyThatIsTooLong: no notification of such a key fits into a topic.
func TestWatchOfAKeyThatIsTooLong(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	s := watchSession(t, Options{Address: server.Addr().String(), ClientID: "me"})
	longest := (65535 - len(wire.NotifyTopic("me", ""))) / 2
	w := startWatch(t, s, WatchOptions{}, strings.Repeat("k", longest))
	write(t, server, "SET", strings.Repeat("k", longest), "1")
	if next(t, w); next(t, w).Kind != EventSet {
		t.Error("the longest key is not watched")
	}
	_, err := s.Watch(t.Context(), []string{strings.Repeat("k", longest+1)})
	if _, ok := errors.AsType[*InvalidError](err); !ok || !strings.Contains(err.Error(), "32") {
		t.Errorf("a key of %d bytes: %v", longest+1, err)
	}
}

// TestEveryWatchComesBackFromFlappingConnections: when another request reconnects before the watches of a
// session have noticed the loss, they are set up on different connections; all of them come back.
func TestEveryWatchComesBackFromFlappingConnections(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		var all []*Watch
		for i, key := range []string{"a", "b", "c", "d"} {
			all = append(all, startWatch(t, s, WatchOptions{}, key))
			for range i + 1 {
				store.DropAll()
				_, _ = s.Get(t.Context(), key) // reconnects
			}
		}
		store.DropAll()
		time.Sleep(time.Minute)
		for i, key := range []string{"a", "b", "c", "d"} {
			write(t, store.Server, "SET", key, "end")
			var got []string
			for len(got) == 0 || got[len(got)-1] != `set `+key+` "end"` {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				e, err := all[i].Next(ctx)
				cancel()
				if err != nil {
					t.Fatalf("the watch of %s is deaf: %v; it had\n%s", key, err, strings.Join(got, "\n"))
				}
				got = append(got, told(e))
			}
			if diff := cmp.Diff("initial "+key, got[0]); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// TestWatchFollowsRequest: after a request has reconnected, watches don't wait for the end of their own
// pause.
func TestWatchFollowsRequest(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		w := startWatch(t, s, WatchOptions{}, "k")
		wantEvents(t, w, "initial k")
		s.watcher.post(func() { s.watcher.attempt = 100 }) // makes the pause at least 5 s
		store.DropAll()
		<-s.Down()
		if _, err := s.Set(t.Context(), "k", []byte("v")); err != nil {
			t.Fatal(err)
		}
		err := within(t, 4*time.Second, "the resync", func(ctx context.Context) error {
			for {
				if e, err := w.Next(ctx); err != nil || e.Kind == EventResync {
					return err
				}
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}
