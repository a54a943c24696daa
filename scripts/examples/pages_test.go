package examples

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the outputs in README.md and docs")

const root = "../.."

// TestPages runs what README.md and the pages in docs show, each page by itself.
func TestPages(t *testing.T) {
	needBash(t)
	dependOnSources(t)
	binary := filepath.Join(t.TempDir(), "sscli-built")
	build(t, root, binary)
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range docs {
		docs[i] = "docs/" + filepath.Base(file)
	}
	for _, page := range append([]string{"README.md"}, docs...) {
		t.Run(page, func(t *testing.T) { checkPage(t, binary, page) })
	}
}

func checkPage(t *testing.T, binary, page string) {
	text := read(t, page)
	examples, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	if len(examples) == 0 {
		if page == "README.md" {
			t.Fatal("README.md: no example")
		}
		return // it has nothing to run
	}
	want, got := newTranscript(), newTranscript()
	printed := run(t, binary, page, examples)
	differs := false
	for i, e := range examples {
		w, g := want.normal(e.output), got.normal(printed[i])
		if differs = g != w; !differs {
			continue
		}
		if !*update {
			// What follows may differ only because this does.
			t.Fatalf("%s:%d: $ %s\n%s says (-), it printed (+):\n%s", page, e.line, e.command, page, difference(w, g))
		}
		break
	}
	if !*update || !differs {
		return
	}
	for i := range examples {
		examples[i].output = printed[i]
	}
	write(t, filepath.Join(root, page), replaced(text, examples), 0o644)
	if again, err := parse(read(t, page)); err != nil || !slices.Equal(commands(again), commands(examples)) {
		t.Errorf("%s: an output looks like a command, or has no line end", page)
	}
}

// TestTour runs the tour, which checks itself.
func TestTour(t *testing.T) {
	dependOnSources(t)
	binary := filepath.Join(t.TempDir(), "sscli.exe")
	build(t, root, binary)
	cmd := exec.CommandContext(t.Context(), binary, "--embedded", "-")
	cmd.Env = cleanEnviron()
	cmd.Stdin = strings.NewReader(read(t, "scripts/tour.sscli"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sscli --embedded - < scripts/tour.sscli: %v\n%s", err, out)
	}
}

// TestExitCodes compares README.md's table with `sscli help exit-codes`.
func TestExitCodes(t *testing.T) {
	dependOnSources(t)
	binary := filepath.Join(t.TempDir(), "sscli.exe")
	build(t, root, binary)
	cmd := exec.CommandContext(t.Context(), binary, "help", "exit-codes")
	cmd.Env = cleanEnviron()
	help, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := rows(`(?m)^  (\S+) +(.*)$`, string(help))
	_, section, _ := strings.Cut(read(t, "README.md"), "\n## Exit codes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	got := rows("(?m)^\\| `(.*)` \\| (.*) \\|$", section)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("README.md, Exit codes: the table says\n%sbut sscli help exit-codes says\n%s",
			indented(strings.Join(got, "\n")), indented(strings.Join(want, "\n")))
	}
}

// TestEveryCharacterCounts changes each character of a transcript. The comparison
// must see it, unless the character belongs to what differs each time and stands
// there only once.
func TestEveryCharacterCounts(t *testing.T) {
	const sample = `OK
version 1696374425000:1:StateStore  2023-10-03T23:07:05.000Z
"21.5"
version 1696374425000:1:StateStore  2023-10-03T23:07:05.000Z  (3m12s ago)
{"op":"get","key":"a","found":true,"value":"1","version":{"hlc":"1696374425000:1:StateStore","wall_ms":1696374425000,"counter":1,"node":"StateStore","time":"2023-10-03T23:07:05.000Z"},"rtt_ms":0.162}
{"op":"end","reason":"until","events":2,"time":"2023-10-03T23:07:06.789Z"}
a	1696374425000:1:StateStore	1
 0.000358 -> CONNECT (42 bytes) client id "sscli-qvdzr2lixadk3qgd", clean start true
 0.000376 -> SUBSCRIBE #1 (88 bytes) "clients/sscli-qvdzr2lixadk3qgd/services" QoS 1
sscli: set "a": the store answered: syntax error
`
	free := regexp.MustCompile(`\d[0-9ms]*( ago)|\d\.\d+|2023-10-03T23:07:06\.789`)
	may := make(map[int]bool)
	for _, span := range free.FindAllStringIndex(sample, -1) {
		for i := span[0]; i < span[1]; i++ {
			may[i] = sample[i] >= '0' && sample[i] <= '9'
		}
	}
	want := newTranscript().normal(sample)
	for i := range len(sample) {
		changed := []byte(sample)
		switch c := sample[i]; {
		case c >= '0' && c <= '8':
			changed[i]++
		case c == '9':
			changed[i] = '0'
		case c == 'x':
			changed[i] = 'y'
		default:
			changed[i] = 'x'
		}
		if seen := newTranscript().normal(string(changed)) != want; !seen && !may[i] {
			t.Errorf("nobody sees that %q became %q in %q", sample[i], changed[i], around(string(changed), i))
		}
	}
}

func around(s string, i int) string { return s[max(0, i-20):min(len(s), i+20)] }

// needBash skips a test that needs bash where there is none.
func needBash(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("bash")
	if runtime.GOOS != "windows" && err == nil {
		return
	}
	if os.Getenv("SSCLI_CHECK") == "full" {
		t.Fatal("no bash")
	}
	t.Skip("no bash")
}

// dependOnSources opens what sscli is built from, so that the go command does not
// take the result of a test from its cache when that has changed.
func dependOnSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || (filepath.Ext(path) != ".go" && d.Name() != "go.mod") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows are the pairs that a pattern finds in a text.
func rows(pattern, text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1]+" = "+m[2])
	}
	return found
}

func commands(examples []example) []string {
	var list []string
	for _, e := range examples {
		list = append(list, e.command)
	}
	return list
}

// difference is where two texts begin to differ up to where they do no more.
func difference(want, got string) string {
	w, g := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	same := ""
	for len(w) > 0 && len(g) > 0 && w[0] == g[0] {
		same = w[0]
		w, g = w[1:], g[1:]
	}
	for len(w) > 0 && len(g) > 0 && w[len(w)-1] == g[len(g)-1] {
		w, g = w[:len(w)-1], g[:len(g)-1]
	}
	var b strings.Builder
	for _, part := range []struct {
		mark  string
		lines []string
	}{{" ", []string{same}}, {"-", w}, {"+", g}} {
		for _, line := range part.lines {
			switch bare, whole := strings.CutSuffix(line, "\n"); {
			case whole:
				b.WriteString(part.mark + " " + bare + "\n")
			case line != "":
				b.WriteString(part.mark + " " + line + " (and no line end)\n")
			}
		}
	}
	return b.String()
}

func indented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("    " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}
