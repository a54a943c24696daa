package main

import (
	"os"
	"path/filepath"
	"slices"
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

// shownHints lists the hints in what the scripts show, with the name of a script for each.
func shownHints(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	hints := make(map[string]string)
	for _, name := range names {
		if strings.HasSuffix(name, "statestore-cli.txtar") {
			continue // which has other flags
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if _, hint, ok := strings.Cut(line, "  try: "); ok {
				hints[strings.TrimSpace(hint)] = name
			}
		}
	}
	return hints
}

// TestHints wants each command and each flag that a hint names to exist.
func TestHints(t *testing.T) {
	t.Parallel()
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
	shown := shownHints(t)
	for hint, script := range shown {
		if bad := badHint(root, hint); bad != "" {
			t.Errorf("%s: a hint names %s, which sscli does not have: %s", script, bad, hint)
		}
	}
	if len(shown) < 100 {
		t.Errorf("the scripts show only %d hints", len(shown))
	}
}
