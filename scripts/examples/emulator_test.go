package examples

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

func TestLease(t *testing.T) {
	store := emulator.Start(t) // an empty store on a free port, gone when the test ends
	takeLease(t, store.URL())  // the program under test

	if lease, ok := store.Get("lease"); !ok || string(lease.Value) != "alice" {
		t.Fatalf("lease: got %q, want alice", lease.Value)
	}
	store.FastForward(10 * time.Second) // no sleeping
	if _, ok := store.Get("lease"); ok {
		t.Error("the lease did not expire")
	}
}

func takeLease(t *testing.T, url string) {
	t.Helper()
	s, err := client.Dial(t.Context(), client.Options{Address: strings.TrimPrefix(url, "mqtt://")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := client.SetOptions{Condition: client.NEX, TTL: 10 * time.Second}
	if r, err := s.Set(t.Context(), "lease", []byte("alice"), o); err != nil || !r.Applied {
		t.Fatalf("take the lease: %v, %v", r, err)
	}
}

func restricted(t *testing.T) *emulator.Server {
	policy, err := emulator.ParseRules("ann:ReadWrite:colors/*", "*:Read:public")
	if err != nil {
		t.Fatal(err)
	}
	return emulator.Start(t, emulator.Options{
		CheckLogin: emulator.Passwords(map[string]string{"ann": "secret"}),
		Policy:     policy,
	})
}

func TestRestricted(t *testing.T) {
	address := strings.TrimPrefix(restricted(t).URL(), "mqtt://")
	s, err := client.Dial(t.Context(), client.Options{Address: address, Username: "ann", Password: client.Secret("secret")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Set(t.Context(), "colors/red", []byte("1")); err != nil {
		t.Error(err)
	}
	if _, err := s.Set(t.Context(), "public", []byte("1")); !errors.Is(err, client.ErrNotAuthorized) {
		t.Errorf("write public: %v", err)
	}
}
