package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/wire"
)

// TestRehearsal: the store applies all writes that a rehearsal let pass, and a rehearsal changes nothing.
func TestRehearsal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	value := bytes.Repeat([]byte("v"), 3*Large)
	passed, refused := 0, 0
	for round := range 300 {
		now := time.UnixMilli(1696374425000)
		s := New(Options{Now: func() time.Time { return now }, MaxKeys: 12, MaxBytes: [...]int{20_000, 200_000, 8 << 20}[round%3]})
		sizes := [...]int{2000, 30_000, len(value)}
		write := func() Write {
			w := Write{Key: fmt.Appendf(nil, "key%0*d", rng.IntN(3)*100, rng.IntN(16)), Delete: rng.IntN(4) == 0}
			if !w.Delete {
				w.Value = value[:rng.IntN(sizes[round%3])]
				if rng.IntN(2) == 0 {
					w.Expires = now.Add(time.Hour)
				}
			}
			return w
		}
		for range 30 {
			s.Apply(write())
		}
		for range 20 {
			writes, rehearsal, refusal := make([]Write, 1+rng.IntN(8)), s.Rehearse(), ""
			keys, size := s.Len(), s.Bytes()
			for i := range writes {
				if writes[i] = write(); refusal == "" {
					refusal = rehearsal.Apply(&writes[i])
				}
			}
			if s.Len() != keys || s.Bytes() != size {
				t.Fatal("a rehearsal changes the store")
			}
			if refusal != "" {
				refused++
				s.Apply(Write{Key: writes[0].Key, Delete: true})
				continue
			}
			passed++
			for i, w := range writes {
				if text := s.Apply(w); text != "" {
					t.Fatalf("round %d: write %d of %d, of %d bytes: %s", round, i, len(writes), len(w.Value), text)
				}
			}
		}
	}
	if passed < 1000 || refused < 1000 {
		t.Errorf("%d rehearsals passed, and %d did not", passed, refused)
	}

	s := New(Options{Authorize: func(_, _, key string, _ bool) bool { return key != "secret" }})
	for want, w := range map[string]Write{
		wire.TextEmptyKey: {}, textLongKey: {Key: make([]byte, maxKey+1), Delete: true}, wire.TextNotAuthorized: {Key: []byte("secret")},
		textLongValue: {Key: []byte("k"), Value: make([]byte, maxValue+1)}, "": {Key: []byte("k"), Value: value},
	} {
		rehearsal := s.Rehearse()
		if got, applied := rehearsal.Apply(&w), s.Apply(w); got != want || applied != want {
			t.Errorf("got %q, and then %q, want %q", got, applied, want)
		}
	}
	s.index.arena.limit = len(s.index.arena.blocks) + 1
	rehearsal := s.Rehearse()
	if first, second := rehearsal.Apply(&Write{Key: []byte("a")}), rehearsal.Apply(&Write{Key: []byte("b")}); first != "" || second != wire.TextQuota {
		t.Errorf("with room for one block: %q and %q", first, second)
	}
}
