package client

import (
	"context"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

// TestZeroSession: every method of a Session that does not come from Dial returns an error that says so.
func TestZeroSession(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, do := range map[string]func(s *Session) error{
		"Get":         func(s *Session) error { _, err := s.Get(ctx, "k"); return err },
		"Watch":       func(s *Session) error { _, err := s.Watch(ctx, []string{"k"}); return err },
		"Lock":        func(s *Session) error { _, err := s.Lock(ctx, "k"); return err },
		"AcquireLock": func(s *Session) error { _, err := s.AcquireLock(ctx, "k", LockOptions{Try: true}); return err },
		"RenewLock":   func(s *Session) error { _, err := s.RenewLock(ctx, "k", LockOptions{Holder: []byte("me")}); return err },
		"ReleaseLock": func(s *Session) error { return s.ReleaseLock(ctx, "k", []byte("me")) },
		"Pipeline":    func(s *Session) error { _, err := s.Pipeline(2).Send(ctx, Get("k")); return err },
		"ReadBack":    func(s *Session) error { _, err := s.ReadBack(ctx, &LostReplyError{Command: Get("k")}); return err },
		"Scan": func(s *Session) (err error) {
			for _, err = range s.Scan(ctx, "*") {
			}
			return err
		},
		"MeasureSkew":          func(s *Session) error { _, err := s.MeasureSkew(ctx, "k", time.Second); return err },
		"Err":                  func(s *Session) error { return s.Err() },
		"a nil LostReplyError": func(s *Session) error { _, err := s.ReadBack(ctx, nil); return err },
	} {
		if err := do(new(Session)); !isA[*InvalidError](err) {
			t.Errorf("%s: got %v, want an *InvalidError", name, err)
		}
	}
	s := new(Session)
	<-s.Down()
	if err := s.Close(); err != nil || s.MaxPacketSize() != 0 || s.ClientID() != "" {
		t.Errorf("Close: %v, %d, %q", err, s.MaxPacketSize(), s.ClientID())
	}
}

// TestZeroLock: a Lock that does not come from Session.Lock holds nothing, and its methods say so.
func TestZeroLock(t *testing.T) {
	t.Parallel()
	l, ctx := new(Lock), t.Context()
	for name, do := range map[string]func() error{
		"Context": func() error { return context.Cause(l.Context()) },
		"Err":     l.Err,
		"Set":     func() error { _, err := l.Set(ctx, "k", nil); return err },
		"Del":     func() error { _, err := l.Del(ctx, "k"); return err },
		"VDel":    func() error { _, err := l.VDel(ctx, "k", nil); return err },
		"Release": func() error { return l.Release(ctx) },
	} {
		if err := do(); !isA[*InvalidError](err) {
			t.Errorf("%s: got %v, want an *InvalidError", name, err)
		}
	}
	if l.Name() != "" || l.Holder() != nil || !l.Token().IsZero() || !l.Lease().Until.IsZero() || l.Timing() != (LockTiming{}) {
		t.Error("it is the name, the holder, the lease or the timing of a lock")
	}
}

// TestZeroCommand: no method that sends commands sends the zero Command.
func TestZeroCommand(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	o := Options{Address: server.Addr().String()}
	s := watchSession(t, o)
	server.Intercept(func(r emulator.Request) emulator.Action {
		t.Errorf("sent %q", r.Payload)
		return emulator.Action{}
	})
	_, done := s.Do(t.Context(), Command{})
	_, once := single(t.Context(), o, Command{})
	_, piped := s.Pipeline(1).Send(t.Context(), Command{}.WithFence(Version{Wall: 1, Node: "n"}))
	for i, err := range []error{done, once, piped} {
		if !isA[*InvalidError](err) {
			t.Errorf("way %d: got %v, want an *InvalidError", i, err)
		}
	}
}

// TestReleaseWithinItsContext: Release returns when its context ends, even if the
// store no longer answers STOP.
func TestReleaseWithinItsContext(t *testing.T) {
	t.Parallel()
	locked(t, emulator.Options{}, func(t *testing.T, store *virtualStore, s *Session) {
		l := lockIt(t, s, LockOptions{TTL: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		store.Intercept(func(r emulator.Request) emulator.Action {
			if r.Verb() == "KEYNOTIFY" {
				cancel()
			}
			return emulator.Action{Drop: r.Verb() == "KEYNOTIFY"}
		})
		before := time.Now()
		if err := l.Release(ctx); err != nil {
			t.Errorf("Release: %v", err)
		}
		if took := time.Since(before); took > 0 {
			t.Errorf("Release took %v after its context had ended", took)
		}
	})
}
