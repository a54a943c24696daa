package self

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

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
