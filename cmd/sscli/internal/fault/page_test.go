package fault

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of docs/troubleshooting.md")

// TestTroubleshooting compares the table in docs/troubleshooting.md with the one that explains errors; -update rewrites
// it.
func TestTroubleshooting(t *testing.T) {
	const file, heading = "../../../../docs/troubleshooting.md", "## Every kind of error\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), heading)
	if !ok {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	start := strings.Index(rest, "\n| ")
	if start < 0 {
		t.Fatalf("%s has no table behind %q", file, heading)
	}
	intro, table := rest[:start+1], rest[start+1:]
	after := ""
	if end := strings.Index(table, "\n\n"); end >= 0 {
		table, after = table[:end+1], table[end+1:]
	}
	var want strings.Builder
	want.WriteString("| kind | exit code | cause | what to try |\n| --- | --- | --- | --- |\n")
	for _, e := range Table() {
		hint := e.Hint
		if hint == "" {
			hint = "–"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", e.Kind, codeWords(e), cell(e.Cause), cell(hint))
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+heading+intro+want.String()+after), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), table); diff != "" {
		t.Errorf("%s is not what the code says; go test ./cmd/sscli/internal/fault -update (-code +page):\n%s", file, diff)
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// codeWords returns the exit codes for the table. Some kinds have several.
func codeWords(e Row) string {
	switch e.Kind {
	case "interrupted":
		return "128+N"
	case "child":
		return "125, 126, 127"
	case "expectation":
		return "that of the command, at least 1"
	}
	return fmt.Sprint(e.Code)
}
