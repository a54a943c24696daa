package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// on returns an Intercept function that applies a to the first n requests with a verb.
func on(verb string, n int, a emulator.Action) func(emulator.Request) emulator.Action {
	return func(r emulator.Request) emulator.Action {
		if r.Verb() != verb || n == 0 {
			return emulator.Action{}
		}
		n--
		return a
	}
}

// garbled returns replies that do not tell the outcome.
func garbled() map[string]func(*emulator.Answer) {
	return map[string]func(*emulator.Answer){
		"bad RESP3":  func(a *emulator.Answer) { a.Payload = []byte("+OK") },
		"wrong type": func(a *emulator.Answer) { a.Payload = []byte("$2\r\nOK\r\n") },
		"nothing":    func(a *emulator.Answer) { a.Payload = nil },
		"no status":  func(a *emulator.Answer) { a.Set("__stat", "") },
		"status 500": func(a *emulator.Answer) { a.Set("__stat", "500") },
		"bad HLC":    func(a *emulator.Answer) { a.Set("__ts", "soon") },
	}
}

// TestLockGarbledAcquisition: a lock whose acquisition got a garbled reply is released at once, or reported
// with its holder and the end of its lease.
func TestLockGarbledAcquisition(t *testing.T) {
	t.Parallel()
	for name, rewrite := range garbled() {
		t.Run(name, func(t *testing.T) {
			locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
				o := LockOptions{Holder: []byte("h"), TTL: time.Minute}
				for step, acquire := range map[string]func() error{
					"Lock":        func() error { _, err := s.Lock(t.Context(), "l", o); return err },
					"AcquireLock": func() error { _, err := s.AcquireLock(t.Context(), "l", o); return err },
					"Try": func() error {
						o := o
						o.Try = true
						_, err := s.AcquireLock(t.Context(), "l", o)
						return err
					},
				} {
					store.Intercept(on(wire.VerbSet, 1, emulator.Action{Rewrite: rewrite}))
					begin := time.Now()
					err := acquire()
					if _, unknown := errors.AsType[*LockUnknownError](err); err == nil || unknown {
						t.Errorf("%s: %v", step, err)
					}
					if e, held := store.Get("l"); held {
						t.Errorf("%s: %q holds the lock", step, e.Value)
					}
					if d := time.Since(begin); d > 0 {
						t.Errorf("%s: it took %v", step, d)
					}
				}
				store.Intercept(func(r emulator.Request) (a emulator.Action) {
					a.Drop = r.Verb() == wire.VerbVDel
					if r.Verb() == wire.VerbSet {
						a.Rewrite = rewrite
					}
					return a
				})
				begin := time.Now()
				_, err := s.AcquireLock(t.Context(), "l", o)
				unknown, ok := errors.AsType[*LockUnknownError](err)
				e, held := store.Get("l")
				if !ok || !held || string(unknown.Holder) != "h" || unknown.Until.Before(e.Expires) {
					t.Errorf("%v; the lock expires at %v", err, e.Expires)
				}
				if d := time.Since(begin); d > 2*DefaultTimeout {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

// TestRenewLockWithoutToken: a renewal whose reply has no version may have extended the lock, so its outcome is unknown.
func TestRenewLockWithoutToken(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		o := LockOptions{Holder: []byte("h"), TTL: time.Minute}
		if _, err := s.AcquireLock(t.Context(), "l", o); err != nil {
			t.Fatal(err)
		}
		store.Intercept(on(wire.VerbSet, 1, emulator.Action{Rewrite: func(a *emulator.Answer) { a.Delete("__ts") }}))
		lease, err := s.RenewLock(t.Context(), "l", o)
		unknown, ok := errors.AsType[*LockUnknownError](err)
		e, held := store.Get("l")
		if !ok || !held || unknown.Until.Before(e.Expires) || lease.Holder != nil {
			t.Errorf("%+v, %v; held: %t, until %v", lease, err, held, e.Expires)
		}
	})
}

// TestLockAcquiredAgainInDoubt: the earlier lease stays valid if the holder acquires its lock again and the
// reply is lost.
func TestLockAcquiredAgainInDoubt(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]emulator.Action{"applied": {DropReply: true}, "dropped": {Drop: true}, "garbled": {Rewrite: garbled()["bad RESP3"]}} {
		for _, try := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, try %t", name, try), func(t *testing.T) {
				locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
					o := LockOptions{Holder: []byte("h"), TTL: time.Minute, Try: try}
					if _, err := s.AcquireLock(t.Context(), "l", o); err != nil {
						t.Fatal(err)
					}
					store.Intercept(on(wire.VerbSet, 1, a))
					_, err := s.AcquireLock(t.Context(), "l", o)
					unknown, ok := errors.AsType[*LockUnknownError](err)
					e, held := store.Get("l")
					if !ok || !held || unknown.Until.Before(e.Expires) {
						t.Errorf("%v; held: %t, until %v", err, held, e.Expires)
					}
				})
			})
		}
	}
}

