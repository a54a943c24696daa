package config

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10s": 10 * time.Second, "500ms": 500 * time.Millisecond, "2m": 2 * time.Minute, "1h30m": 90 * time.Minute,
		"14d": 14 * 24 * time.Hour, "0d": 0, "0": 0, "-1s": -time.Second, ".5s": 500 * time.Millisecond,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"15000": `"15000" has no unit: 15000ms or 15000s?`,
		"0.25":  `"0.25" has no unit: 0.25ms or 0.25s?`,
		"-5":    `"-5" has no unit: -5ms or -5s?`,
		"1h30":  `"1h30" has no unit: 1h30ms or 1h30s?`,
		"":      `"": expected a duration such as 500ms, 10s or 2m`,
		"soon":  `"soon": expected a duration such as 500ms, 10s or 2m`,
		"1e3":   `"1e3": expected a duration such as 500ms, 10s or 2m`,
		"5 s":   `"5 s": expected a duration such as 500ms, 10s or 2m`,
		"1.5d":  `"1.5d": expected a duration such as 500ms, 10s or 2m`,
		"1d2h":  `"1d2h": expected a duration such as 500ms, 10s or 2m`,
	} {
		if got, err := ParseDuration(text); err == nil || err.Error() != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
}

// FuzzParseDuration: every accepted text means the same to Go, or is a number of days, and only 0 needs no unit. The duration that an error
// suggests is accepted.
func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"", "0", "+0", "-0", "0.0", "5", "-5", "15000", "1.5", "1h30", "10s", "1e3", "0x10", "5 s", "9223372036854775807", "9233720307", "\x00-5", "14d", "65536d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseDuration(text)
		want, goErr := time.ParseDuration(text)
		if days, ok := strings.CutSuffix(text, "d"); ok {
			var n uint64
			if n, goErr = strconv.ParseUint(days, 10, 16); goErr == nil {
				want = time.Duration(n) * 24 * time.Hour
			}
		}
		if (err == nil) != (goErr == nil) || got != want && err == nil {
			t.Fatalf("ParseDuration(%q) = %v, %v; Go has %v, %v", text, got, err, want, goErr)
		}
		if err == nil && got != 0 && strings.Trim(text, "+-.0123456789") == "" {
			t.Fatalf("%q has no unit, and is %v", text, got)
		}
		if e, ok := errors.AsType[*NoUnitError](err); ok {
			for _, unit := range []string{"ms", "s"} {
				if _, err := ParseDuration(e.Text + unit); err != nil {
					t.Errorf("%q is proposed for %q: %v", e.Text+unit, text, err)
				}
			}
		}
	})
}
