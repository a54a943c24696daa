package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/format"
)

func TestPattern(t *testing.T) {
	for key, want := range map[string]string{
		"a": "", "a/b": "", "C#": "", "a#/b": "", "#/b": "", "1+1": "", "": "",
		"a*": "a*", "a?/b": "a?/b",
		"#": "*", "a/#": "a/*", "a/+/c": "a/*/c", "+": "*", "+/+/#": "*/*/*", "a/+/b*": "a/*/b*",
	} {
		if got := Pattern(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

// FuzzKeys: a file of keys, as the raw form writes them, is read back.
func FuzzKeys(f *testing.F) {
	f.Add("a\nb\r\n\n\\x00")
	f.Add("\\x")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parseKeys([]byte(text))
		if err != nil {
			return
		}
		var lines strings.Builder
		for _, key := range keys {
			lines.WriteString(format.Escape(key) + "\n")
		}
		if again, err := parseKeys([]byte(lines.String())); err != nil || !slices.Equal(again, keys) {
			t.Errorf("%q became %q, %v", keys, again, err)
		}
	})
}