// TestLockReleaseLostToWaiter: if the reply to a release is lost and another client acquires the lock, the
// release may have come too late, so its outcome is unknown.
func TestLockReleaseLostToWaiter(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		next := func(r emulator.Request) (a emulator.Action) {
			if r.Verb() == wire.VerbVDel {
				a.CutAfter = true
				store.Intercept(nil)
				go store.Set("l", "other")
			}
			return a
		}
		l := lockIt(t, s, LockOptions{Holder: []byte("h")})
		store.Intercept(next)
		err := l.Release(t.Context())
		if unknown, ok := errors.AsType[*LockUnknownError](err); !ok || !unknown.Over {
			t.Errorf("Release: %v", err)
		}
		store.Set("l", "h")
		store.Intercept(next)
		err = s.ReleaseLock(t.Context(), "l", []byte("h"))
		if unknown, ok := errors.AsType[*LockUnknownError](err); !ok || !unknown.Over {
			t.Errorf("ReleaseLock: %v", err)
		}
	})
}

// TestLockLateRelease: late replies count, whichever attempt they belong to.
func TestLockLateRelease(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		l := lockIt(t, s, LockOptions{TTL: 3 * time.Second})
		store.Intercept(func(emulator.Request) emulator.Action {
			return emulator.Action{DelayReply: 900 * time.Millisecond}
		})
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		store.Intercept(nil)
		store.Set("l", "h")
		store.Intercept(func(emulator.Request) emulator.Action {
			return emulator.Action{DelayReply: 900 * time.Millisecond}
		})
		if err := s.ReleaseLock(t.Context(), "l", []byte("h")); err != nil {
			t.Error(err)
		}
	})
}

// TestLockForgotten: a store that loses all keys and registrations while the broker stays up has lost the
// lock too. A renewal would acquire it anew, perhaps after another client held it.
func TestLockForgotten(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(*virtualStore, *Session){
		"":                            func(*virtualStore, *Session) {},
		"acquired anew as the holder": func(store *virtualStore, s *Session) { store.Do(requestBy("twin", "SET", "l", "h")) },
	} {
		t.Run(name, func(t *testing.T) {
			locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
				l := lockIt(t, s, LockOptions{Holder: []byte("h")})
				time.Sleep(20 * time.Second)
				synctest.Wait()
				lease := l.Lease()
				store.Do(requestBy("me", "KEYNOTIFY", "l", "STOP"))
				store.Do(requestBy("nobody", "DEL", "l"))
				after(store, s)
				lostBy(t, l, LossDeleted, lease.Sent.Add(l.Timing().Interval))
				l.Release(t.Context())
			})
		})
	}
}

