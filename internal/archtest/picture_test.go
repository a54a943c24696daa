package archtest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of packages in docs/development/packages.md")

// TestPicture holds the tables of packages in docs/development/packages.md to the arrows and to the first
// sentences of the packages.
func TestPicture(t *testing.T) {
	const name, begin, end = "docs/development/packages.md", "<!-- packages: go test ./internal/archtest -run TestPicture -update -->\n", "<!-- end of packages -->\n"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks the lines %q and %q", name, begin, end)
	}
	want := before + begin + picture(t) + end + after
	if *update {
		err = os.WriteFile(name, []byte(want), 0o644)
	} else if want != string(page) {
		t.Errorf("%s does not show the packages as they are: go test ./internal/archtest -run TestPicture -update", name)
	}
	if err != nil {
		t.Error(err)
	}
}

// picture returns the tables: the libraries, what commands stand on, and the commands.
func picture(t *testing.T) string {
	synopsis := make(map[string]string)
	for _, p := range packages(t) {
		_, text, _ := strings.Cut(p.Doc, " ") // Package or Command
		_, text, _ = strings.Cut(text, " ")   // and its name
		synopsis[p.ImportPath] = strings.TrimSuffix(strings.ReplaceAll(text, "|", `\|`), ".")
	}
	var libraries, base, commands strings.Builder
	for line := range strings.Lines(arrows) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		table := &libraries
		path := full(words[0])
		switch {
		case strings.HasPrefix(path, rooms+"command/"), path == module+"/cmd/sscli":
			table = &commands
		case strings.HasPrefix(path, rooms):
			table = &base
		}
		fmt.Fprintf(table, "| `%s` | %s | %s |\n", strings.TrimPrefix(words[0], "command/"), synopsis[path], strings.Join(words[1:], ", "))
	}
	const head = "| package | what it does | imports |\n| --- | --- | --- |\n"
	return "\nLibraries:\n\n" + head + libraries.String() +
		"\nWhat commands stand on, below `cmd/sscli/internal`:\n\n" + head + base.String() +
		"\nCommands, below `cmd/sscli/internal/command`:\n\n" + head + commands.String() + "\n"
}
