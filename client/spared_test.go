package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/await"
)

// TestNotificationsRefused: a client that may not subscribe to notifications can still read and write.
func TestNotificationsRefused(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
		return a.Method != emulator.Subscribe || !strings.Contains(a.On, "/notify/")
	})})
	s := must(client.New(patient(client.Options{Address: store.Addr().String()})))(t)
	defer s.Close()
	for range 3 {
		if _, err := s.Watch(t.Context(), []string{"k"}); !errors.Is(err, client.ErrNotAuthorized) {
			t.Errorf("a watch: %v", err)
		}
		must(s.Get(t.Context(), "k"))(t)
		err := s.WithLock(t.Context(), "lock", func(context.Context, *client.Lock) error { return nil })
		if !errors.Is(err, client.ErrNotAuthorized) {
			t.Errorf("a lock: %v", err)
		}
		must(s.Set(t.Context(), "k", nil))(t)
		down := s.Down()
		store.DropAll()
		<-down
	}
}

// TestTooLargeFirst: a GET that is sent with CONNECT and turns out to be too large fails alone.
func TestTooLargeFirst(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Limits: emulator.Limits{MaxPacketSize: 2000}})
	s := must(client.New(patient(client.Options{Address: store.Addr().String()})))(t)
	defer s.Close()
	for range 3 {
		_, err := s.Get(t.Context(), strings.Repeat("k", 4000))
		as[*mqtt.TooLargeError](t, err)
		must(s.Set(t.Context(), "k", nil))(t)
		must(s.Get(t.Context(), "k"))(t)
		down := s.Down()
		store.DropAll()
		<-down
	}
}

// A slowConn sends one MiB a second.
type slowConn struct{ net.Conn }

func (c slowConn) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(len(b)) * time.Second >> 20)
	return c.Conn.Write(b)
}

// TestSlowUpload: a request that times out behind a large one, which the broker cannot answer yet, does not end the
// connection.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	virtualSlow := func(t *testing.T, test func(t *testing.T, s *client.Session)) {
		virtual(t, client.Options{}, func(t *testing.T, store *emulator.Server, _ *client.Session) {
			s := must(client.Dial(t.Context(), client.Options{
				Address: store.Addr().String(), Timeout: time.Minute,
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					nc, err := store.Dial(ctx, network, address)
					return slowConn{nc}, err
				},
			}))(t)
			defer s.Close()
			test(t, s)
		})
	}
	large := make([]byte, 8<<20)
	t.Run("beside a GET", func(t *testing.T) {
		virtualSlow(t, func(t *testing.T, s *client.Session) {
			time.Sleep(time.Hour) // a connection that was idle
			var beside sync.WaitGroup
			beside.Go(func() {
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if _, err := s.Get(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the GET behind the SET: %v", err)
				}
			})
			must(s.Set(t.Context(), "large", large))(t)
			beside.Wait()
		})
	})
	t.Run("under a lock", func(t *testing.T) {
		virtualSlow(t, func(t *testing.T, s *client.Session) {
			if err := s.WithLock(t.Context(), "lock", func(ctx context.Context, l *client.Lock) error {
				_, err := l.Set(ctx, "large", large)
				return err
			}, client.LockOptions{TTL: 40 * time.Second}); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestValuesAreNotShared: what a caller does with the value of an event, or with the slice that named a holder, changes
// nothing for others.
func TestValuesAreNotShared(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	must(store.Set("k", "before"))(t)
	holder := []byte("holder-1")
	lock := must(s.Lock(t.Context(), "k2", client.LockOptions{Holder: holder, TTL: time.Hour}))(t)
	clear(holder)
	clear(lock.Holder())
	var watches []*client.Watch
	for range 3 {
		w := must(s.Watch(t.Context(), []string{"k", "k2"}))(t)
		defer w.Close()
		watches = append(watches, w)
	}
	must(store.Set("k", "after"))(t)
	for _, w := range watches {
		for seen := ""; seen != "after"; {
			e := must(w.Next(t.Context()))(t)
			if e.Key == "k" {
				if seen = string(e.Value); seen != "before" && seen != "after" {
					t.Fatalf("%s %q", e.Kind, e.Value)
				}
			}
			clear(e.Value)
		}
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRetryForLocks: calls for locks too go on trying to connect, for longer than Options.Timeout.
func TestRetryForLocks(t *testing.T) {
	t.Parallel()
	held := client.LockOptions{Holder: []byte("me"), TTL: time.Hour}
	for name, call := range map[string]func(ctx context.Context, s *client.Session) error{
		"Lock": func(ctx context.Context, s *client.Session) error {
			_, err := s.Lock(ctx, "l")
			return err
		},
		"WithLock": func(ctx context.Context, s *client.Session) error {
			return s.WithLock(ctx, "l", func(context.Context, *client.Lock) error { return nil })
		},
		"AcquireLock": func(ctx context.Context, s *client.Session) error {
			_, err := s.AcquireLock(ctx, "l")
			return err
		},
		"RenewLock": func(ctx context.Context, s *client.Session) error {
			_, err := s.RenewLock(ctx, "held", held)
			return err
		},
		"ReleaseLock": func(ctx context.Context, s *client.Session) error { return s.ReleaseLock(ctx, "held", held.Holder) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, client.Options{}, func(t *testing.T, store *emulator.Server, other *client.Session) {
				must(other.AcquireLock(t.Context(), "held", held))(t)
				begun := time.Now()
				s := must(client.New(client.Options{
					Address: store.Addr().String(), RetryFor: time.Hour, Timeout: 2 * time.Second,
					Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
						if time.Since(begun) < time.Minute {
							return nil, errors.New("the network is down")
						}
						return store.Dial(ctx, network, address)
					},
				}))(t)
				defer s.Close()
				if err := call(t.Context(), s); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestCloseWhileUndoing: Close does not wait until an attempt to acquire a lock, which is being undone, has expired.
func TestCloseWhileUndoing(t *testing.T) {
	t.Parallel()
	virtual(t, client.Options{Timeout: 20 * time.Second}, func(t *testing.T, store *emulator.Server, s *client.Session) {
		undone := make(chan struct{})
		store.Intercept(func(r emulator.Request) emulator.Action {
			switch r.Verb() {
			case "SET":
				return emulator.Action{Drop: true, NoPuback: true}
			case "VDEL":
				close(undone)
			}
			return emulator.Action{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		locked := make(chan error)
		go func() {
			_, err := s.Lock(ctx, "lock", client.LockOptions{TTL: time.Minute})
			locked <- err
		}()
		await.State(t, store, func(s emulator.State) bool { return s.Requests >= 3 })
		cancel()
		<-undone
		begun := time.Now()
		go s.Close()
		if unknown := as[*client.LockUnknownError](t, <-locked); !errors.Is(unknown, client.ErrClosed) {
			t.Errorf("%v, want ErrClosed", unknown)
		}
		if d := time.Since(begun); d > time.Second {
			t.Errorf("after %v", d)
		}
	})
}
