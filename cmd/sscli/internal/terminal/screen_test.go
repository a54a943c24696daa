package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sscli/sscli/format"
)

// TestDraw: after the first time, only lines that differ are written, and a line that is gone is erased.
func TestDraw(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s := &Screen{out: &Output{File: out}}
	read := 0
	for _, step := range []struct {
		lines []string
		want  string
	}{
		{[]string{"a", "b", "c"}, clearScreen + "\x1b[1;1H\x1b[Ka\x1b[2;1H\x1b[Kb\x1b[3;1H\x1b[Kc"},
		{[]string{"a", "b", "c"}, ""},
		{[]string{"a", "B", "c"}, "\x1b[2;1H\x1b[KB"},
		{[]string{"a"}, "\x1b[2;1H\x1b[J"},
		{[]string{"a", "b"}, "\x1b[2;1H\x1b[Kb"},
	} {
		err := s.Draw(func(int, int) (lines []ScreenLine) {
			for _, text := range step.lines {
				lines = append(lines, ScreenLine{Text: text})
			}
			return lines
		})
		all, readErr := os.ReadFile(out.Name())
		if got := string(all[read:]); err != nil || readErr != nil || got != step.want {
			t.Errorf("%q: wrote %q, %v, %v; want %q", step.lines, got, err, readErr, step.want)
		}
		read = len(all)
	}
}

// TestWrap: no line is wider than the screen, and no letter is lost, however narrow the screen is.
func TestWrap(t *testing.T) {
	text := "the quick brown fox jumps over the lazy dog"
	for width := 1; width < 50; width++ {
		var letters strings.Builder
		for _, l := range Wrap(text, width) {
			if format.Columns(l.Text) > width {
				t.Errorf("width %d: %q", width, l.Text)
			}
			letters.WriteString(strings.ReplaceAll(l.Text, " ", ""))
		}
		if got := letters.String(); got != strings.ReplaceAll(text, " ", "") {
			t.Errorf("width %d: %q", width, got)
		}
	}
}
