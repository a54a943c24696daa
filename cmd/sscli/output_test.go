package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/format"
)

// TestOutputPage compares the tables of docs/output.md with what the output json prints; -update
// writes them.
func TestOutputPage(t *testing.T) {
	const file = "../../docs/output.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var ops, fields strings.Builder
	ops.WriteString("| `op` | of | other fields |\n| --- | --- | --- |\n")
	for _, op := range format.Ops() {
		of := "`" + op.By + "`"
		if op.Stderr {
			of = op.By + ", on standard error"
		}
		fmt.Fprintf(&ops, "| `%s` | %s | %s |\n", op.Name, of, codes(strings.Fields(op.Fields)))
	}
	fields.WriteString("| field | |\n| --- | --- |\n")
	for _, row := range format.Fields() {
		fmt.Fprintf(&fields, "| %s | %s |\n", codes(strings.Split(row[0], ", ")), row[1])
	}
	want := string(data)
	for heading, table := range map[string]string{"### Every op\n\n": ops.String(), "### Every field\n\n": fields.String()} {
		before, rest, ok := strings.Cut(want, heading)
		_, after, more := strings.Cut(rest, "\n\n")
		if !ok || !more {
			t.Fatalf("%s has no table below %q", file, heading)
		}
		want = before + heading + table + "\n" + after
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("%s is not what format.Ops says; go test ./cmd/sscli -run TestOutputPage -update (-code +page):\n%s", file, diff)
	}
}

// codes writes names as code: `a`, `b`.
func codes(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
