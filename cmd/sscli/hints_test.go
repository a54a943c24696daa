package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
)

// badHint returns what a hint recommends that sscli does not have; empty if it has everything. A
// command in a hint follows the word sscli, and its flags follow the command up to a semicolon.
// Other flags must belong to some command.
func badHint(root *cobra.Command, hint string) string {
	var cmd *cobra.Command // that the words are about; nil: none yet
	words := strings.Fields(hint)
	for i := 0; i < len(words); i++ {
		word := strings.TrimRight(words[i], ",;:?)")
		switch {
		case word == "sscli" && i+1 < len(words):
			cmd = root
			for i+1 < len(words) {
				name := strings.TrimRight(words[i+1], ",;:?)")
				next := below(cmd, name)
				if next == nil {
					break
				}
				cmd = next
				i++
			}
			if cmd == root && !slices.Contains([]string{"-", "…"}, words[i+1]) && words[i+1][0] != '-' {
				return "sscli " + words[i+1]
			}
		case word == "--":
			cmd = nil // a command of the user
		case len(word) > 1 && word[0] == '-' && !strings.Contains(word, "…") && (word[1] == '-' || word[1] >= 'a' && word[1] <= 'z'):
			if !hasFlag(root, cmd, word) {
				return word
			}
		}
		if strings.HasSuffix(words[i], ";") {
			cmd = nil
		}
	}
	return ""
}

// below returns the command or topic with a name below a command; nil if there is none.
func below(cmd *cobra.Command, name string) *cobra.Command {
	if cmd.Name() == "help" {
		cmd = cmd.Root()
	}
	for _, c := range cmd.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// hasFlag reports whether a command has a flag; with nil, whether any command has.
func hasFlag(root, cmd *cobra.Command, flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	in := []*cobra.Command{cmd}
	if cmd == nil || cmd == root {
		in = commands(root)
	}
	return name == "--help" || slices.ContainsFunc(in, func(c *cobra.Command) bool {
		for _, f := range append(help.OwnFlags(c), help.SharedFlags(c)...) {
			if name == "--"+f.Name || name == "-"+f.Shorthand {
				return true
			}
		}
		return false
	})
}

// hintsOf lists the hints in the source of a file: what is assigned to a field or a variable
// called Hint, and the second argument of Warn.
func hintsOf(t *testing.T, path string) (hints []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	isHint := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return strings.EqualFold(e.Name, "hint")
		case *ast.SelectorExpr:
			return e.Sel.Name == "Hint"
		}
		return false
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if isHint(n.Key) {
				hints = append(hints, literals(n.Value))
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if isHint(left) && len(n.Rhs) == len(n.Lhs) {
					hints = append(hints, literals(n.Rhs[i]))
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Warn" && len(n.Args) == 2 {
				hints = append(hints, literals(n.Args[1]))
			}
		}
		return true
	})
	return hints
}

// literals returns what can be read of a text in the source, with … for the rest.
func literals(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return literals(e.X) + literals(e.Y)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
			return literals(e.Args[0])
		}
	}
	return "…"
}

// TestHints wants each command and each flag that a hint names to exist.
func TestHints(t *testing.T) {
	root := cmdline.NewRoot(newApp())
	for _, test := range [][2]string{ // the test sees what it looks for
		{"sscli lock stat NAME", ""}, {"sscli lok status", "sscli lok"}, {"use --nonsense", "--nonsense"},
		{"sscli get KEY --wait 1m", "--wait"}, {"sscli lock run NAME --wait 1m; --version-only", ""},
	} {
		if got := badHint(root, test[0]); got != test[1] {
			t.Errorf("%s: found %q, want %q", test[0], got, test[1])
		}
	}
	for _, row := range fault.Table() {
		if bad := badHint(root, row.Hint); bad != "" {
			t.Errorf("the hint of %s names %s, which sscli does not have: %s", row.Kind, bad, row.Hint)
		}
	}
	n := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, hint := range hintsOf(t, path) {
			n++
			if bad := badHint(root, hint); bad != "" {
				t.Errorf("%s: a hint names %s, which sscli does not have: %s", path, bad, hint)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 20 {
		t.Errorf("only %d hints were found in the source", n)
	}
}