// TestLockRenewedUnknowingly: the lock is not lost if its holder renews it outside this session, or if the
// replies to renewals are lost.
func TestLockRenewedUnknowingly(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		l := lockIt(t, s, LockOptions{Holder: []byte("h")})
		for range 10 {
			time.Sleep(time.Second)
			store.Do(requestBy("twin", "SET", "l", "h", "NEX", "PX", "15000"))
		}
		store.Intercept(on(wire.VerbSet, 1, emulator.Action{DropReply: true}))
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := l.Context().Err(); err != nil {
			t.Error(context.Cause(l.Context()))
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLockWaitSurvivesLostAnswers: with a wait, one lost reply does not end the attempt.
func TestLockWaitSurvivesLostAnswers(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(emulator.Request) emulator.Action{
		"KEYNOTIFY": on(wire.VerbKeyNotify, 1, emulator.Action{Drop: true}),
		"GET":       on(wire.VerbGet, 1, emulator.Action{DropReply: true}),
		"SET":       on(wire.VerbSet, 1, emulator.Action{Drop: true}),
		"SET, done": on(wire.VerbSet, 1, emulator.Action{DropReply: true}),
		"twice SET": on(wire.VerbSet, 2, emulator.Action{Drop: true}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := startVirtual(t, emulator.Options{})
				defer store.Close()
				s := store.dial(t, newBarrier(), Options{ClientID: "me", Timeout: 2 * time.Second})
				defer s.Close()
				store.Intercept(lost)
				l, err := s.Lock(t.Context(), "l", LockOptions{Wait: 25 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
				// When the wait is over the call ends, and the error says why.
				store.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{Drop: r.Verb() != wire.VerbVDel} })
				begin := time.Now()
				_, err = s.Lock(t.Context(), "l", LockOptions{Wait: 25 * time.Second})
				if d := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || d < 25*time.Second || d > 29*time.Second {
					t.Errorf("after %v: %v", d, err)
				}
			})
		})
	}
}

