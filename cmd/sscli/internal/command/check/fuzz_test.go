package check

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// FuzzFile: a file of checks is refused with a line, or its checks are judged without a panic, whatever the value
// is, and printed as a plugin and as metrics whose lines are whole.
func FuzzFile(f *testing.F) {
	f.Add("checks:\n- {key: a, max-age: \"10m,1h\", json: .a, min: 1, value: true}\n", "{\"a\": 1}", int64(0))
	f.Add("checks:\n- {lock: a, changes-max: \"1,5/10m\", holder: a*, labels: {x: \"|\\n\"}}\n- {match: a}\n- {rtt: 1s}", "a|\n", int64(5))
	f.Add("checks: [{name: \"a'=b|c\", key: \"\\x01\", equals: x}]", "\xff", int64(-5))
	f.Fuzz(func(t *testing.T, text, content string, age int64) {
		specs, mistakes, err := parseFile(t.Context(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mistakes {
			if strings.ContainsAny(m.err.Error(), "\n\x1b") || m.line < 0 || m.line > 1+strings.Count(text, "\n")+strings.Count(text, "\r")+2*strings.Count(text, "\u2028") {
				t.Errorf("%+v", m)
			}
		}
		if len(mistakes) > 0 {
			return
		}
		now := time.Unix(2_000_000_000, 0)
		v := newView(content, nil, specs, time.Minute, age%2 == 0, true)
		v.broker.err, v.broker.counts = nil, map[string]count{"a": {n: 3}}
		version := client.Version{Wall: now.UnixMilli() - age%1_000_000, Node: "n"}
		for _, s := range specs {
			v.record(v.readers[s.target], []byte(content), age%3 != 0, version, now)
		}
		line, code := plugin(v.verdicts(now), now, nil)
		if strings.ContainsAny(line, "\n\r\x1b\x00") || strings.Count(line, "|") > 1 || code > unknown || len(line) > maxLine+len(content) {
			t.Errorf("%q, %d", line, code)
		}
		for metric := range strings.Lines(expose([]*view{v}, "1.0", true, now)) {
			if !strings.HasSuffix(metric, "\n") || !strings.HasPrefix(metric, "sscli_") && !strings.HasPrefix(metric, "# ") {
				t.Errorf("%q", metric)
			}
		}
	})
}

// TestParseAmounts: limits with and without a warning, in each unit.
func TestParseAmounts(t *testing.T) {
	for _, tt := range []struct {
		text, unit        string
		way               direction
		warning, critical float64
		bad               bool
	}{
		{"10m", seconds, up, math.NaN(), 600, false},
		{"10m, 1h", seconds, up, 600, 3600, false},
		{"14d", seconds, down, math.NaN(), 14 * 86400, false},
		{"30d,14d", seconds, down, 30 * 86400, 14 * 86400, false},
		{"1KiB", size, up, math.NaN(), 1024, false},
		{"-3.5", amount, up, math.NaN(), -3.5, false},
		{"1h,10m", seconds, up, 0, 0, true},
		{"10", seconds, up, 0, 0, true},
		{"-1s", seconds, up, 0, 0, true},
		{"nan", amount, up, 0, 0, true},
		{"1,2,3", amount, up, 0, 0, true},
		{"", amount, up, 0, 0, true},
		{"1.5d", seconds, up, 0, 0, true},
	} {
		l, err := parseLimit(tt.text, tt.unit, tt.way)
		if tt.bad {
			if err == nil {
				t.Errorf("%q: %+v, want an error", tt.text, l)
			}
			continue
		}
		if err != nil || l.critical.float != tt.critical || l.warns == math.IsNaN(tt.warning) || l.warns && l.warning.float != tt.warning {
			t.Errorf("%q: %+v, %v", tt.text, l, err)
		}
	}
}

// TestParseRate: a rate is of at most 1000 changes in at most 7 days.
func TestParseRate(t *testing.T) {
	for text, want := range map[string]rate{
		"5/10m": {-1, 5, 10 * time.Minute}, "1,5/10m": {1, 5, 10 * time.Minute}, "0/1s": {-1, 0, time.Second}, "1000/7d": {-1, 1000, 7 * day}, "1000,1000/168h": {1000, 1000, 7 * day},
		"5": {}, "5/": {}, "5/10": {}, "/10m": {}, "5/0s": {}, "5/-1s": {}, "5/7d1s": {}, "5/8d": {}, "5/169h": {}, "1001/1h": {}, "1,1001/1h": {}, "-1/1h": {}, "1.5/1h": {}, "0.5,1/1h": {}, "5,1/1h": {},
	} {
		if got, err := parseRate(text); (err != nil) != (want == rate{}) || err == nil && got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, days := range map[string]int{"0d": 0, "14d": 14, "65535d": 65535} {
		if got, err := config.ParseDuration(text); err != nil || got != time.Duration(days)*day {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"65536d", "-1d", "d", "1.5d"} {
		if got, err := config.ParseDuration(text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestNotCounted: before the keys of a pattern were counted, their number is unknown.
func TestNotCounted(t *testing.T) {
	s := &spec{kind: aMatch, target: "a*", limits: map[string]limit{"count-max": {critical: numberOf(9)}}}
	v := newView("c", nil, []*spec{s}, time.Minute, false, true)
	v.broker.err = nil
	if got := v.verdicts(time.Now())[0]; got.state != unknown {
		t.Errorf("%s, %q", got.state, got.problems)
	}
}
