package complete

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
)

// TestOffer: a shell inserts the common prefix of all candidates. It must be a prefix of every matching key in the
// store.
func TestOffer(t *testing.T) {
	many := func(prefix string, n int) (keys []string) {
		for i := range n {
			keys = append(keys, fmt.Sprintf("%s%04d", prefix, i))
		}
		return keys
	}
	for _, tt := range []struct {
		about string
		keys  []string
		part  string
		all   bool
		want  string
		open  bool
	}{
		{"all keys", []string{"a/1", "a/2"}, "a", true, "a/1 a/2", false},
		{"no key", nil, "a", true, "", false},
		{"more than a list", many("a/b/", 600), "a", true, "a/", true},
		{"more than a list, in two", append(many("a/b/", 300), many("a/c/", 300)...), "a/", true, "a/b/ a/c/", true},
		{"the rest of a long list", append([]string{"a"}, many("a/", 600)...), "a", true, "a a/", true},
		{"not all: the next slash", many("a/b/", 5), "", false, "a/", true},
		{"not all: the slash after the next", many("a/b/", 5), "a/", false, "a/b/", true},
		{"not all: no slash", many("a", 5), "", false, "", false},
		{"not all: two", []string{"line1/x", "line2/x"}, "li", false, "", false},
		{"not all: a key too", []string{"line1", "line1/x"}, "li", false, "", false},
		{"not all: none", nil, "", false, "", false},
		{"bytes", many("\xff/", 600), "\xff", true, "\xff/", true},
	} {
		got, open := offer(tt.keys, tt.part, tt.all)
		if strings.Join(got, " ") != tt.want || open != tt.open {
			t.Errorf("%s: %q, %t, want %q, %t", tt.about, got, open, tt.want, tt.open)
		}
	}
	if all := many("a", 600); !slices.Equal(first(offer(all, "a", true)), all) {
		t.Error("keys without a slash are not offered")
	}
}

func first(candidates []string, _ bool) []string { return candidates }

// TestDescriptions: a description does not contain Markdown.
func TestDescriptions(t *testing.T) {
	root := &cobra.Command{Use: "sscli"}
	sub := &cobra.Command{Use: "get KEY", RunE: func(*cobra.Command, []string) error { return nil }}
	sub.Flags().String("file", "", "write to `FILE`, all or nothing")
	root.PersistentFlags().String("form", "", "as `FORM`")
	root.AddCommand(sub)
	Register(&app.App{}, root)
	for _, flags := range []*pflag.FlagSet{root.PersistentFlags(), sub.Flags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "`") {
				t.Errorf("--%s: %s", f.Name, f.Usage)
			}
		})
	}
}
