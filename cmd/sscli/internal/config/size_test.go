package config

import (
	"fmt"
	"math"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "7": 7, "7B": 7, "64KiB": 64 << 10, "64MiB": 64 << 20, "2gi": 2 << 30, "1TiB": 1 << 40, "10MB": 10_000_000, "3k": 3000, "1g": 1_000_000_000,
		"": -1, "MiB": -1, "-1": -1, "1.5MiB": -1, "1 MiB": -1, "1x": -1, "1iB": -1, "1i": -1, "1KM": -1, "1BB": -1, "9999999TiB": -1, "99999999999999999999": -1, "+1": -1, "0x10": -1,
	} {
		if got, err := ParseSize(text); (err != nil) != (want < 0 || want > math.MaxInt) || err == nil && int64(got) != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

// FuzzParseSize: a size is its number times its unit, and the printed form of a size parses to the same size.
func FuzzParseSize(f *testing.F) {
	f.Add("64MiB")
	f.Add("7")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			return
		}
		if again, err := ParseSize(fmt.Sprint(n)); err != nil || n < 0 || again != n {
			t.Errorf("%q: %d, then %d, %v", text, n, again, err)
		}
		if n%1024 == 0 {
			if again, err := ParseSize(fmt.Sprintf("%dKiB", n/1024)); err != nil || again != n {
				t.Errorf("%q: %d, in KiB %d, %v", text, n, again, err)
			}
		}
	})
}
