package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

func TestLockTiming(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		o    LockOptions
		want LockTiming
	}{
		{LockOptions{}, LockTiming{TTL: 15 * s, Margin: 1500 * ms, Grace: 3750 * ms, Interval: 3250 * ms}},
		{LockOptions{TTL: time.Minute}, LockTiming{TTL: time.Minute, Margin: 2 * s, Grace: 5 * s, Interval: 53 * s / 3}},
		{LockOptions{TTL: 924 * ms}, LockTiming{TTL: 924 * ms, Margin: 92400 * time.Microsecond, Grace: 231 * ms, Interval: 200200 * time.Microsecond}},
		{LockOptions{TTL: 10 * s, Grace: -1, Margin: 4 * s}, LockTiming{TTL: 10 * s, Margin: 4 * s, Interval: 2 * s}},
		{LockOptions{TTL: 2 * s, Grace: 700 * ms, Margin: 700 * ms}, LockTiming{TTL: 2 * s, Margin: 700 * ms, Grace: 700 * ms, Interval: 200 * ms}},
	} {
		got, err := c.o.Timing()
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v\n%s", c.o, err, diff)
		}
		sent := time.Now()
		l := got.lease(sent)
		if ends := l.Until.Add(got.Margin); !ends.Equal(sent.Add(got.TTL)) || !l.Term.Add(got.Grace).Equal(l.Until) || l.Term.Sub(sent)-3*got.Interval > 2 {
			t.Errorf("%+v: the lease is %+v", c.o, l)
		}
	}
	for _, o := range []LockOptions{
		{TTL: 923 * ms}, {TTL: -1 * s}, {TTL: 1500*ms + 1}, {TTL: s, Grace: s}, {TTL: 10 * s, Margin: 10 * s}, {Margin: -1},
	} {
		if got, err := o.Timing(); !isInvalid(err) {
			t.Errorf("%+v: %+v, %v", o, got, err)
		}
	}
}

// TestLeastTTL: the time to live that the error for a shorter one names is the least.
func TestLeastTTL(t *testing.T) {
	for _, o := range []LockOptions{{}, {Grace: -1}, {Grace: time.Second}, {Grace: time.Minute}, {Margin: time.Second}, {Margin: time.Minute}, {Margin: 10 * time.Millisecond, Grace: time.Second}} {
		o.TTL = time.Millisecond
		_, err := o.Timing()
		if err == nil {
			t.Fatalf("%+v: no error", o)
		}
		_, text, _ := strings.Cut(err.Error(), "use ")
		text, _, _ = strings.Cut(text, " or more")
		if o.TTL, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Timing(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		o.TTL -= time.Millisecond
		if _, err := o.Timing(); err == nil {
			t.Errorf("%+v is accepted, less than what an error named", o)
		}
	}
}

func isInvalid(err error) bool {
	_, ok := errors.AsType[*InvalidError](err)
	return ok
}

// locked runs a test in virtual time with a store and a session.
func locked(t *testing.T, o emulator.Options, test func(*testing.T, *virtualStore, *Session)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := startVirtual(t, o)
		defer store.Close()
		s := store.dial(t, newBarrier(), Options{ClientID: "me"})
		defer s.Close()
		test(t, store, s)
	})
}

