package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/manual"
)

// TestReference compares docs/commands.md with the command table; -update writes it.
func TestReference(t *testing.T) {
	const file = "../../docs/commands.md"
	root := cli.NewRoot(newApp())
	root.InitDefaultCompletionCmd()
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

This is what ` + "`sscli help COMMAND`" + ` and ` + "`man sscli-COMMAND`" + ` say. Names of commands may be
written in any case. The [flags of all commands](#flags-of-all-commands) stand at the
end.
`)
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n%s\n\n| | |\n| --- | --- |\n", strings.TrimSuffix(g.Title, ":"))
		for _, cmd := range manual.Documented(root)[1:] {
			if cmd.Parent() == root && cmd.GroupID == g.ID {
				fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", cmd.Name(), anchor(cmd), markdown(cmd.Short))
			}
		}
	}
	for _, cmd := range manual.Documented(root)[1:] {
		if !cmd.IsAdditionalHelpTopicCommand() {
			section(&b, cmd)
		}
	}
	b.WriteString("\n## Flags of all commands\n\n")
	flagTable(&b, root.PersistentFlags())
	return b.String()
}

func anchor(cmd *cobra.Command) string { return manual.PageName(cmd) }

func section(b *strings.Builder, cmd *cobra.Command) {
	level := "##"
	if cmd.Parent().HasParent() {
		level = "###"
	}
	fmt.Fprintf(b, "\n%s %s\n\n```text\n%s\n```\n", level, cmd.CommandPath(), cmd.UseLine())
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	for _, part := range manual.Blocks(long) {
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
	if cmd.HasAvailableLocalFlags() {
		b.WriteString("\n")
		flagTable(b, cmd.LocalFlags())
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", manual.Outdent(cmd.Example))
	}
}

func flagTable(b *strings.Builder, fs *pflag.FlagSet) {
	b.WriteString("| flag | |\n| --- | --- |\n")
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := manual.FlagHelp(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, "| %s | %s |\n", code(strings.TrimSpace(name+" "+value)), markdown(usage))
	})
}

func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// markdown is a text in which nothing has a meaning for Markdown.
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

// TestHelpDefaults: what --help prints of a default says something.
func TestHelpDefaults(t *testing.T) {
	for _, cmd := range manual.Documented(cli.NewRoot(newApp())) {
		for line := range strings.Lines(cmd.UsageString()) {
			if strings.Contains(line, "(default )") || strings.Contains(line, `(default "0s")`) {
				t.Errorf("%s: %s", cmd.CommandPath(), line)
			}
		}
	}
}
