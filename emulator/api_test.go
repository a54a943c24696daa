package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ours "github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
)

// TestEntries sets keys with a life and a fence, and deletes them.
func TestEntries(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	token, err := store.Set("lock", "me")
	if err != nil {
		t.Fatal(err)
	}
	expires := store.Now().Add(time.Minute)
	version, err := store.SetEntry("k", emulator.Entry{Value: []byte("v"), Fence: token, Persist: true, Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	e, found := store.Get("k")
	if late := e.Expires.Sub(expires); !found || string(e.Value) != "v" || !e.Version.Equal(version) || !e.Fence.Equal(token) || !e.Persist || late < -time.Second || late > time.Minute {
		t.Errorf("got %+v, want to expire at %v", e, expires)
	}
	for _, want := range []bool{true, false} {
		if found, err := store.Delete("k"); found != want || err != nil {
			t.Errorf("Delete: %t, %v, want %t", found, err, want)
		}
	}
	if _, err := store.SetEntry("k", emulator.Entry{Expires: store.Now().Add(-time.Second)}); err == nil {
		t.Error("a key was set that had expired")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Delete("k"); !errors.Is(err, emulator.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestRestart: a restart ends connections, and keeps or loses the keys, also those of the data file.
func TestRestart(t *testing.T) {
	t.Parallel()
	data := emulator.Data{File: filepath.Join(t.TempDir(), "data")}
	for _, keep := range []bool{true, false} {
		store := emulator.Start(t, emulator.Options{Data: data})
		token, err := store.Set("k", "v")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.SetEntry("fenced", emulator.Entry{Fence: token}); err != nil {
			t.Fatal(err)
		}
		s, err := ours.Dial(t.Context(), ours.Options{Address: store.Addr().String(), Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		down := s.Down()
		if err := store.Restart(keep); err != nil {
			t.Fatal(err)
		}
		<-down
		got, err := s.Get(t.Context(), "k")
		if err != nil || got.Found != keep {
			t.Errorf("kept %t: found %t, %v", keep, got.Found, err)
		}
		s.Close()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		store = emulator.Start(t, emulator.Options{Data: data})
		if n := len(store.Keys()); (n == 2) != keep || (n == 0) == keep {
			t.Errorf("kept %t: the file has %d keys", keep, n)
		}
		store.Close()
	}
}

// TestRestartForgets: requests and replies that a restart overtakes are lost.
func TestRestartForgets(t *testing.T) {
	t.Parallel()
	for _, action := range []emulator.Action{{Delay: time.Hour}, {DelayReply: time.Hour}} {
		store := emulator.Start(t)
		s, err := ours.Dial(t.Context(), ours.Options{Address: store.Addr().String(), Timeout: 3 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		store.Intercept(func(emulator.Request) emulator.Action { return action })
		f, err := s.Pipeline(1).Send(t.Context(), ours.Set("k", ""))
		if err != nil {
			t.Fatal(err)
		}
		await.State(t, store, func(s emulator.State) bool { return s.Delayed == 1 })
		if err := store.Restart(false); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Wait(t.Context()); err == nil {
			t.Error("a request that a restart overtook was answered")
		}
		if n := store.State().Delayed; n != 0 {
			t.Errorf("%d are delayed", n)
		}
		before := store.State()
		store.FastForward(2 * time.Hour)
		if after := store.State(); len(store.Keys()) > 0 || after.Delayed != 0 || after.Undelivered != before.Undelivered || after.Expired != before.Expired {
			t.Errorf("after the restart: %q, %+v", store.Keys(), after)
		}
	}
}

// TestDeleteFenced deletes a key whose fence changes all the time.
func TestDeleteFenced(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var writer sync.WaitGroup
	defer writer.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	writer.Go(func() {
		for i := int64(1); ctx.Err() == nil; i++ {
			if _, err := store.SetEntry("k", emulator.Entry{Fence: ours.Version{Wall: i, Node: "n"}}); err != nil {
				t.Error(err)
			}
		}
	})
	for deleted := 0; deleted < 20; {
		found, err := store.Delete("k")
		if err != nil {
			t.Fatal(err)
		}
		if found {
			deleted++
		}
	}
}

// TestRestartEmpty: an empty restart deletes keys whatever the rules and fences say, in one step: a client that
// connects again finds no key.
func TestRestartEmpty(t *testing.T) {
	t.Parallel()
	rules, err := emulator.ParseRules("*:ReadWrite:z*")
	if err != nil {
		t.Fatal(err)
	}
	const rounds, keys = 10, 300
	for range rounds {
		store := emulator.Start(t, emulator.Options{Policy: rules, Load: func(yield func(emulator.Seed, error) bool) {
			for i := range keys {
				if !yield(emulator.Seed{Key: fmt.Sprintf("b%03d", i), Value: []byte("v")}, nil) {
					return
				}
			}
		}})
		if _, err := store.Set("z", "v"); err != nil {
			t.Fatal(err)
		}
		s, err := ours.Dial(t.Context(), ours.Options{Address: store.Addr().String(), Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Watch(t.Context(), []string{"z"})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Restart(false); err != nil {
			t.Error(err)
		}
		if left := len(store.Keys()); left > 0 {
			t.Errorf("%d keys are left", left)
		}
		for {
			e, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == ours.EventDelete {
				t.Fatal("a client was notified of a deletion")
			}
			if e.Kind == ours.EventResync {
				if e.HasValue || e.Continuity != ours.ContinuityLost {
					t.Errorf("a client that connected again found %+v", e)
				}
				break
			}
		}
		s.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Restart(false); !errors.Is(err, emulator.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// TestInterceptNotifications drops and delays notifications, in virtual time.
func TestInterceptNotifications(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := emulator.New(emulator.Options{InProcess: true})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		s, err := ours.New(ours.Options{Address: "store:1883", Dial: store.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		w, err := s.Watch(t.Context(), []string{"now", "late", "never"})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		store.InterceptNotifications(func(n emulator.Notification) emulator.NotificationAction {
			if n.ClientID != s.ClientID() || len(n.Payload) == 0 {
				t.Errorf("intercepted %+v", n)
			}
			switch n.Key {
			case "late":
				return emulator.NotificationAction{Delay: time.Hour}
			case "never":
				return emulator.NotificationAction{Drop: true}
			}
			return emulator.NotificationAction{}
		})
		for _, key := range []string{"never", "late", "now"} {
			if _, err := store.Set(key, "v"); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		var got []string
		for e, err := range w.Events(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == ours.EventSet {
				got = append(got, fmt.Sprint(e.Key, " ", time.Since(began).Round(time.Hour)))
			}
			if len(got) == 2 {
				break
			}
		}
		if want := []string{"now 0s", "late 1h0m0s"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func ExampleServer_Dial() {
	store, err := emulator.New(emulator.Options{InProcess: true}) // without a port: no address, and virtual time
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, err := ours.New(ours.Options{Address: "store:1883", Dial: store.Dial})
	if err != nil {
		panic(err)
	}
	defer s.Close()

	if _, err := store.SetEntry("setpoint", emulator.Entry{Value: []byte("21.5"), Expires: store.Now().Add(time.Minute)}); err != nil {
		panic(err)
	}
	get, err := s.Get(context.Background(), "setpoint")
	fmt.Printf("%s %v\n", get.Value, err)
	store.FastForward(time.Minute)
	get, err = s.Get(context.Background(), "setpoint")
	fmt.Println(get.Found, err)
	// Output:
	// 21.5 <nil>
	// false <nil>
}