func lockIt(t *testing.T, s *Session, o ...LockOptions) *Lock {
	t.Helper()
	l, err := s.Lock(t.Context(), "l", o...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lostBy waits for the loss of a lock and checks its reason and time.
func lostBy(t *testing.T, l *Lock, why Loss, at time.Time) *LockLostError {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(time.Hour):
		t.Fatalf("not lost for an hour, want %q", why)
	}
	err := context.Cause(l.Context())
	lost, ok := errors.AsType[*LockLostError](err)
	if !ok || lost.Loss != why || !errors.Is(err, ErrLockLost) {
		t.Fatalf("the context ended with %v, want %q", err, why)
	}
	if now := time.Now(); !now.Equal(at) {
		t.Errorf("lost %v from when it should be", now.Sub(at))
	}
	return lost
}

func requestBy(id string, words ...string) emulator.Request {
	ts := wire.Version{Wall: time.Now().UnixMilli(), Node: id}
	return emulator.NewRequest(id, wire.AppendRequest(nil, words...), emulator.Property{Name: wire.PropTimestamp, Value: ts.String()})
}

// TestLockLostAtOnce: every change of the key is noticed at once.
func TestLockLostAtOnce(t *testing.T) {
	t.Parallel()
	for name, variants := range map[string]emulator.Variants{
		"real": {}, "delete new version": {DeleteNewVersion: true}, "delete no version": {DeleteNoVersion: true},
		"notify no version": {NotifyNoVersion: true}, "EXPIRED": {NotifyEXPIRED: true},
	} {
		t.Run(name, func(t *testing.T) {
			locked(t, emulator.Options{Variants: variants}, func(t *testing.T, store *virtualStore, s *Session) {
				for _, change := range []struct {
					why Loss
					do  func()
				}{
					{LossDeleted, func() { store.Do(requestBy("thief", "DEL", "l")) }},
					{LossDeleted, func() { store.FastForward(time.Minute) }},
					{LossTaken, func() { store.Do(requestBy("thief", "SET", "l", "thief")) }},
				} {
					l := lockIt(t, s)
					time.Sleep(20 * time.Second)
					synctest.Wait()
					if err := l.Context().Err(); err != nil {
						t.Fatalf("lost while it was renewed: %v", context.Cause(l.Context()))
					}
					change.do()
					lost := lostBy(t, l, change.why, time.Now())
					if change.why == LossTaken && string(lost.Holder) != "thief" {
						t.Errorf("the holder is %q", lost.Holder)
					}
					if err := l.Release(t.Context()); !errors.Is(err, ErrNotHolder) {
						t.Errorf("Release returned %v", err)
					}
					store.Do(requestBy("thief", "DEL", "l"))
				}
			})
		})
	}
}

// TestLockOldNews: a late notification about an earlier holder is not a loss.
func TestLockOldNews(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, _ *virtualStore, s *Session) {
		l := lockIt(t, s)
		tell := func(e Event) {
			e.Key = "l"
			r := receiver{s: s, connSeq: s.connSeq}
			r.deliver(s.routes[e.Key].watches, e)
			r.drained()
			synctest.Wait()
		}
		old, now := l.Token(), l.Token()
		old.Wall -= 1000
		old, _ = wire.ParseVersion(fmt.Sprintf("%d:%d:%s", old.Wall, old.Counter, old.Node))
		// Without a base version, the lock's watch cannot recognize the old notification.
		l.w.mu.Lock()
		l.w.keys["l"].news().base = wire.Version{}
		l.w.mu.Unlock()
		tell(Event{Kind: EventSet, Value: []byte("other"), HasValue: true, Version: old})
		tell(Event{Kind: EventDelete, Version: old})
		if err := l.Context().Err(); err != nil {
			t.Fatal(context.Cause(l.Context()))
		}
		tell(Event{Kind: EventDelete, Version: now})
		lostBy(t, l, LossDeleted, time.Now())
		l.Release(t.Context())
	})
}

// TestLockTakenUnannounced: if the store sends no notification when the lock is taken, the next renewal finds
// out.
func TestLockTakenUnannounced(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		l := lockIt(t, s)
		store.Do(requestBy("me", "KEYNOTIFY", "l", "STOP"))
		time.Sleep(time.Second)
		store.Do(requestBy("thief", "SET", "l", "thief"))
		lostBy(t, l, LossTaken, l.Lease().Sent.Add(l.Timing().Interval))
		if err := l.Release(t.Context()); err == nil || !strings.Contains(err.Error(), `"thief"`) {
			t.Errorf("Release returned %v", err)
		}
	})
}

// TestLockTerm: without a reply the lock is lost at Term, after two attempts with an interval each.
func TestLockTerm(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		var troubles int
		l := lockIt(t, s, LockOptions{OnTrouble: func(error) { troubles++ }})
		time.Sleep(20 * time.Second)
		store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: true} })
		lease := l.Lease()
		before := store.State().Requests
		lost := lostBy(t, l, LossNoRenewal, lease.Term)
		if sent := store.State().Requests - before; sent != 2 {
			t.Errorf("%d attempts at a renewal", sent)
		}
		if lost.Err == nil || !lost.Lease.Until.Equal(lease.Until) || l.Token() != lease.Token {
			t.Errorf("%+v, the last lease was %+v", lost, lease)
		}
		store.Intercept(nil)
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("Release returned %v", err)
		}
		if _, held := store.Get("l"); held {
			t.Error("the lock is still held")
		}
		if troubles < 1 {
			t.Errorf("told of %d troubles", troubles)
		}
	})
}

