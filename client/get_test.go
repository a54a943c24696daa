package client_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

func TestGet(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		version := put(t, s, "k", "1234")
		r := must(s.Get(t.Context(), "k"))(t)
		if !r.Found || string(r.Value) != "1234" {
			t.Errorf("got %q, %t", r.Value, r.Found)
		}
		if !r.Version.Equal(version) || r.Version.String() != version.String() {
			t.Errorf("got version %v, want %v", r.Version, version)
		}
		if r.RTT <= 0 || len(r.Warnings)+len(r.Notes) > 0 {
			t.Errorf("got %+v", r)
		}
	})
}

func TestGetMissing(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		r := must(s.Get(t.Context(), "nothing"))(t)
		if r.Found || r.Value != nil {
			t.Errorf("got %q, %t", r.Value, r.Found)
		}
		if !r.Version.IsZero() || len(r.Warnings)+len(r.Notes) > 0 {
			t.Errorf("got %+v", r)
		}
	})
}

// TestGetEmpty: an empty value is not a missing key (protocol.md 2.3).
func TestGetEmpty(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		set := must(s.Set(t.Context(), "k", nil))(t)
		r := must(s.Get(t.Context(), "k"))(t)
		if !r.Found || len(r.Value) != 0 {
			t.Errorf("got %q, %t", r.Value, r.Found)
		}
		if !r.Version.Equal(set.Version) {
			t.Errorf("got version %v, want %v", r.Version, set.Version)
		}
	})
}

func TestAnyBytes(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, store *emulator.Server, s *client.Session) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for _, b := range []string{
			"\x00", "\r\n", "a\r\n$3\r\nb", `"`, `'`, "\\", "$-1\r\n", "-ERR no\r\n", "+OK\r\n", " ", "\xff\xfe", "\xed\xa0\x80",
			"🔑", "PX", "NX", "+", "#", "/", "-", string(all), strings.Repeat("k", 30_000),
		} {
			set := must(s.Set(t.Context(), b, []byte(b)))(t)
			if !set.Applied {
				t.Fatalf("%.20q was not stored", b)
			}
			if store != nil {
				if e, ok := store.Get(b); !ok || string(e.Value) != b {
					t.Errorf("the store has %.20q for %.20q", e.Value, b)
				}
			}
			r := must(s.Get(t.Context(), b))(t)
			if !r.Found || string(r.Value) != b {
				t.Errorf("got %.20q for %.20q", r.Value, b)
			}
			if r := must(s.VDel(t.Context(), b, []byte(b)))(t); !r.Deleted {
				t.Errorf("VDEL of %.20q: got %+v", b, r)
			}
		}
	})
}

func TestLargeValue(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		large := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
		must(s.Set(t.Context(), "k", large))(t)
		r := must(s.Get(t.Context(), "k"))(t)
		other := must(s.Set(t.Context(), "l", bytes.Repeat([]byte("x"), len(large))))(t)
		must(s.Get(t.Context(), "l"))(t) // would overwrite a value that shares its memory
		if !bytes.Equal(r.Value, large) || !other.Applied {
			t.Errorf("got %d bytes, want %d", len(r.Value), len(large))
		}
	})
}

// TestValueIsCopied: Set takes the value as it is at the time of the call.
func TestValueIsCopied(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		before := []byte("before")
		set := client.Set("k", before)
		words := []string{wire.VerbSet, "l", "before"}
		call := client.Call(words)
		copy(before, "after!")
		words[2] = "after!"
		must(s.Do(t.Context(), set))(t)
		must(s.Do(t.Context(), call))(t)
		for _, key := range []string{"k", "l"} {
			if v, _ := value(t, s, key); v != "before" {
				t.Errorf("the store has %q for %q", v, key)
			}
		}
	})
}
