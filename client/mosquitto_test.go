package client

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
)

// attached starts Mosquitto with a store attached to it.
func attached(t *testing.T) *mosquitto.Broker {
	t.Helper()
	return attachedTo(t, "set_tcp_nodelay true")
}

// attachedTo is attached with further lines of configuration.
func attachedTo(t *testing.T, global string) *mosquitto.Broker {
	t.Helper()
	broker := mosquitto.Start(t, "max_queued_messages 0\n"+global, mosquitto.Anonymous)
	store, err := emulator.Attach(t.Context(), emulator.AttachOptions{Address: broker.Addresses[0], ClientID: "store-" + NewClientID()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return broker
}

func TestMosquittoSetGetDelete(t *testing.T) {
	t.Parallel()
	s := watchSession(t, Options{Address: attached(t).Addresses[0]})
	value := []byte("\x00\r\n\xff")
	stored, err := s.Set(t.Context(), "k\x00", value, SetOptions{Condition: NX})
	if err != nil || !stored.Applied {
		t.Fatal(stored, err)
	}
	got, err := s.Get(t.Context(), "k\x00")
	if err != nil || !got.Found || string(got.Value) != string(value) || !got.Version.Equal(stored.Version) {
		t.Fatal(got, err)
	}
	gone, err := s.VDel(t.Context(), "k\x00", value)
	if err != nil || !gone.Deleted {
		t.Fatal(gone, err)
	}
}

// TestMosquittoSettings: Mosquitto's connection settings don't change what a session returns, for single
// requests and for many at a time.
func TestMosquittoSettings(t *testing.T) {
	t.Parallel()
	for _, global := range []string{
		"set_tcp_nodelay true", "set_tcp_nodelay false", "max_inflight_messages 1", "max_packet_size 2000", "max_keepalive 10",
	} {
		t.Run(global, func(t *testing.T) {
			t.Parallel()
			s := watchSession(t, Options{Address: attachedTo(t, global).Addresses[0]})
			const keys, times = 20, 10
			for _, window := range []int{1, keys} {
				p := s.Pipeline(window)
				var sent []*InFlight
				for i := range keys * times {
					f, err := p.Send(t.Context(), Set(fmt.Sprint(i%keys), fmt.Append(nil, window, i)))
					if err != nil {
						t.Fatal(err)
					}
					sent = append(sent, f)
				}
				for _, f := range sent {
					if r, err := f.Wait(context.Background()); err != nil || !r.(SetResult).Applied {
						t.Fatalf("%+v, %v", r, err)
					}
				}
				for i := range keys {
					r, err := s.Get(t.Context(), fmt.Sprint(i))
					last := keys*(times-1) + i
					if err != nil || string(r.Value) != fmt.Sprint(window, last) {
						t.Fatalf("%d holds %q, want %q: %v", i, r.Value, fmt.Sprint(window, last), err)
					}
				}
			}
			_, err := s.Set(t.Context(), "large", make([]byte, 3000))
			if _, tooLarge := errors.AsType[*mqtt.TooLargeError](err); tooLarge != (global == "max_packet_size 2000") {
				t.Errorf("3000 bytes: %v", err)
			}
		})
	}
}

// TestMosquittoWithoutQoS1: a broker that supports only QoS 0 is not asked again.
func TestMosquittoWithoutQoS1(t *testing.T) {
	t.Parallel()
	broker := mosquitto.Start(t, "", mosquitto.Anonymous+"\nmax_qos 0")
	s, err := New(Options{Address: broker.Addresses[0], RetryFor: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, mqtt.ErrQoS0) || !IsPermanent(err) {
		t.Error(err)
	}
}

// TestMosquittoWithoutAStoreSaysSo: nobody subscribes to the request topic, so a write is known not to be
// applied.
func TestMosquittoWithoutAStoreSaysSo(t *testing.T) {
	t.Parallel()
	broker := mosquitto.Start(t, "", mosquitto.Anonymous)
	o := Options{Address: broker.Addresses[0], Timeout: time.Minute}
	s := watchSession(t, o)
	if _, err := s.Get(t.Context(), "k"); !isA[*NoStoreError](err) {
		t.Errorf("get: %v", err)
	}
	if _, err := s.Set(t.Context(), "k", nil); !isA[*NoStoreError](err) || isLostAnswer(err) {
		t.Errorf("set: %v", err)
	}
	if _, err := s.Watch(t.Context(), []string{"k"}); !isA[*NoStoreError](err) {
		t.Errorf("watch: %v", err)
	}
	if _, err := s.AcquireLock(t.Context(), "k"); !isA[*NoStoreError](err) {
		t.Errorf("lock: %v", err)
	}
	if _, err := single(t.Context(), o, Get("k")); !isA[*NoStoreError](err) {
		t.Errorf("once: %v", err)
	}
}

func single(ctx context.Context, o Options, c Command) (Result, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Do(ctx, c)
}

func isLostAnswer(err error) bool {
	_, ok := errors.AsType[*LostReplyError](err)
	return ok
}

// TestMosquittoStoreStarts: a request that had no subscriber is sent again, and processed once.
func TestMosquittoStoreStarts(t *testing.T) {
	t.Parallel()
	broker := mosquitto.Start(t, "", mosquitto.Anonymous)
	for _, c := range []Command{Get("k"), Set("k", []byte("v"), SetOptions{Condition: NX})} {
		var store *emulator.Attached
		start := sync.OnceFunc(func() {
			var err error
			if store, err = emulator.Attach(t.Context(), emulator.AttachOptions{Address: broker.Addresses[0], ClientID: NewClientID()}); err != nil {
				t.Error(err)
			}
		})
		o := Options{Address: broker.Addresses[0], Timeout: time.Minute, Trace: func(e TraceEvent) {
			if e.Type == "PUBACK" && strings.Contains(e.Detail, "0x10") {
				start() // while the client waits, so that the start does not use up its patience with the broker
			}
		}}
		r, err := single(t.Context(), o, c)
		if store == nil {
			t.Fatalf("%s: no store was started: %v", c.Verb(), err)
		}
		if err != nil {
			t.Errorf("%s: %v", c.Verb(), err)
		} else if set, ok := r.(SetResult); ok && !set.Applied {
			t.Errorf("%s: not applied, so it was processed twice", c.Verb())
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestMosquittoWatchLosesNothingSilently(t *testing.T) {
	t.Parallel()
	chaos(t, attached(t).Addresses[0], 200, 0, nil)
}

func TestMosquittoRestartsAndTheWatchGoesOn(t *testing.T) {
	t.Parallel()
	broker := attached(t)
	s := watchSession(t, Options{Address: broker.Addresses[0]})
	put := func(value string) {
		if _, err := s.Set(t.Context(), "k", []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	put("1")
	w := startWatch(t, s, WatchOptions{}, "k")
	wantEvents(t, w, `initial k "1"`)
	for i := range 3 {
		broker.Restart(t)
		wantEvents(t, w, `down`, fmt.Sprintf(`resync k "%d" proven`, i+1), `up`)
		put(fmt.Sprint(i + 2))
		wantEvents(t, w, fmt.Sprintf(`set k "%d"`, i+2))
	}
}

// TestMosquittoRestartsWithAnotherPassword: the session continues with the password that Password returns.
func TestMosquittoRestartsWithAnotherPassword(t *testing.T) {
	t.Parallel()
	users := filepath.Join(t.TempDir(), "users")
	rotate := func(password string) {
		t.Helper()
		out, err := exec.Command("mosquitto_passwd", "-c", "-b", users, "ann", password).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			t.Skipf("mosquitto is not installed: %v", err)
		}
		if err != nil {
			t.Fatalf("mosquitto_passwd: %v: %s", err, out)
		}
	}
	rotate("one")
	broker := mosquitto.Start(t, "", "password_file "+users, mosquitto.Anonymous)
	var password atomic.Value
	password.Store("one")
	s := watchSession(t, Options{
		Address: broker.Addresses[0], Username: "ann",
		Password: func() ([]byte, error) { return []byte(password.Load().(string)), nil },
	})
	// No store is attached. A NoStoreError shows that the broker accepted the login.
	taken := func() error {
		_, err := s.Get(t.Context(), "k")
		if isA[*NoStoreError](err) {
			return nil
		}
		return err
	}
	if err := taken(); err != nil {
		t.Fatal(err)
	}
	rotate("two")
	broker.Restart(t)
	<-s.current().Done()
	if err := taken(); !isLoginRefusal(err) {
		t.Errorf("the old password: %v", err)
	}
	password.Store("two")
	if err := taken(); err != nil {
		t.Errorf("the new password: %v", err)
	}
}

func TestMosquittoTakesOver(t *testing.T) {
	t.Parallel()
	address := attached(t).Addresses[0]
	first := watchSession(t, Options{Address: address, ClientID: "same"})
	second := watchSession(t, Options{Address: address, ClientID: "same"})
	<-first.current().Done()
	if _, err := second.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
}
