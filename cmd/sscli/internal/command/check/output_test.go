package check

import (
	"os"
	"strings"
	"testing"
)

// TestMetricsDocumented: docs/monitoring.md lists each metric with its type, and no other.
func TestMetricsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families() {
		if !strings.Contains(string(page), "| `"+f.name+"` | "+f.kind+" |") {
			t.Errorf("no %s %s", f.kind, f.name)
		}
	}
	if n := strings.Count(string(page), "| `sscli_"); n != len(families()) {
		t.Errorf("%d metrics, want %d", n, len(families()))
	}
}

// TestDecimal: a short round trip is not 0.
func TestDecimal(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.0000521: "0.000052", 0.25: "0.25", 24.8539: "24.854", 1500: "1500", -0.5: "-0.5", 1e9: "1000000000"} {
		if got := decimal(n); got != want {
			t.Errorf("decimal(%v) = %s, want %s", n, got, want)
		}
	}
	tiny := measure{name: "value", value: numberOf(1234.56789e-9), exact: true, higher: &limit{critical: numberOf(2e-7)}}
	if got, want := tiny.plugin(&spec{kind: aKey, target: "k"}), "'k value'=0.00000123456789;;~:0.0000002"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNumber: numbers are decimal, and not what Go takes for one.
func TestNumber(t *testing.T) {
	for text, want := range map[string]float64{"21.5": 21.5, "-5": -5, "+1": 1, ".5": .5, "1e3": 1000, "1E-3": .001, "007": 7} {
		if n, ok := parseNumber(text); !ok || n.float != want {
			t.Errorf("%s: %v, %t, want %v", text, n, ok, want)
		}
	}
	for _, text := range []string{"", "1_000", "0x_1p4", "0x1p4", "0X1P4", "inf", "-Infinity", "NaN", "1e999", "1 2"} {
		if n, ok := parseNumber(text); ok {
			t.Errorf("%s: %v, want no number", text, n)
		}
	}
}

// TestExpectedNumber: a text that is no number is told why.
func TestExpectedNumber(t *testing.T) {
	for text, want := range map[string]string{
		"1e500": "expected a number from 1e-323 to 1e308, or 0", "-1e309": "expected a number from 1e-323 to 1e308, or 0", "1e-400": "expected a number from 1e-323 to 1e308, or 0",
		"1,5": "expected a number with a dot, not with a decimal comma", "1,5,6": "expected a number", "inf": "expected a number", "0x0p0": "expected a number", "x": "expected a number", "": "expected a number",
	} {
		if _, ok := parseNumber(text); ok || expectedNumber(text) != want {
			t.Errorf("%q: %t, %q, want %q", text, ok, expectedNumber(text), want)
		}
	}
}
