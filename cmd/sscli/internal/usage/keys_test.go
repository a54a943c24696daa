package usage

import (
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/format"
)

// FuzzKeys: a file of keys in raw form can be read back.
func FuzzKeys(f *testing.F) {
	f.Add("a\nb\r\n\n\\x00")
	f.Add("\\x")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parseKeys("-", []byte(text))
		if err != nil {
			return
		}
		var lines strings.Builder
		for _, key := range keys {
			lines.WriteString(format.Escape(key) + "\n")
		}
		if again, err := parseKeys("-", []byte(lines.String())); err != nil || !slices.Equal(again, keys) {
			t.Errorf("%q became %q, %v", keys, again, err)
		}
	})
}
