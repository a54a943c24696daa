package client

import (
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// TestLongWords: a request with long words arrives whole, wherever they are, and the value is not copied.
func TestLongWords(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	s, err := Dial(t.Context(), Options{Address: store.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	long := strings.Repeat("v", largeWord)
	for _, c := range []Command{
		Set("k", long),
		Set("k", long+"2", SetOptions{Condition: NX}),
		VDel("k", []byte(long)),
		Set("k", long+long, SetOptions{Condition: NX, Persist: true}),
	} {
		if _, err := s.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		r := &request{s: s, command: c}
		m := r.message()
		if whole := string(m.Payload[:m.LargeAt]) + m.Large + string(m.Payload[m.LargeAt:]); whole != string(wire.AppendRequest(nil, c.words()...)) || len(m.Payload) > 100 {
			t.Errorf("%s: %d bytes and %d at %d", c.Verb(), len(m.Payload), len(m.Large), m.LargeAt)
		}
	}
	if r, err := s.Get(t.Context(), "k"); err != nil || string(r.Value) != long+long {
		t.Errorf("%d bytes, %v", len(r.Value), err)
	}
	// Two long words: one of them is copied.
	if _, err := s.Do(t.Context(), Call([]string{wire.VerbVDel, "k", long + long})); err != nil {
		t.Error(err)
	}
	if m := (&request{s: s, command: Call([]string{"X", long, long})}).message(); len(m.Large) != largeWord || len(m.Payload) < largeWord {
		t.Errorf("%d bytes and %d", len(m.Payload), len(m.Large))
	}
}