// TestLockWaitTellsOfOthersOnly: OnWait is not called for an attempt whose reply is lost, because the lock is free or,
// perhaps, already ours.
func TestLockWaitTellsOfOthersOnly(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]emulator.Action{"free": {Drop: true}, "ours": {DropReply: true}} {
		t.Run(name, func(t *testing.T) {
			locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
				store.Intercept(on(wire.VerbSet, 2, a))
				l := lockIt(t, s, LockOptions{Wait: time.Minute, OnWait: func(s LockStatus) { t.Errorf("waiting for %+v", s) }})
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestLockWaitWithoutNotifications: what OnWait and a *LockBusyError say about the holder is true even if
// notifications are lost: a refused attempt shows that the key has changed.
func TestLockWaitWithoutNotifications(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]string{"renewed": "other", "taken over": "third"} {
		t.Run(name, func(t *testing.T) {
			locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
				store.Do(requestBy("other", "SET", "l", "other", "PX", "3600000"))
				var told []LockStatus
				failed := make(chan error)
				go func() {
					_, err := s.AcquireLock(t.Context(), "l", LockOptions{Holder: []byte("h"), Wait: 70 * time.Second, OnWait: func(s LockStatus) { told = append(told, s) }})
					failed <- err
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				store.Do(requestBy("me", "KEYNOTIFY", "l", "STOP"))
				for range 40 { // until the last attempts have begun
					store.Do(requestBy("other", "SET", "l", next, "PX", "3600000"))
					time.Sleep(time.Second)
				}
				e, _ := store.Get("l")
				busy, ok := errors.AsType[*LockBusyError](<-failed)
				if !ok || string(busy.Status.Holder) != next || !busy.Status.Token.Equal(e.Version) {
					t.Errorf("the error is %+v, want the holder %q at %v", busy, next, e.Version)
				}
				if len(told) != 2 || string(told[0].Holder) != "other" || string(told[1].Holder) != next || !told[1].Token.Equal(e.Version) {
					t.Errorf("told of %+v", told)
				}
			})
		})
	}
}

// TestLockBudget: however replies are lost, a step takes at most two timeouts: one for the reply, and one to
// find out what became of the request.
func TestLockBudget(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	o := LockOptions{Holder: []byte("h")}
	try := o
	try.Try = true
	for name, lose := range map[string]func(emulator.Request) emulator.Action{
		"all":           func(emulator.Request) emulator.Action { return emulator.Action{Drop: true} },
		"all, silently": func(emulator.Request) emulator.Action { return emulator.Action{Drop: true, NoPuback: true} },
		"all answers":   func(emulator.Request) emulator.Action { return emulator.Action{DropReply: true} },
		"writes": func(r emulator.Request) emulator.Action {
			return emulator.Action{Drop: r.Verb() == wire.VerbSet || r.Verb() == wire.VerbVDel}
		},
		"answers to writes": func(r emulator.Request) emulator.Action {
			return emulator.Action{DropReply: r.Verb() == wire.VerbSet || r.Verb() == wire.VerbVDel}
		},
		"SET": func(r emulator.Request) emulator.Action { return emulator.Action{DropReply: r.Verb() == wire.VerbSet} },
		"late watching": func(r emulator.Request) emulator.Action {
			switch r.Verb() {
			case wire.VerbSet, wire.VerbVDel:
				return emulator.Action{DropReply: true}
			}
			return emulator.Action{DelayReply: 900 * time.Millisecond}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for step, take := range map[string]func(context.Context, *Session) error{
				"acquire": func(ctx context.Context, s *Session) error { _, err := s.AcquireLock(ctx, "l", o); return err },
				"try":     func(ctx context.Context, s *Session) error { _, err := s.AcquireLock(ctx, "l", try); return err },
				"lock":    func(ctx context.Context, s *Session) error { _, err := s.Lock(ctx, "l", o); return err },
				"renew":   func(ctx context.Context, s *Session) error { _, err := s.RenewLock(ctx, "l", o); return err },
				"release": func(ctx context.Context, s *Session) error { return s.ReleaseLock(ctx, "l", o.Holder) },
			} {
				synctest.Test(t, func(t *testing.T) {
					store := startVirtual(t, emulator.Options{})
					defer store.Close()
					s := store.dial(t, newBarrier(), Options{ClientID: "me", Timeout: timeout})
					defer s.Close()
					if step == "renew" || step == "release" {
						store.Set("l", "h")
					}
					store.Intercept(lose)
					begin := time.Now()
					err := take(t.Context(), s)
					if d := time.Since(begin); d > 2*timeout {
						t.Errorf("%s took %v: %v", step, d, err)
					}
					if _, unknown := errors.AsType[*LockUnknownError](err); unknown || step == "renew" || step == "release" {
						return
					}
					time.Sleep(timeout) // until the store has no more requests to apply
					if e, held := store.Get("l"); held {
						t.Errorf("%s: %q holds the lock, and the error was %v", step, e.Value, err)
					}
				})
			}
		})
	}
}

// TestLockSwallowedAttempts: attempts lost while waiting don't harm the lock that a later attempt acquired:
// not at once, not when they expire, and not when they are undone.
func TestLockSwallowedAttempts(t *testing.T) {
	t.Parallel()
	for name, swallow := range map[string]emulator.Action{
		"dropped": {Drop: true}, "answer dropped": {DropReply: true}, "late": {Delay: 3 * time.Second}, "cut": {CutAfter: true},
	} {
		t.Run(name, func(t *testing.T) {
			locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
				store.Do(requestBy("other", "SET", "l", "other", "PX", "20000"))
				var silent, vdels atomic.Int32
				store.Intercept(func(r emulator.Request) emulator.Action {
					if r.ClientID == "me" && r.Verb() == wire.VerbVDel {
						vdels.Add(1)
					}
					if silent.Load() > 0 && r.Verb() == wire.VerbSet {
						silent.Add(-1)
						return swallow
					}
					return emulator.Action{}
				})
				time.AfterFunc(10*time.Second, func() { silent.Store(6) })
				l := lockIt(t, s, LockOptions{Holder: []byte("h"), TTL: 2500 * time.Millisecond})
				for range 100 {
					time.Sleep(100 * time.Millisecond)
					if e, held := store.Get("l"); l.Context().Err() == nil && (!held || string(e.Value) != "h") {
						t.Fatalf("%q (%v) has the lock, its holder was not told", e.Value, held)
					}
				}
				if n := vdels.Load(); n > 0 {
					t.Errorf("%d VDELs before the release", n)
				}
				if err := l.Release(t.Context()); err != nil && l.Context().Err() == nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Second)
				if e, held := store.Get("l"); held {
					t.Errorf("%q holds the lock in the end", e.Value)
				}
			})
		})
	}
}

