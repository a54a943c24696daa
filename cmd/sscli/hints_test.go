package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// hintsFile is the variable that names the file to which hintingMain appends hints.
const hintsFile = "SSCLI_TEST_HINTS"

// patient is the variable with which completion waits for the store for a minute.
const patient = "SSCLI_TEST_PATIENT"

// hintingMain is main, but with hintingApp.
func hintingMain() {
	if os.Getenv(hintsFile) == "" && os.Getenv(patient) == "" || process.GuardMain() {
		main()
		return
	}
	os.Exit(runApp(hintingApp(), os.Args[0], os.Args[1:]))
}

// hintingApp returns an App that also writes the hints it prints to a file, as data.
func hintingApp() *app.App {
	a := newApp()
	if os.Getenv(patient) != "" {
		a.CompletionLimit = time.Minute
	}
	if file := os.Getenv(hintsFile); file != "" {
		a.Hinted = func(hint suggest.Hint) {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				err = errors.Join(json.NewEncoder(f).Encode(hint), f.Close())
			}
			if err != nil {
				panic(err)
			}
		}
	}
	return a
}

// readHints returns the hints that hintingMain wrote to file.
func readHints(file string) (hints []suggest.Hint) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		var hint suggest.Hint
		if err := json.Unmarshal(line, &hint); err != nil {
			panic(err)
		}
		hints = append(hints, hint)
	}
	return hints
}

// badHint returns the part of a hint that sscli does not have; "" = it has all of it.
func badHint(root *cobra.Command, hint suggest.Hint) string {
	for _, step := range hint {
		for _, p := range step {
			if bad := badWords(root, nil, append(slices.Clone(p.Argv), p.Without...)); bad != "" {
				return bad
			}
		}
	}
	return ""
}

// badWords returns the first command or flag in words that sscli does not have; "" = none. Flags belong to cmd, or to
// any command if cmd is nil.
func badWords(root, cmd *cobra.Command, words []suggest.Word) string {
	for i, w := range words {
		switch word := w.Typed(); {
		case w.Place != "" || words[0].Typed() == "env" && word != "sscli":
		case word == "sscli":
			called := root
			for i++; i < len(words) && below(called, words[i].Typed()) != nil; i++ {
				called = below(called, words[i].Typed())
			}
			if next := append(words[i:], suggest.Word{Text: "-"})[0]; called == root && next.Place == "" && next.Typed()[0] != '-' {
				return "sscli " + next.Typed()
			}
			return badWords(root, called, words[i:])
		case i == 0 && cmd == nil && word[0] != '-':
			return "" // a command of another program
		case word == "--":
			return badWords(root, nil, words[i+1:])
		case len(word) > 1 && word[0] == '-' && !hasFlag(root, cmd, word):
			return word
		}
	}
	return ""
}

// below returns the subcommand or help topic of cmd with this name; nil = none.
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

// hasFlag reports whether cmd has a flag; with cmd nil, whether any command has it.
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

// TestHints checks that each command and each flag in the table of errors exists. Scripts check the hints that they
// show.
func TestHints(t *testing.T) {
	t.Parallel()
	root := cmdline.NewRoot(newApp())
	for _, test := range [][2]string{ // badHint finds what it looks for
		{"`sscli lock stat NAME`", ""}, {"`sscli lok status`", "sscli lok"}, {"use `--nonsense`", "--nonsense"}, {"`--nonsense in place of --fence`", "--nonsense"},
		{"`sscli get KEY --wait 1m`", "--wait"}, {"`sscli lock run NAME --wait 1m`; `--version-only`", ""}, {"`sscli lock run NAME -- sscli get KEY --wait 1m`", "--wait"},
	} {
		if got := badHint(root, suggest.Try(test[0])); got != test[1] {
			t.Errorf("%s: found %q, want %q", test[0], got, test[1])
		}
	}
	for _, row := range fault.Table() {
		if bad := badHint(root, suggest.Try(row.Hint)); bad != "" {
			t.Errorf("the hint of %s names %s, which sscli does not have: %s", row.Kind, bad, row.Hint)
		}
	}
}