// TestLockGhostRenewal: a renewal that is answered too late does not count and is released: the lock may have
// expired before it, and another client may have held it.
func TestLockGhostRenewal(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		l := lockIt(t, s)
		lease, interval := l.Lease(), l.Timing().Interval
		store.Intercept(func(r emulator.Request) emulator.Action {
			switch at := time.Since(lease.Sent); {
			case r.Verb() != wire.VerbSet:
				return emulator.Action{}
			case at < 2*interval+interval/2:
				return emulator.Action{Refuse: 0x97}
			default: // the reply comes when no time is left
				return emulator.Action{DelayReply: interval * 3 / 4}
			}
		})
		lostBy(t, l, LossNoRenewal, lease.Term)
		time.Sleep(lease.UntilIn())
		if got := l.Lease(); got.Token != lease.Token {
			t.Errorf("the late answer gave a lease: %+v", got)
		}
		if _, held := store.Get("l"); !held {
			t.Error("there was no ghost")
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if _, held := store.Get("l"); held {
			t.Error("the lock is still held")
		}
	})
}

// A deadConn is a dead connection without an error: writes are lost, and nothing arrives.
type deadConn struct {
	net.Conn
	dead *atomic.Bool
}

func (c deadConn) Write(p []byte) (int, error) {
	if c.dead.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c deadConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.dead.Load() {
			return n, err
		}
	}
}

// TestLockDeadConnection: a lock survives a dead connection, long before the keep-alive detects it.
func TestLockDeadConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := startVirtual(t, emulator.Options{})
		var first atomic.Bool
		dials := 0
		s, err := Dial(t.Context(), Options{Address: "virtual:1883", Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := store.net.dial(newBarrier())(ctx, network, address)
			if dials++; err != nil || dials > 1 {
				return c, err
			}
			return deadConn{c, &first}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		l := lockIt(t, s)
		time.Sleep(20 * time.Second)
		first.Store(true)
		time.Sleep(time.Minute)
		if err := l.Context().Err(); err != nil {
			t.Error(context.Cause(l.Context()))
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		s.Close()
		store.Close()
	})
}

// sleeper returns a function that lets the session's machine sleep for a time: its wall clock is later then, and
// no timer has fired.
func sleeper(s *Session) func(time.Duration) {
	var slept atomic.Int64
	s.wall = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
	return func(d time.Duration) { slept.Add(int64(d)) }
}

// TestLockSleep: on a suspended machine, timers stop and the wall clock does not.
func TestLockSleep(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, _ *virtualStore, s *Session) {
		sleep := sleeper(s)
		l := lockIt(t, s)
		time.Sleep(20 * time.Second)
		sleep(time.Minute)
		begin := time.Now()
		select {
		case <-l.Context().Done():
		case <-time.After(time.Hour):
		}
		if d := time.Since(begin); !errors.Is(context.Cause(l.Context()), ErrLockLost) || d > wallTick {
			t.Errorf("%v, %v after waking up", context.Cause(l.Context()), d)
		}
		l.Release(t.Context())
	})
}