// TestStepsLeaveNothingBehind: once AcquireLock or RenewLock has returned, no request of it acquires the lock, so
// a lock that ReleaseLock released stays free.
func TestStepsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	type steps func(*virtualStore, *Session, LockOptions) error
	acquire := func(store *virtualStore, s *Session, o LockOptions) error {
		_, err := s.AcquireLock(context.Background(), "l", o)
		return err
	}
	held := func(next steps) steps {
		return func(store *virtualStore, s *Session, o LockOptions) error {
			store.Do(requestBy("me", "SET", "l", "h", "PX", "600000"))
			return next(store, s, o)
		}
	}
	inDoubt := func(err error) error {
		if _, unknown := errors.AsType[*LockUnknownError](err); unknown {
			return nil
		}
		return err // nil if the reply came in time
	}
	for name, steps := range map[string]steps{
		"acquired": acquire,
		"acquired again": held(func(store *virtualStore, s *Session, o LockOptions) error {
			o.Wait = 0
			return inDoubt(acquire(store, s, o))
		}),
		"renewed": held(func(_ *virtualStore, s *Session, o LockOptions) error {
			_, err := s.RenewLock(context.Background(), "l", o)
			return inDoubt(err)
		}),
	} {
		for _, ttl := range []time.Duration{924 * time.Millisecond, 15 * time.Second, 10 * time.Minute} {
			for _, cut := range []time.Duration{0, 100 * time.Millisecond, 700 * time.Millisecond} {
				t.Run(fmt.Sprintf("%s, TTL %v, cut after %v", name, ttl, cut), func(t *testing.T) {
					locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
						o := LockOptions{Holder: []byte("h"), TTL: ttl, Wait: 30 * time.Second}
						timing, err := o.Timing()
						if err != nil {
							t.Fatal(err)
						}
						late := wholeSeconds(min(timing.Interval, DefaultTimeout)) - 10*time.Millisecond // just before it expires
						store.Intercept(on(wire.VerbSet, 1, emulator.Action{Delay: late}))
						if cut > 0 {
							time.AfterFunc(cut, store.DropAll)
						}
						if err := steps(store, s, o); err != nil {
							t.Fatal(err)
						}
						if err := s.ReleaseLock(t.Context(), "l", o.Holder); err != nil {
							t.Fatal(err)
						}
						time.Sleep(late)
						if e, held := store.Get("l"); held {
							t.Errorf("%q holds the lock until %v, %v from now", e.Value, e.Expires, time.Until(e.Expires))
						}
					})
				})
			}
		}
	}
}

// TestReleaseNotSentAgain: the reply to a release is garbled, and the connection ends before the release can
// be sent again. The first release may have been applied, whatever became of the second.
func TestReleaseNotSentAgain(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		if _, err := s.Set(t.Context(), "l", []byte("me")); err != nil {
			t.Fatal(err)
		}
		store.Intercept(func(r emulator.Request) (a emulator.Action) {
			if r.Verb() == wire.VerbVDel {
				a.Rewrite = func(a *emulator.Answer) { a.Payload = []byte("+O") }
				a.CutAfter = true
				store.RefuseConnect(func(string, string) byte { return mqtt.ReasonServerBusy })
			}
			return a
		})
		err := s.ReleaseLock(t.Context(), "l", []byte("me"))
		if _, ok := errors.AsType[*LockUnknownError](err); !ok {
			t.Errorf("%v, want a *LockUnknownError", err)
		}
	})
}
