package check

import (
	"math/big"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
)

// judged returns the state of a check with one condition, of a key that is known so.
func judged(t *testing.T, b *broker, k *seen, name, text string) state {
	t.Helper()
	s := &spec{kind: aKey, target: "k"}
	for _, c := range conditions() {
		if c.name == name {
			if s.kind = c.on[0]; s.kind == aBroker {
				s.target = ""
			}
			if err := s.set(c, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	v := newView("", nil, []*spec{s}, 0, false, false)
	v.broker, v.seen[s] = *b, k
	result := v.judge(s, time.Now())
	t.Logf("%s %s: %s, %q", name, text, result.state, result.problems)
	return result.state
}

// TestClocks: what a reading of the store's clock proves, and what it does not.
func TestClocks(t *testing.T) {
	now := time.Now()
	version := func(ago time.Duration, counter uint64) client.Version {
		return client.Version{Wall: now.Add(-ago).UnixMilli(), Counter: counter, Node: "n"}
	}
	for name, tt := range map[string]struct {
		skew   client.Skew // how far this clock is ahead of the reading
		k      seen
		newest time.Duration // how far the newest version is ahead of this clock, without a reading
		unread bool
		name   string
		text   string
		want   state
	}{
		"clocks agree":                              {skew: client.Skew{Exact: true}, name: "skew", text: "1s", want: ok},
		"this clock is fast":                        {skew: client.Skew{Ahead: 50 * time.Second, Exact: true}, name: "skew", text: "1s", want: critical},
		"this clock is slow":                        {skew: client.Skew{Ahead: -50 * time.Second, Exact: true}, name: "skew", text: "1s", want: critical},
		"the reading is too coarse":                 {skew: client.Skew{Bound: 2 * time.Second, Exact: true}, name: "skew", text: "1s", want: unknown},
		"a right clock behind a fast client":        {skew: client.Skew{Ahead: -50 * time.Second}, name: "skew", text: "1s", want: unknown},
		"a fast clock that the store's follows":     {skew: client.Skew{Ahead: 500 * time.Millisecond}, name: "skew", text: "1s", want: unknown},
		"a clock that is fast in any case":          {skew: client.Skew{Ahead: 5 * time.Second}, name: "skew", text: "1s", want: critical},
		"within a minute in any case":               {skew: client.Skew{Ahead: time.Second}, name: "skew", text: "2m", want: ok},
		"an exact version":                          {skew: client.Skew{Exact: true}, k: seen{version: version(5*time.Second, 0)}, name: "max-age", text: "10s", want: ok},
		"an exact version that is old":              {skew: client.Skew{Exact: true}, k: seen{version: version(15*time.Second, 0)}, name: "max-age", text: "10s", want: critical},
		"a version that may be ahead":               {skew: client.Skew{Exact: true}, k: seen{version: version(5*time.Second, 1)}, name: "max-age", text: "10s", want: unknown},
		"one that is young enough in any case":      {skew: client.Skew{Exact: true}, k: seen{version: version(5*time.Second, 1)}, name: "max-age", text: "10m", want: ok},
		"one that is old in any case":               {skew: client.Skew{Exact: true}, k: seen{version: version(11*time.Minute, 1)}, name: "max-age", text: "10m", want: critical},
		"one that was seen before":                  {skew: client.Skew{Ahead: -50 * time.Second}, k: seen{version: version(-50*time.Second, 1), since: now.Add(-5 * time.Second)}, name: "max-age", text: "2s", want: critical},
		"one that was another a moment ago":         {skew: client.Skew{Ahead: -50 * time.Second}, k: seen{version: version(-50*time.Second, 1), after: now.Add(-5 * time.Second)}, name: "max-age", text: "10s", want: ok},
		"old enough in any case":                    {skew: client.Skew{Exact: true}, k: seen{version: version(15*time.Second, 1)}, name: "min-age", text: "10s", want: ok},
		"not old enough in any case":                {skew: client.Skew{Exact: true}, k: seen{version: version(5*time.Second, 0)}, name: "min-age", text: "10s", want: critical},
		"without a reading":                         {unread: true, k: seen{version: version(5*time.Second, 0)}, name: "max-age", text: "10s", want: ok},
		"without a reading, and a version ahead":    {unread: true, newest: 50 * time.Second, k: seen{version: version(5*time.Second, 0)}, name: "max-age", text: "10s", want: unknown},
		"without a version":                         {skew: client.Skew{Exact: true}, name: "max-age", text: "10s", want: unknown},
		"without a version, but it was seen before": {skew: client.Skew{Exact: true}, k: seen{since: now.Add(-15 * time.Second)}, name: "max-age", text: "10s", want: critical},
	} {
		t.Run(name, func(t *testing.T) {
			b := &broker{drift: time.Minute, newest: now.Add(tt.newest)}
			if !tt.unread {
				b.clock = b.clockOf(tt.skew, now)
			}
			tt.k.read, tt.k.found = true, true
			if got := judged(t, b, &tt.k, tt.name, tt.text); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzNumber: numbers are compared as the rational numbers that they are, and written as such.
func FuzzNumber(f *testing.F) {
	for _, pair := range [][2]string{{"1795874478704000001", "1795874478704000000"}, {"0.1", "0.10"}, {"-5", "+3"}, {"1e3", "1000"}, {".5", "-0"}, {"1e-300", "0"}, {"007", "7."}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, isX := parseNumber(a)
		y, isY := parseNumber(b)
		if !isX || !isY || len(a)+len(b) > 1000 {
			return
		}
		p, ok1 := new(big.Rat).SetString(a)
		q, ok2 := new(big.Rat).SetString(b)
		if !ok1 || !ok2 {
			t.Fatalf("%q or %q is no number", a, b)
		}
		if got, want := x.compare(y), p.Cmp(q); got != want {
			t.Errorf("%q and %q: %d, want %d", a, b, got, want)
		}
		if text := x.plain(); len(text) <= maxPlain {
			if r, ok := new(big.Rat).SetString(text); !ok || r.Cmp(p) != 0 {
				t.Errorf("%q is written %s", a, text)
			}
		}
	})
}

// TestApart: what is said of a duration beyond its limit is never the text of the limit.
func TestApart(t *testing.T) {
	for limit, over := range map[time.Duration]time.Duration{
		3 * time.Second: 3*time.Second + time.Nanosecond, 2 * time.Minute: 2*time.Minute + time.Millisecond,
		time.Hour: time.Hour + time.Second, 48 * time.Hour: 48*time.Hour + time.Minute,
	} {
		m := lasting("held", over)
		for _, at := range []time.Duration{limit, limit - limit/8} {
			said, bound := m.apart(numberOf(at.Seconds())), m.show(numberOf(at.Seconds()))
			if said == bound {
				t.Errorf("held for %s, expected at most %s", said, bound)
			}
		}
	}
}
