package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/command/self"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
)

// TestReference compares docs/commands.md with the command table; -update rewrites it.
func TestReference(t *testing.T) {
	t.Parallel()
	const file = "../../docs/commands.md"
	root := cmdline.NewRoot(newApp())

	want := reference(root)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the commands say; go test ./cmd/sscli -run TestReference -update (-commands +page)\n%s", file, diff)
	}
}

func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(`# Commands

<!-- Written by go test ./cmd/sscli -run TestReference -update, from the help of the commands. -->

This page has the text of ` + "`sscli help COMMAND`" + ` and ` + "`man sscli-COMMAND`" + `. Command names may be
written in any case. The [flags of all commands](#flags-of-all-commands) are at the end.
`)
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n%s\n\n| | |\n| --- | --- |\n", strings.TrimSuffix(g.Title, ":"))
		for _, cmd := range self.Documented(root)[1:] {
			if cmd.Parent() == root && cmd.GroupID == g.ID {
				fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", cmd.Name(), anchor(cmd), markdown(cmd.Short))
			}
		}
	}
	for _, cmd := range self.Documented(root)[1:] {
		if !cmd.IsAdditionalHelpTopicCommand() {
			section(&b, cmd)
		}
	}
	b.WriteString("\n## Flags of all commands\n\n")
	flagTable(&b, help.SharedFlags(root))
	return b.String()
}

func anchor(cmd *cobra.Command) string { return self.PageName(cmd) }

func section(b *strings.Builder, cmd *cobra.Command) {
	level := "##"
	if cmd.Parent().HasParent() {
		level = "###"
	}
	fmt.Fprintf(b, "\n%s %s\n\n```text\n%s\n```\n", level, cmd.CommandPath(), help.UseLine(cmd))
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	for _, part := range help.Blocks(long) {
		b.WriteString("\n")
		switch {
		case part.Rows != nil:
			b.WriteString("| | |\n| --- | --- |\n")
			for _, row := range part.Rows {
				fmt.Fprintf(b, "| %s | %s |\n", code(row[0]), markdown(row[1]))
			}
		case part.Literal != nil:
			fmt.Fprintf(b, "```text\n%s\n```\n", strings.Join(part.Literal, "\n"))
		default:
			b.WriteString(markdown(part.Prose) + "\n")
		}
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso: %s.\n", strings.Join(cmd.Aliases, ", "))
	}
	if flags := help.OwnFlags(cmd); len(flags) > 0 {
		b.WriteString("\n")
		flagTable(b, flags)
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", help.Outdent(cmd.Example))
	}
}

func flagTable(b *strings.Builder, flags []*pflag.Flag) {
	b.WriteString("| flag | |\n| --- | --- |\n")
	for _, f := range flags {
		value, usage := help.FlagHelp(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, "| %s | %s |\n", code(strings.TrimSpace(name+" "+value)), markdown(usage))
	}
}

func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// markdown escapes everything in text that is special in Markdown.
func markdown(text string) string {
	var b strings.Builder
	for i, c := range text {
		if strings.ContainsRune("\\`*_[]<>|~", c) || i == 0 && strings.ContainsRune("#-+", c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// commands returns the root and all commands and topics below it, including hidden ones.
func commands(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		list = append(list, commands(sub)...)
	}
	return list
}

// helpText returns what `sscli help` prints about a command or a topic if the output is not a terminal.
func helpText(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var b strings.Builder
	cmd.SetOut(&b)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHelp limits the help of each command: it fits on a screen, and shows how to use the command.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, cmd := range commands(cmdline.NewRoot(newApp())) {
		path := cmd.CommandPath()
		if n := utf8.RuneCountInString(cmd.Short); n == 0 || n > 50 || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short has %d characters, want a phrase of 1 to 50: %s", path, n, cmd.Short)
		}
		for line := range strings.Lines(helpText(t, cmd)) {
			if n := utf8.RuneCountInString(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "        ")); n > help.Width {
				t.Errorf("%s: a line of help has %d columns, want at most %d: %s", path, n, help.Width, line)
			}
		}
		if cmd.IsAdditionalHelpTopicCommand() {
			continue
		}
		if !strings.Contains(cmd.Example, "sscli ") {
			t.Errorf("%s: no Example", path)
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: an example is not indented by two blanks: %s", path, line)
			}
		}
	}
}

// TestHelpDefaults: the defaults that --help prints are meaningful.
func TestHelpDefaults(t *testing.T) {
	t.Parallel()
	for _, cmd := range self.Documented(cmdline.NewRoot(newApp())) {
		for line := range strings.Lines(cmd.UsageString()) {
			if strings.Contains(line, "(default )") || strings.Contains(line, `(default "0s")`) {
				t.Errorf("%s: %s", cmd.CommandPath(), line)
			}
		}
	}
}
