package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/directive"
	"github.com/sscli/sscli/repl"
)

// complete returns what could be at the cursor: the shell's own words, and what cobra completes.
// before are the words of the line before the cursor, part is the word at the cursor.
func (s *shell) complete(before []repl.Word, part repl.Word) []repl.Candidate {
	args := make([]string, len(before))
	for i, w := range before {
		args[i] = app.Protect(w.Text, w.Quoted)
	}
	args = afterLineWords(args)
	if args == nil {
		return nil
	}
	var found []repl.Candidate
	if len(args) == 0 {
		own := append(directive.Words(), [2]string{"exit", "leave the shell"}, [2]string{"quit", "leave the shell"})
		if len(before) == 0 {
			own = append(own, dots()...)
		}
		for _, w := range own {
			name, _, _ := strings.Cut(w[0], " ")
			if strings.HasPrefix(name, part.Text) && (part.Text != "" || name[0] != '.') {
				found = append(found, repl.Candidate{Text: name, Help: w[1]})
			}
		}
	}
	if len(args) > 0 && strings.HasPrefix(args[0], ".") {
		return dotOperands(args, part.Text)
	}
	found = append(found, s.completeCommand(args, part)...)
	slices.SortStableFunc(found, func(a, b repl.Candidate) int { return strings.Compare(a.Text, b.Text) })
	return slices.CompactFunc(found, func(a, b repl.Candidate) bool { return a.Text == b.Text })
}

// afterLineWords drops the line words before a command. It returns nil if the word at the cursor
// belongs to a line word.
func afterLineWords(args []string) []string {
	for len(args) > 0 {
		switch strings.ToLower(args[0]) {
		case "sscli", "time":
			args = args[1:]
		case "expect":
			if len(args) < 2 {
				return nil
			}
			args = args[2:]
		case "repeat":
			if len(args) < 2 {
				return nil
			}
			args = args[2:]
			if len(args) > 0 && args[0] != "" && strings.ContainsAny(args[0][:1], "0123456789.") {
				args = args[1:]
			}
		case "sleep", "exit", "quit":
			return nil
		default:
			return args
		}
	}
	return args
}

// dotOperands completes the operand of a dot-command.
func dotOperands(args []string, part string) (found []repl.Candidate) {
	values := map[string][]string{".output": {"human", "raw", "json", "template="}, ".trace": {"on", "off"}}[strings.ToLower(args[0])]
	for _, v := range values {
		if len(args) == 1 && strings.HasPrefix(v, part) {
			found = append(found, repl.Candidate{Text: v, Open: strings.HasSuffix(v, "=")})
		}
	}
	return found
}

// completeCommand asks cobra, as the completion scripts of the user's shells do.
func (s *shell) completeCommand(args []string, part repl.Word) []repl.Candidate {
	line := s.newLine()
	root := newLineRoot(line)
	complete.Register(line, root)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	word := part.Text
	if part.Quoted { // an operand, whatever it looks like
		word = app.Protect(word, true)
	}
	root.SetArgs(slices.Concat([]string{cobra.ShellCompRequestCmd}, args, []string{word}))
	if err := root.Execute(); err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	last := lines[len(lines)-1]
	number, err := strconv.Atoi(strings.TrimPrefix(last, ":"))
	directive := cobra.ShellCompDirective(number)
	if err != nil || directive&cobra.ShellCompDirectiveError != 0 {
		return nil
	}
	var found []repl.Candidate
	for _, line := range lines[:len(lines)-1] {
		text, help, _ := strings.Cut(line, "\t")
		flag := strings.HasPrefix(text, "-")
		text, ok := complete.DecodeCandidate(text)
		if ok && strings.HasPrefix(text, part.Text) {
			found = append(found, repl.Candidate{
				Text: text, Help: strings.ReplaceAll(help, "`", ""), Flag: flag,
				Open: directive&cobra.ShellCompDirectiveNoSpace != 0 || strings.HasSuffix(text, "="),
			})
		}
	}
	if len(found) == 0 && directive&cobra.ShellCompDirectiveNoFileComp == 0 && !strings.HasPrefix(part.Text, "-") {
		return files(part.Text)
	}
	return found
}

// files lists the files whose names begin with part. A directory ends in a separator, and leaves
// the word open.
func files(part string) (found []repl.Candidate) {
	dir, name := filepath.Split(part)
	entries, err := os.ReadDir(orHere(dir))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".") {
			continue
		}
		c := repl.Candidate{Text: dir + e.Name()}
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.IsDir() {
			c.Text, c.Open = c.Text+string(filepath.Separator), true
		}
		found = append(found, c)
	}
	return found
}

// orHere returns the directory to read: "." for no directory.
func orHere(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}