// TestClockSetBack: a session goes on, and keeps its locks, although its wall clock was set back by an hour.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		ahead := time.Hour
		s.wall = func() time.Time { return time.Now().Add(ahead) }
		s.clock = wire.NewClock("me", s.wall)
		if _, err := s.clock.Tick(); err != nil {
			t.Fatal(err)
		}
		ahead = 0
		l := lockIt(t, s)
		time.Sleep(time.Minute)
		before, err := l.Set(t.Context(), "k", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		after, err := l.Set(t.Context(), "k", []byte("2"))
		if err != nil || after.Version.Compare(before.Version) <= 0 {
			t.Errorf("the version %v follows %v; %v", after.Version, before.Version, err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLockWritesOnlyDuringLease: a process that was stopped until its lease was over writes nothing when it
// continues, although the lock's context has not ended yet.
func TestLockWritesOnlyDuringLease(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		sleep := sleeper(s)
		l := lockIt(t, s)
		if err := l.Err(); err != nil {
			t.Errorf("Err: %v", err)
		}
		store.Intercept(func(r emulator.Request) emulator.Action {
			t.Errorf("%s was sent", r.Verb())
			return emulator.Action{}
		})
		synctest.Wait() // until the goroutine that keeps the lock waits for its clock
		sleep(time.Minute)
		_, set := l.Set(t.Context(), "k", []byte("v"))
		_, del := l.Del(t.Context(), "k")
		_, vdel := l.VDel(t.Context(), "k", []byte("v"))
		for _, err := range []error{set, del, vdel, l.Err()} {
			if lost, ok := errors.AsType[*LockLostError](err); !ok || lost.Loss != LossNoRenewal {
				t.Errorf("the error is %v", err)
			}
		}
		if err := l.Context().Err(); err != nil {
			t.Errorf("the context has ended: %v", err)
		}
		store.Intercept(nil)
		l.Release(t.Context())
		if err := l.Err(); !errors.Is(err, ErrNotHolder) && !errors.Is(err, ErrLockLost) { // the goroutine that keeps the lock may notice the loss first
			t.Errorf("Err after the release: %v", err)
		}
	})
}

// TestLockRequests: a lock sends KEYNOTIFY before the first attempt, STOP at the end, and never a fencing
// token.
func TestLockRequests(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		var mu sync.Mutex
		var sent []string
		store.Intercept(func(r emulator.Request) emulator.Action {
			mu.Lock()
			defer mu.Unlock()
			words, err := wire.ParseRequest(r.Payload)
			if _, fenced := r.Property(wire.PropFence); err != nil || fenced {
				t.Errorf("%q, with a fence: %v", r.Payload, fenced)
			}
			var text []string
			for _, w := range words {
				text = append(text, string(w))
			}
			sent = append(sent, strings.Join(text, " "))
			return emulator.Action{}
		})
		take := func() []string {
			mu.Lock()
			defer mu.Unlock()
			defer func() { sent = nil }()
			return slices.Clone(sent)
		}
		l := lockIt(t, s, LockOptions{Holder: []byte("h")})
		time.Sleep(l.Timing().Interval)
		synctest.Wait()
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{"KEYNOTIFY l", "GET l", "SET l h NEX PX 15000", "GET l", "SET l h NEX PX 15000", "VDEL l h", "KEYNOTIFY l STOP"}
		if diff := cmp.Diff(want, take()); diff != "" {
			t.Error(diff)
		}
		store.Set("l", "thief")
		if _, err := s.AcquireLock(t.Context(), "l", LockOptions{Holder: []byte("h"), Wait: time.Second}); !errors.Is(err, ErrLockBusy) {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"KEYNOTIFY l", "GET l", "SET l h NEX PX 15000", "KEYNOTIFY l STOP"}, take()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestLockWait: a waiter gets the lock as soon as it is free, also after a broken connection, and soon
// without notifications. It reports the holder at once, and then every minute.
func TestLockWait(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		for name, c := range map[string]struct {
			free   func()
			within time.Duration
		}{
			"deleted": {func() { store.Do(requestBy("other", "DEL", "l")) }, 0},
			"expired": {func() { store.FastForward(time.Hour) }, 0},
			"deleted during a break": {func() {
				store.DropAll()
				store.Do(requestBy("other", "DEL", "l"))
			}, 0},
			"not told": {func() {
				store.Do(requestBy("me", "KEYNOTIFY", "l", "STOP"))
				store.Do(requestBy("other", "DEL", "l"))
			}, 5 * time.Second},
		} {
			store.Do(requestBy("other", "SET", "l", "other", "PX", "3600000"))
			var told []string
			acquired := make(chan time.Time)
			go func() {
				_, err := s.AcquireLock(t.Context(), "l", LockOptions{Holder: []byte("h"), OnWait: func(s LockStatus) { told = append(told, string(s.Holder)) }})
				if err != nil {
					t.Error(err)
				}
				acquired <- time.Now()
			}()
			time.Sleep(2*time.Minute + 2*lockPoll)
			synctest.Wait()
			store.Do(requestBy("other", "SET", "l", "third", "PX", "3600000"))
			time.Sleep(time.Second)
			synctest.Wait()
			begin := time.Now()
			c.free()
			if d := (<-acquired).Sub(begin); d > c.within {
				t.Errorf("%s: acquired after %v", name, d)
			}
			if diff := cmp.Diff([]string{"other", "other", "other", "third"}, told); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if err := s.ReleaseLock(t.Context(), "l", []byte("h")); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestRenewLock: a renewal never acquires a lock that is free or held by another client, nor one that expires
// between the read and the renewal.
func TestRenewLock(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		o := LockOptions{Holder: []byte("h"), TTL: time.Minute}
		if _, err := s.RenewLock(t.Context(), "l", o); !errors.Is(err, ErrNotHolder) {
			t.Error(err)
		}
		lease, err := s.AcquireLock(t.Context(), "l", o)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.AcquireLock(t.Context(), "l", o); err != nil || !again.Again || lease.Again {
			t.Errorf("held before: %t, then %t, %v", lease.Again, again.Again, err)
		}
		time.Sleep(50 * time.Second)
		renewed, err := s.RenewLock(t.Context(), "l", o)
		if err != nil || renewed.Token.Compare(lease.Token) <= 0 || renewed.TermIn() != 53*time.Second {
			t.Errorf("%+v, %v", renewed, err)
		}
		if _, err := s.RenewLock(t.Context(), "l", LockOptions{Holder: []byte("i")}); !errors.Is(err, ErrNotHolder) || !strings.Contains(err.Error(), `"h"`) {
			t.Error(err)
		}
		store.Intercept(func(r emulator.Request) emulator.Action {
			if r.Verb() == wire.VerbSet {
				store.Do(requestBy("thief", "DEL", "l"))
			}
			return emulator.Action{}
		})
		if _, err := s.RenewLock(t.Context(), "l", o); !errors.Is(err, ErrNotHolder) {
			t.Error(err)
		}
		if _, held := store.Get("l"); held {
			t.Error("an expired lock was acquired by its renewal")
		}
		if _, err := s.RenewLock(t.Context(), "l"); !isInvalid(err) {
			t.Error(err)
		}
	})
}

// TestReleaseLockRepeated: a release whose reply is lost is sent again, and finds that the lock is gone.
func TestReleaseLockRepeated(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		store.Set("l", "h")
		var first sync.Once
		store.Intercept(func(r emulator.Request) (a emulator.Action) {
			if r.Verb() == wire.VerbVDel {
				first.Do(func() { a.CutAfter = true })
			}
			return a
		})
		err := s.ReleaseLock(t.Context(), "l", []byte("h"))
		if unknown, ok := errors.AsType[*LockUnknownError](err); !ok || !unknown.Over {
			t.Errorf("%v: the lock may have expired before the release", err)
		}
		if err := s.ReleaseLock(t.Context(), "l", []byte("h")); !errors.Is(err, ErrNotHolder) {
			t.Error(err)
		}
		if err := s.ReleaseLock(t.Context(), "l", nil); !isInvalid(err) {
			t.Error(err)
		}
	})
}

