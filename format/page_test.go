package format

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJSONPage compares docs/json.md with what is printed: the table of every op, which -update writes,
// and the fields in the table that explains them.
func TestJSONPage(t *testing.T) {
	const file = "../docs/json.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), "## Every op\n\n")
	_, after, more := strings.Cut(rest, "\n\n")
	_, table, fields := strings.Cut(after, "## Every field\n\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !ok || !more || !fields {
		t.Fatalf("%s has no tables of ops and fields", file)
	}
	explained := make(map[string]bool) // by field, whether an op has it
	for line := range strings.Lines(table) {
		if names, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(names, "`") {
			for name := range strings.SplitSeq(names, ", ") {
				explained[strings.Trim(name, "`")] = false
			}
		}
	}
	var ops strings.Builder
	ops.WriteString("| `op` | of | other fields |\n| --- | --- | --- |\n")
	for _, op := range Ops() {
		of := "`" + op.By + "`"
		if op.Stderr {
			of = op.By + ", on standard error"
		}
		names := strings.Fields(op.Fields)
		fmt.Fprintf(&ops, "| `%s` | %s | `%s` |\n", op.Name, of, strings.Join(names, "`, `"))
		for _, name := range names {
			if _, ok := explained[name]; !ok {
				t.Errorf("%s does not explain the field %s of the op %s: add it to the table of every field", file, name, op.Name)
			}
			explained[name] = true
		}
	}
	for name, used := range explained {
		if !used {
			t.Errorf("%s explains the field %s, which no op has", file, name)
		}
	}
	want := before + "## Every op\n\n" + ops.String() + "\n" + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("%s is not what Ops says; go test ./format -run TestJSONPage -update (-code +page):\n%s", file, diff)
	}
}
