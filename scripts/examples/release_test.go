package examples

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestRelease checks that an archive and a package of a release have every file that README.md, docs and
// examples/README.md link to, except source. release-check.sh checks the same in the built files, which
// takes minutes, and only when its inputs have changed.
func TestRelease(t *testing.T) {
	type content struct {
		Src string
		Dst string
	}
	var release struct {
		Archives []struct{ Files []content }
		NFPMs    []struct{ Contents []content } `yaml:"nfpms"`
	}
	if err := yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &release); err != nil {
		t.Fatal(err)
	}
	for what, files := range map[string][]content{"archive": release.Archives[0].Files, "package": release.NFPMs[0].Contents} {
		var patterns []string
		for _, f := range files {
			patterns = append(patterns, braces(f.Src)...)
			// A link of the package stands for the file of the same name.
			if name, ok := strings.CutPrefix(f.Dst, "/usr/share/doc/sscli/"); ok {
				patterns = append(patterns, name)
			}
		}
		var checked int
		for _, page := range markdownPages(t) {
			if page != "README.md" && page != "examples/README.md" && path.Dir(page) != "docs" {
				continue
			}
			text := fenced.ReplaceAllString(read(t, page), "")
			for _, m := range link.FindAllStringSubmatch(inCode.ReplaceAllString(text, ""), -1) {
				file, _, _ := strings.Cut(m[1], "#")
				target := filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
				if file == "" || strings.Contains(m[1], "://") || target == "completions" || slices.Contains([]string{".go", ".txtar"}, path.Ext(target)) {
					continue
				}
				checked++
				if !slices.ContainsFunc(patterns, func(p string) bool {
					ok, err := path.Match(p, target)
					return err == nil && ok || path.Dir(p) == target
				}) {
					t.Errorf("%s links to %s, which is not in the %s that .goreleaser.yaml describes", page, target, what)
				}
			}
		}
		if checked < 100 {
			t.Errorf("%d links checked: the pages have more", checked)
		}
	}
}

// braces returns the patterns that a pattern with one {a,b} stands for.
func braces(pattern string) []string {
	before, rest, ok := strings.Cut(pattern, "{")
	if !ok {
		return []string{pattern}
	}
	list, after, _ := strings.Cut(rest, "}")
	var all []string
	for one := range strings.SplitSeq(list, ",") {
		all = append(all, before+one+after)
	}
	return all
}
