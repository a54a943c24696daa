package examples

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/testkit/full"
)

var update = flag.Bool("update", false, "rewrite the outputs in README.md and docs")

const root = "../.."

// TestPages runs the examples of README.md and docs, each page separately.
func TestPages(t *testing.T) {
	needBash(t)
	dependOnSources(t)
	binary := filepath.Join(t.TempDir(), "sscli-built")
	build(t, root, binary)
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) { checkPage(t, binary, page) })
	}
}

// pages returns README.md and the pages of docs.
func pages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range docs {
		docs[i] = "docs/" + filepath.Base(file)
	}
	return append([]string{"README.md"}, docs...)
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
		return // a page without commands
	}
	printed := run(t, binary, page, examples)
	wrong := compare(page, examples, printed)
	if wrong != "" && !*update {
		t.Fatal(wrong)
	}
	if wrong == "" {
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

// compare describes the first difference between a page and the output of its examples. Later differences may
// be consequences of it.
func compare(page string, examples []example, printed []string) string {
	want, got := newTranscript(), newTranscript()
	for i, e := range examples {
		w, g := want.normal(e.output), got.normal(printed[i])
		if g != w {
			return fmt.Sprintf("%s:%d: $ %s\n%s says (-), it printed (+):\n%s", page, e.line, e.command, page, difference(w, g))
		}
	}
	return ""
}

// TestOneCharacter changes single characters of a page and checks that its examples then fail.
func TestOneCharacter(t *testing.T) {
	needBash(t)
	dependOnSources(t)
	binary := filepath.Join(t.TempDir(), "sscli-built")
	build(t, root, binary)
	const page = "```console\n$ sscli set a 1\nOK\nversion 1696374425000:1:StateStore  2023-10-03T23:07:05.000Z\n" +
		"$ sscli get a -o raw; echo\n1\n$ sscli get missing\n(nil)\n```\n"
	examples, err := parse(page)
	if err != nil {
		t.Fatal(err)
	}
	printed := run(t, binary, "page", examples)
	if wrong := compare("page", examples, printed); wrong != "" {
		t.Fatal(wrong)
	}
	for _, change := range [][2]string{{"OK\n", "0K\n"}, {"OK\n", "OK \n"}, {"\n1\n", "\n2\n"}, {"\n1\n", "\n1\n\n"}, {"(nil)", "(nil"}, {"version", "Version"}, {"05.000Z", "05.001Z"}} {
		text := strings.Replace(page, change[0], change[1], 1)
		examples, err := parse(text)
		if err != nil || text == page {
			t.Fatalf("%q: %v", change, err)
		}
		if compare("page", examples, printed) == "" {
			t.Errorf("the change of %q to %q was not noticed", change[0], change[1])
		}
	}
}

// TestTour runs the tour, which checks its own results.
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

// TestExitCodes compares the table of docs/exit-codes.md with `sscli help
// exit-codes`; -update writes it.
func TestExitCodes(t *testing.T) {
	dependOnSources(t)
	const page = "docs/exit-codes.md"
	binary := filepath.Join(t.TempDir(), "sscli.exe")
	build(t, root, binary)
	cmd := exec.CommandContext(t.Context(), binary, "help", "exit-codes")
	cmd.Env, cmd.Stderr = cleanEnviron(), t.Output()
	help, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if wrapped := regexp.MustCompile(`(?m)^  \S+ .*\n {3}.*`).FindString(string(help)); wrapped != "" {
		t.Fatalf("sscli help exit-codes: a meaning takes two lines, and ss_meaning prints one:\n%s", wrapped)
	}
	var want strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^  (\S+) +(.*)$`).FindAllStringSubmatch(string(help), -1) {
		fmt.Fprintf(&want, "| `%s` | %s |\n", m[1], m[2])
	}
	text := read(t, page)
	before, rest, ok := strings.Cut(text, "| code | meaning |\n| --- | --- |\n")
	rest = "\n" + rest
	end := max(strings.Index(rest, "\n\n"), 0)
	got, after := rest[1:end+1], rest[end+1:]
	switch {
	case !ok || want.Len() == 0:
		t.Fatalf("%s has no table of codes, or sscli help exit-codes none", page)
	case got == want.String():
	case *update:
		write(t, filepath.Join(root, page), before+"| code | meaning |\n| --- | --- |\n"+want.String()+after, 0o644)
	default:
		t.Errorf("%s: the table says (-), but sscli help exit-codes says (+)\n%s", page, difference(got, want.String()))
	}
}

// TestEveryCharacterCounts changes each character of a transcript. The comparison must find the change,
// unless the character belongs to a text that differs from run to run and occurs only once.
func TestEveryCharacterCounts(t *testing.T) {
	const sample = `OK
version 1696374425000:1:StateStore  2023-10-03T23:07:05.000Z
"21.5"
version 1696374425000:1:StateStore  2023-10-03T23:07:05.000Z  (3m12s ago)
{"op":"get","key":"a","found":true,"value":"1","version":{"hlc":"1696374425000:1:StateStore","wall_ms":1696374425000,"counter":1,"node":"StateStore","time":"2023-10-03T23:07:05.000Z"},"rtt_ms":0.162}
{"op":"end","reason":"until","events":2,"time":"2023-10-03T23:07:06.789Z"}
a	1696374425000:1:StateStore	1
a         1696374425000:1:StateStore  1h12m ago   1
 0.000358 -> CONNECT (42 bytes) client id "sscli-qvdzr2lixadk3qgd", clean start true
 0.000376 -> SUBSCRIBE #1 (88 bytes) "clients/sscli-qvdzr2lixadk3qgd/services" QoS 1
sscli: set "a": the store answered: syntax error
`
	free := regexp.MustCompile(`\d[0-9hms]*( ago)|\d\.\d+|2023-10-03T23:07:06\.789`)
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
			t.Errorf("the change of %q to %q was not noticed in %q", sample[i], changed[i], around(string(changed), i))
		}
	}
}

func around(s string, i int) string { return s[max(0, i-20):min(len(s), i+20)] }

// needBash skips the test if bash is not installed.
func needBash(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		full.Missing(t, "no bash")
	}
	full.Program(t, "bash")
}

// dependOnSources opens the sources of sscli, so that the go command does not reuse a
// cached test result after they have changed.
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

func commands(examples []example) []string {
	var list []string
	for _, e := range examples {
		list = append(list, e.command)
	}
	return list
}

// difference returns the lines from the first to the last difference of two texts.
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
				b.WriteString(part.mark + " " + line + " (without a newline)\n")
			}
		}
	}
	return b.String()
}
