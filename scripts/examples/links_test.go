package examples

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// markdownPages returns the names of all Markdown files.
func markdownPages(t *testing.T) []string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "dist" || d.Name() == "build" || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			name, err := filepath.Rel(root, path)
			pages = append(pages, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	inCode  = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// TestLinks checks that each relative link on each page leads to a file of the repository, and to a heading
// in it.
func TestLinks(t *testing.T) {
	pages := markdownPages(t)
	if len(pages) < 10 {
		t.Fatalf("only %d pages: %q", len(pages), pages)
	}
	for _, page := range pages {
		text := fenced.ReplaceAllString(read(t, page), "")
		for _, m := range link.FindAllStringSubmatch(inCode.ReplaceAllString(text, ""), -1) {
			target := m[1]
			if strings.Contains(target, "://") {
				continue // another site
			}
			file, fragment, _ := strings.Cut(target, "#")
			name := page
			if file != "" {
				name = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			}
			info, err := os.Stat(filepath.Join(root, name))
			if err != nil {
				t.Errorf("%s: %s: %v", page, target, err)
				continue
			}
			if fragment != "" && (info.IsDir() || !anchors(read(t, name))[fragment]) {
				t.Errorf("%s: %s: %s has no such heading", page, target, name)
			}
		}
	}
}

// anchors returns the fragments that GitHub gives the headings of a page.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		fragment := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(m[1]))
		found[fragment] = true
	}
	return found
}

// TestIndex checks that docs/README.md has a link to every page in docs.
func TestIndex(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, page := range markdownPages(t) {
		name, ok := strings.CutPrefix(page, "docs/")
		if ok && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not name %s", page)
		}
	}
}
