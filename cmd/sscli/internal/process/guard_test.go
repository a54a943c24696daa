package process

import (
	"slices"
	"strings"
	"testing"
)

// FuzzLine: what is read is what was written, and what is written is one line.
func FuzzLine(f *testing.F) {
	f.Add("start", "A=b", "")
	f.Add("signal", "15", "x\n\x00\xff \"")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		words := []string{a, b, c}
		line := string(appendLine(nil, words...))
		if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
			t.Fatalf("%q is not one line", line)
		}
		got, err := parseLine(line)
		if err != nil || !slices.Equal(got, words) {
			t.Fatalf("%q: %q, %v, want %q", line, got, err, words)
		}
		// Whatever else it reads, it would have written so itself.
		if got, err := parseLine(a + "\n"); err == nil {
			if again, err := parseLine(string(appendLine(nil, got...))); err != nil || !slices.Equal(again, got) {
				t.Fatalf("%q: %q, then %q, %v", a, got, again, err)
			}
		}
	})
}

func TestBadLines(t *testing.T) {
	for _, line := range []string{"", "\n", "x\n", `"x"`, `"x" ` + "\n", `"x""y"` + "\n", `"x"  "y"` + "\n", "`x`\n", `"x` + "\n"} {
		if words, err := parseLine(line); err == nil {
			t.Errorf("%q: %q, want an error", line, words)
		}
	}
}
