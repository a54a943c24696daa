package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/emulator"
)

func TestParseMix(t *testing.T) {
	for text, want := range map[string]string{
		"get":               "get",
		"get=4,set=1":       "get get get get set",
		"set=3, DEL=1":      "set set set del",
		"get=0,set=2":       "set set",
		"get=1000,set=1000": strings.Repeat("get ", 1000) + strings.Repeat("set ", 999) + "set",
	} {
		got, err := parseMix(text)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "get=", "get=x", "get=-1", "get=1001", "scan", "get=1,get=2", "get=0", "get=1,", "get=99999999999999999999"} {
		if got, err := parseMix(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// FuzzParseMix: writing a parsed mix and parsing it again gives the same mix.
func FuzzParseMix(f *testing.F) {
	for _, text := range []string{"get=80,set=20", "del", "set=3,get=7,del=10"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		verbs, err := parseMix(text)
		if err != nil {
			return
		}
		counts := make(map[string]int)
		for _, v := range verbs {
			counts[v]++
		}
		var parts []string
		for _, v := range slices.Compact(slices.Clone(verbs)) {
			parts = append(parts, fmt.Sprintf("%s=%d", v, counts[v]))
		}
		again, err := parseMix(strings.Join(parts, ","))
		if err != nil || !slices.Equal(again, verbs) {
			t.Errorf("%q: %q, again %q, %v", text, verbs, again, err)
		}
	})
}

// TestBenchRateCountsWhatWasDue: a stalled store delays every request that is due during the stall. With a rate, each
// of them counts as slow.
func TestBenchRateCountsWhatWasDue(t *testing.T) {
	t.Parallel()
	const still, rate, count = 2 * time.Second, 25, 50
	slow := func(f benchFlags) (over int64) {
		t.Helper()
		store := emulator.Start(t)
		var first sync.Once
		store.Intercept(func(emulator.Request) (a emulator.Action) {
			first.Do(func() { a.DelayReply = still })
			return a
		})
		f.clients, f.inflight, f.keys, f.mix, f.count = 1, 1, 1, "set", count
		b, err := newBenchmark(&app.App{Env: os.LookupEnv}, f)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.dial(t.Context(), client.Options{Address: store.Addr().String(), Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.sessions[0].Close() }()
		b.a.Settings.Quiet = true
		b.measure(t.Context())
		if b.first != nil {
			t.Fatal(b.first)
		}
		for _, bar := range b.results["set"].latency.Distribution() {
			if bar.To >= (still / 5).Microseconds() {
				over += bar.Count
			}
		}
		return over
	}
	// One request is due every 40 ms: at least the first 40 wait for 400 ms or more.
	if n := slow(benchFlags{rate: rate}); n < 40 {
		t.Errorf("%d requests that were due waited", n)
	}
	if n := slow(benchFlags{}); n < 1 || n > count/2 {
		t.Errorf("%d requests of a closed loop waited", n)
	}
}

// TestLifetime: the keys outlive the measurement, even if it ends only after a number of requests.
func TestLifetime(t *testing.T) {
	for _, tt := range []struct {
		f    benchFlags
		want time.Duration
	}{
		{benchFlags{count: 1}, 24*time.Hour + keyLifetime},
		{benchFlags{count: 1, length: usage.Duration{Duration: time.Hour}}, time.Hour + keyLifetime},
		{benchFlags{}, 10*time.Second + keyLifetime},
	} {
		tt.f.clients, tt.f.inflight, tt.f.keys, tt.f.mix = 1, 1, 1, "get=1"
		b, err := newBenchmark(&app.App{Env: os.LookupEnv}, tt.f)
		if err != nil {
			t.Fatal(err)
		}
		store := emulator.Start(t)
		if err := b.dial(t.Context(), client.Options{Address: store.Addr().String(), Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.sessions[0].Do(t.Context(), b.command("set", "k")); err != nil {
			t.Fatal(err)
		}
		if e, _ := store.Get("k"); e.Expires.Sub(store.Now()).Round(time.Minute) != tt.want.Round(time.Minute) {
			t.Errorf("%+v: expires in %v, want %v", tt.f, e.Expires.Sub(store.Now()), tt.want)
		}
		if err := b.sessions[0].Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDueAfter: a request of a rate near 0 is due late, not at once.
func TestDueAfter(t *testing.T) {
	for _, tt := range []struct {
		n    int64
		rate float64
		want time.Duration // at least
	}{{1, 1e-300, 0}, {2, 100, 10 * time.Millisecond}, {20, 1e-10, 90 * 365 * 24 * time.Hour}, {2, 5e-324, 90 * 365 * 24 * time.Hour}} {
		if got := dueAfter(tt.n, tt.rate); got < tt.want || tt.n == 1 && got > 0 {
			t.Errorf("request %d at %v a second is due after %v, want %v", tt.n, tt.rate, got, tt.want)
		}
	}
}

// TestDue: with --rate, requests are also due, and may be left out, if -n limits their number.
func TestDue(t *testing.T) {
	for _, tt := range []struct {
		rate  float64
		count int64
		want  int64 // in two seconds
	}{{0, 0, 0}, {0, 10, 0}, {100, 0, 200}, {100, 50, 50}, {100, 1000, 200}} {
		b := benchmark{f: benchFlags{rate: tt.rate, count: tt.count}}
		if got := b.due(2 * time.Second); got != tt.want {
			t.Errorf("--rate %v -n %d: %d were due, want %d", tt.rate, tt.count, got, tt.want)
		}
	}
}
