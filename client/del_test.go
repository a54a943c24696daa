package client_test

import (
	"testing"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

func TestDel(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		before := put(t, s, "k", "v")
		r := must(s.Del(t.Context(), "k"))(t)
		if !r.Deleted || !r.Version.Equal(before) || len(r.Warnings)+len(r.Notes) > 0 {
			t.Errorf("got %+v", r)
		}
		if r := must(s.Del(t.Context(), "k"))(t); r.Deleted || len(r.Warnings)+len(r.Notes) > 0 {
			t.Errorf("missing: got %+v", r)
		}
	})
}

func TestVDel(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		put(t, s, "k", "v")
		for _, test := range []struct {
			value string
			want  int64
		}{
			{"w", -1}, {"", -1}, {"v", 1}, {"v", 0},
		} {
			r := must(s.VDel(t.Context(), "k", []byte(test.value)))(t)
			if count(r) != test.want || len(r.Warnings)+len(r.Notes) > 0 {
				t.Errorf("VDEL k %q: got %+v, want %d", test.value, r, test.want)
			}
		}
	})
}
