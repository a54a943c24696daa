package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
)

// TestOneRemedy: the docs and the help name one remedy for the lock of a dead holder, `lock break`.
func TestOneRemedy(t *testing.T) {
	t.Parallel()
	texts := make(map[string]string)
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no docs: %v", err)
	}
	for _, name := range append(names, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		texts[cmd.CommandPath()] = cmd.Long + "\n\n" + cmd.Example
		for _, below := range cmd.Commands() {
			add(below)
		}
	}
	add(cmdline.NewRoot(newApp()))
	dead := regexp.MustCompile(`(?i)(holder|job|process)\b[^.]*\b(dead|gone|died|killed|crashed)\b|remedy`)
	other := regexp.MustCompile(`(?i)\bvdel\b|lock release [^\n]*--holder|holder's name`)
	remedies := 0
	for name, text := range texts {
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			if !dead.MatchString(paragraph) || !strings.Contains(paragraph, "lock") {
				continue
			}
			if strings.Contains(paragraph, "lock break") {
				remedies++
			}
			if other.MatchString(paragraph) && !strings.Contains(paragraph, "```console") && !strings.HasPrefix(paragraph, "| ") {
				t.Errorf("%s: another remedy than lock break:\n%s", name, paragraph)
			}
		}
	}
	if remedies < 4 {
		t.Errorf("%d paragraphs name lock break", remedies)
	}
}
