package client_test

import (
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// TestMeasureSkew: the true skew lies within the bound, even with a local clock so far ahead that the store
// refuses ordinary writes, and with a slow store.
func TestMeasureSkew(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{0, 30 * time.Second, 2 * time.Minute, 5 * time.Hour, -30 * time.Second, -2 * time.Minute} {
		store := emulator.Start(t, emulator.Options{Skew: -ahead})
		for _, latency := range []time.Duration{0, 20 * time.Millisecond} {
			store.Intercept(always(emulator.Action{DelayReply: latency}))
			s := dial(t, store, client.Options{})
			skew, err := s.MeasureSkew(t.Context(), "scratch", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if off := (skew.Ahead - ahead).Abs(); off > skew.Bound {
				t.Errorf("ahead by %v: measured %v ± %v", ahead, skew.Ahead, skew.Bound)
			}
			if skew.Bound < latency/2 {
				t.Errorf("a bound of %v for a reply that takes %v", skew.Bound, latency)
			}
		}
	}
}

func TestMeasureSkewErrors(t *testing.T) {
	t.Parallel()
	store, s := open(t)
	if _, err := s.MeasureSkew(t.Context(), "", time.Minute); err == nil {
		t.Error("an empty key was taken")
	}
	store.Intercept(always(emulator.Action{Rewrite: func(a *emulator.Answer) { a.Delete(wire.PropTimestamp) }}))
	_, err := s.MeasureSkew(t.Context(), "scratch", time.Minute)
	as[*client.ReplyError](t, err)
}
