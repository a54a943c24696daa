package examples

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A rule is a line of the support matrix in emulator/doc.go.
type rule struct {
	what, known, changed string
}

var ruleLine = regexp.MustCompile(`^( *)(.+?) +((?:documented|SDKs|draft|assumed|MQTT 5|–).*)$`)

// matrix parses the support matrix in emulator/doc.go: tables under headings, and at the end a list of the
// differences of an attached store.
func matrix(t *testing.T, doc string) (headings []string, rules map[string][]rule, attached []string) {
	t.Helper()
	_, text, ok := strings.Cut(doc, "// # Support matrix\n")
	if !ok {
		t.Fatal("emulator/doc.go has no support matrix")
	}
	rules = make(map[string][]rule)
	heading, last := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		row, isRow := strings.CutPrefix(line, "//\t")
		switch prose := strings.TrimPrefix(line, "// "); {
		case !isRow && strings.HasSuffix(prose, ":"):
			heading = strings.TrimSuffix(prose, ":")
			headings = append(headings, heading)
		case !isRow:
			continue
		case strings.Contains(heading, "attached store"):
			attached = append(attached, row)
		default:
			m := ruleLine.FindStringSubmatch(row)
			if m == nil {
				// The line continues the previous one.
				list := rules[heading]
				if len(list) == 0 {
					t.Fatalf("emulator/doc.go: %q does not say how it is known", row)
				}
				list[len(list)-1].what += " " + strings.TrimSpace(row)
				continue
			}
			if m[1] == "" {
				last = m[2]
			}
			known, changed, _ := strings.Cut(m[3], "  ")
			if at := regexp.MustCompile(` (?:Variants|Options|Action|Server)\.`).FindStringIndex(known); at != nil {
				known, changed = known[:at[0]], strings.TrimSpace(m[3][at[0]:])
			}
			what := m[2]
			if m[1] != "" {
				what = "– " + what
			}
			rules[heading] = append(rules[heading], rule{what, strings.TrimSpace(known), strings.TrimSpace(changed)})
		}
	}
	if last == "" || len(attached) == 0 {
		t.Fatalf("emulator/doc.go: %d headings, %d rules of an attached store", len(headings), len(attached))
	}
	return headings, rules, attached
}

// TestSupportMatrix compares the tables of docs/emulator-rules.md with the matrix in emulator/doc.go; -update
// writes them.
func TestSupportMatrix(t *testing.T) {
	const page, intro, begin, outro = "docs/emulator-rules.md", "# What the emulator knows\n", "-update -->\n", "\n## Attached to another broker\n"
	headings, rules, attached := matrix(t, read(t, "emulator/doc.go"))
	text := read(t, page)
	before, rest, ok := strings.Cut(text, begin)
	tables, rest, ok2 := strings.Cut(rest, outro)
	prose, _, ok3 := strings.Cut(rest, ":\n")
	if !ok || !ok2 || !ok3 || !strings.Contains(before, intro) {
		t.Fatalf("%s lacks one of the parts %q, %q, %q and a line that ends with a colon", page, intro, begin, outro)
	}
	var want strings.Builder
	for _, heading := range headings {
		if len(rules[heading]) == 0 {
			continue
		}
		fmt.Fprintf(&want, "\n## %s\n\n| what | known | changed by |\n| --- | --- | --- |\n", heading)
		for _, r := range rules[heading] {
			fmt.Fprintf(&want, "| %s | %s | %s |\n", cell(r.what), cell(r.known), names(r.changed))
		}
	}
	var list strings.Builder
	for _, a := range attached {
		line, indented := strings.CutPrefix(a, "  ")
		if indented {
			list.WriteString("  " + strings.TrimSpace(line) + "\n")
			continue
		}
		list.WriteString("* " + a + "\n")
	}
	whole := before + begin + want.String() + outro + prose + ":\n\n" + list.String()
	switch {
	case text == whole:
	case *update:
		write(t, filepath.Join(root, page), whole, 0o644)
	default:
		t.Errorf("%s says (-), but emulator/doc.go (+); %d characters of tables\n%s", page, len(tables), difference(text, whole))
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// names formats the names of fields as code.
func names(text string) string {
	return regexp.MustCompile(`\w+(?:\.\w+)*`).ReplaceAllString(text, "`$0`")
}