// TestLockSessionClosed: closing a session loses its locks and ends every wait.
func TestLockSessionClosed(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, _ *virtualStore, s *Session) {
		l := lockIt(t, s)
		begin := time.Now()
		s.Close()
		lostBy(t, l, LossNoRenewal, begin)
		if err := l.Release(t.Context()); !errors.Is(err, mqtt.ErrClosed) {
			t.Error(err)
		}
		if _, err := s.Lock(t.Context(), "l"); !errors.Is(err, mqtt.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestLockSurvivesBreaks: the lock is watched and renewed on every new connection.
func TestLockSurvivesBreaks(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		leases := 0
		l := lockIt(t, s, LockOptions{OnLease: func(Lease) { leases++ }})
		for range 20 {
			store.DropAll()
			time.Sleep(4 * time.Second)
		}
		if err := l.Context().Err(); err != nil {
			t.Fatal(context.Cause(l.Context()))
		}
		store.Do(requestBy("thief", "DEL", "l"))
		lostBy(t, l, LossDeleted, time.Now())
		l.Release(t.Context())
		if leases < 20 {
			t.Errorf("%d leases", leases)
		}
	})
}

// TestLockDeletedWhileCut: what happened to the lock during a disconnection is known before the next renewal
// is sent: the renewal would acquire a deleted lock anew.
func TestLockDeletedWhileCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := startVirtual(t, emulator.Options{})
		defer store.Close()
		let := make(chan struct{}, 1)
		let <- struct{}{}
		s, err := Dial(t.Context(), Options{Address: "virtual:1883", Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			select {
			case <-let:
				return store.net.dial(newBarrier())(ctx, network, address)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for name, c := range map[string]struct {
			why Loss
			do  func()
		}{
			"deleted": {LossDeleted, func() { store.Do(requestBy("thief", "DEL", "l")) }},
			"taken":   {LossTaken, func() { store.Do(requestBy("thief", "SET", "l", "thief")) }},
			"acquired by another and released": {LossDeleted, func() {
				store.Do(requestBy("thief", "DEL", "l"))
				store.Do(requestBy("thief", "SET", "l", "thief", "NEX", "PX", "1000"))
				store.Do(requestBy("thief", "VDEL", "l", "thief"))
			}},
		} {
			l := lockIt(t, s)
			// The watch's GET is the last request to arrive.
			store.Intercept(func(r emulator.Request) emulator.Action {
				if r.Verb() == wire.VerbKeyNotify {
					return emulator.Action{Delay: 100 * time.Millisecond}
				}
				return emulator.Action{}
			})
			store.DropAll()
			time.Sleep(l.Timing().Interval + time.Second) // a renewal waits for the connection
			c.do()
			let <- struct{}{}
			select {
			case <-l.Context().Done():
			case <-time.After(time.Second):
				t.Errorf("%s: not lost", name)
			}
			if lost, ok := errors.AsType[*LockLostError](context.Cause(l.Context())); ok && lost.Loss != c.why {
				t.Errorf("%s: %v", name, lost)
			}
			if err := l.Release(t.Context()); !errors.Is(err, ErrNotHolder) {
				t.Errorf("%s: Release returned %v", name, err)
			}
			store.Intercept(nil)
			store.Do(requestBy("thief", "DEL", "l"))
		}
	})
}

