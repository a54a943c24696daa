package repl

import (
	"testing"
	"unicode/utf8"
)

// FuzzEdited checks that every text survives editing: it decodes to itself, and the text that readline edits
// is valid UTF-8 without control characters.
func FuzzEdited(f *testing.F) {
	f.Add("set a\t'\x00\xff\ufdd0\U0010ff41\U0010ffff\n\u202e日'")
	f.Fuzz(func(t *testing.T, text string) {
		line := edited(text)
		if got := textOf(line); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
		for _, r := range line {
			if r < ' ' || r == 0x7f || !utf8.ValidRune(r) {
				t.Errorf("%q has %U", text, r)
			}
		}
	})
}
