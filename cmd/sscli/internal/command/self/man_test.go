package self

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocks(t *testing.T) {
	const text = `Prose of two
lines.  Two blanks after a sentence are none.

There are
    expect CODE CMD...   succeeds
                         if so
    sleep DURATION       waits

	not a table
	at  all

human     for people
template=TEXT
          a template
-5`
	want := []Block{
		{Prose: "Prose of two lines.  Two blanks after a sentence are none."},
		{Prose: "There are"},
		{Rows: [][2]string{{"expect CODE CMD...", "succeeds if so"}, {"sleep DURATION", "waits"}}},
		{Literal: []string{"not a table", "at  all"}},
		{Rows: [][2]string{{"human", "for people"}, {"template=TEXT", "a template"}}},
		{Prose: "-5"},
	}
	if diff := cmp.Diff(want, Blocks(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// FuzzRoffText: a page shows any text unchanged. This test imitates what a formatter does with the page.
func FuzzRoffText(f *testing.F) {
	for _, seed := range []string{".TH", "'quoted'", `C:\new`, "a-b--c", "…", `"`, "`^~", "\x01\x7f\xff"} {
		f.Add(seed)
	}
	escaped := regexp.MustCompile(`\\(?:&|e|-|\(..|\[u[0-9A-F]{4,6}\])`)
	meaning := map[string]string{`\&`: "", `\e`: `\`, `\-`: "-", `\(dq`: `"`, `\(aq`: "'", `\(ga`: "`", `\(ha`: "^", `\(ti`: "~"}
	f.Fuzz(func(t *testing.T, text string) {
		page := escape(text)
		if strings.HasPrefix(page, ".") || strings.HasPrefix(page, "'") {
			t.Fatalf("%q is a request: %q", text, page)
		}
		if bare := escaped.ReplaceAllString(page, ""); strings.ContainsAny(bare, "\\\"'-`^~") {
			t.Fatalf("%q has what formatters change: %q", text, page)
		}
		got := escaped.ReplaceAllStringFunc(page, func(e string) string {
			if shown, ok := meaning[e]; ok {
				return shown
			}
			var r rune
			fmt.Sscanf(e, `\[u%X]`, &r)
			return string(r)
		})
		if got != strings.ToValidUTF8(text, "\uFFFD") && got != string([]rune(text)) {
			t.Fatalf("%q is shown as %q", text, got)
		}
	})
}