// TestRenewLockWhileCut: a renewal that finds its connection broken extends only a lock that still exists.
func TestRenewLockWhileCut(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		o := LockOptions{Holder: []byte("h"), TTL: time.Minute}
		timing, err := o.Timing()
		if err != nil {
			t.Fatal(err)
		}
		for value, want := range map[string]claim{"": {gone: true}, "h": {held: true}, "thief": {holder: []byte("thief")}} {
			if _, err := s.AcquireLock(t.Context(), "l", o); err != nil {
				t.Fatal(err)
			}
			w, err := s.Watch(t.Context(), []string{"l"})
			if err != nil {
				t.Fatal(err)
			}
			store.DropAll()
			if value != "h" {
				store.Do(requestBy("thief", "DEL", "l"))
			}
			if value == "thief" {
				store.Set("l", value)
			}
			var c claim
			for again := true; again; again = c.err != nil { // the session may not have noticed the break yet
				c = s.claim(t.Context(), "l", o, timing, s.o.Timeout, &knownVersions{})
			}
			if c.held != want.held || c.gone != want.gone || string(c.holder) != string(want.holder) {
				t.Errorf("%q: %+v", value, c)
			}
			if e, held := store.Get("l"); string(e.Value) != value || held != (value != "") {
				t.Errorf("%q has become %q", value, e.Value)
			}
			w.Close()
			store.Do(requestBy("thief", "DEL", "l"))
		}
	})
}

// TestLockUndoneTwice: after the session has released the lock of one attempt, it also undoes an earlier
// attempt, which acquires the lock later.
func TestLockUndoneTwice(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		store.Do(requestBy("other", "SET", "l", "other"))
		ctx, cancel := context.WithCancel(t.Context())
		attempt := 0
		store.Intercept(func(r emulator.Request) (a emulator.Action) {
			if r.Verb() != wire.VerbSet {
				return emulator.Action{}
			}
			switch attempt++; attempt {
			case 2: // arrives when the lock seems to be undone
				return emulator.Action{Delay: 3500 * time.Millisecond}
			case 3:
				store.Do(requestBy("other", "DEL", "l"))
				time.AfterFunc(time.Millisecond, cancel)
				return emulator.Action{DelayReply: 2 * time.Millisecond}
			}
			return emulator.Action{}
		})
		_, err := s.AcquireLock(ctx, "l", LockOptions{Holder: []byte("h")})
		if !errors.Is(err, context.Canceled) || attempt != 3 {
			t.Errorf("%v, after %d attempts", err, attempt)
		}
		time.Sleep(5 * time.Second)
		if e, held := store.Get("l"); held {
			t.Errorf("%q holds the lock", e.Value)
		}
	})
}

// TestReleaseLockLate: a release without a reply must not hit a client that acquires the lock under the same
// name after ReleaseLock has returned.
func TestReleaseLockLate(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		store.Set("l", "h")
		first := true
		store.Intercept(func(r emulator.Request) (a emulator.Action) {
			if r.Verb() == wire.VerbVDel && first {
				first = false
				a.Delay = 5 * time.Second
				time.AfterFunc(time.Millisecond, store.DropAll)
			}
			return a
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.ReleaseLock(ctx, "l", []byte("h"))
		if _, unknown := errors.AsType[*LockUnknownError](err); err != nil && !unknown {
			t.Error(err)
		}
		if _, err := s.AcquireLock(t.Context(), "l", LockOptions{Holder: []byte("h"), TTL: time.Minute}); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Second)
		if _, held := store.Get("l"); !held {
			t.Error("the release of before has released it")
		}
	})
}
