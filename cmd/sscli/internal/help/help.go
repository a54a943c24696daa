// Package help formats the help of a command: an explanation, usage, examples, subcommands and
// flags, wrapped to the width of the terminal.
//
// [Install] makes a command and its subcommands print their help with this package. The manual and the
// help topics use [Groups], [Rows], [FlagRows], [UseLine] and [OwnFlags]. [Topics] returns the pages
// that are not about a command, such as `sscli help exit-codes`.
package help

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// Width is the maximum number of columns of help.
const Width = 100

// Install makes root and its subcommands print their help with this package. If out is a terminal, the
// help of a command is wrapped to the width of the terminal, but at least 60 and at most [Width]
// columns.
func Install(root *cobra.Command, out *os.File) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := strings.TrimSpace(cmd.Long)
		if text == "" {
			text = cmd.Short + "."
		}
		width := Columns(out)
		text = Fill(text, width)
		if cmd.IsAdditionalHelpTopicCommand() {
			text += "\n"
		} else {
			text += "\n\n" + usage(cmd, width)
		}
		// Like cobra, ignore errors: a help function cannot return one.
		_, _ = io.WriteString(cmd.OutOrStdout(), text)
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd, Width))
		return err
	})
}

// Columns returns the width of help: the width of the terminal out, but at least 60 and at most Width.
// It returns Width if out is not a terminal.
func Columns(out *os.File) int {
	const least = 60
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return Width
	}
	return max(least, min(width, Width))
}

// usage returns the part of help after the explanation: the usage line, examples, subcommands and
// flags.
func usage(cmd *cobra.Command, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", UseLine(cmd))
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAlso: %s.\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if groups := Groups(cmd); len(cmd.Groups()) > 1 {
		b.WriteString(list(groups[:1], width))
		var rows [][2]string
		for _, group := range groups[1:] {
			var names []string
			for _, c := range group.Commands {
				names = append(names, c.Name())
			}
			rows = append(rows, [2]string{group.Name, strings.Join(names, ", ")})
		}
		fmt.Fprintf(&b, "\nMore commands, and topics (sscli help %s):\n%s", rows[0][0], Rows(rows, width))
	} else {
		b.WriteString(list(groups, width))
	}
	own := OwnFlags(cmd)
	if len(own) > 0 {
		fmt.Fprintf(&b, "\nFlags:\n%s", Rows(FlagRows(own), width))
	}
	var everyday []*pflag.Flag // `sscli help connection` shows the other shared flags
	for _, name := range []string{"url", "context", "output", "timeout", "quiet"} {
		f := cmd.Root().PersistentFlags().Lookup(name)
		if f != nil && !f.Hidden && !slices.ContainsFunc(own, func(o *pflag.Flag) bool { return o.Name == name }) {
			everyday = append(everyday, f)
		}
	}
	if len(everyday) > 0 {
		fmt.Fprintf(&b, "\nFlags of all commands:\n%s", Rows(FlagRows(everyday), width))
		b.WriteString("\nFor the other flags of all commands: sscli help connection\n")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "For more about a command: %s COMMAND --help\n", cmd.CommandPath())
	}
	if len(cmd.Groups()) > 1 {
		b.WriteString("For all commands: sscli help --all\n")
	}
	return b.String()
}

// List returns the commands and topics of a group in the help of cmd, a row each, or of all groups if name is
// empty. It returns "" if there is no such group.
func List(cmd *cobra.Command, name string, width int) string {
	groups := Groups(cmd)
	if name != "" {
		groups = slices.DeleteFunc(groups, func(g Group) bool { return !strings.EqualFold(g.Name, name) })
	}
	return list(groups, width)
}

func list(groups []Group, width int) string {
	widest := 0 // to align the columns of all groups
	for _, g := range groups {
		for _, c := range g.Commands {
			widest = max(widest, len(c.Name()))
		}
	}
	var b strings.Builder
	for _, group := range groups {
		var rows [][2]string
		for _, c := range group.Commands {
			rows = append(rows, [2]string{fmt.Sprintf("%-*s", widest, c.Name()), c.Short})
		}
		fmt.Fprintf(&b, "\n%s\n%s", group.Title, Rows(rows, width))
	}
	return b.String()
}

// UseLine returns a command's usage line: its path, its operands, and [flags].
func UseLine(cmd *cobra.Command) string {
	line := cmd.CommandPath() + Operands(cmd)
	if cmd.HasAvailableSubCommands() {
		line += " COMMAND"
	}
	return line + " [flags]"
}

// Operands returns what follows the name in a command's usage: a space before each operand.
func Operands(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.Use, cmd.Name()) }

// A Group is a group of commands in help.
type Group struct {
	Name     string // as in `sscli help NAME`; empty = the only one
	Title    string
	Commands []*cobra.Command
}

// Groups returns the subcommands and topics that the help of cmd shows, in groups. It omits empty
// groups.
func Groups(cmd *cobra.Command) (groups []Group) {
	add := func(name, title string, in func(*cobra.Command) bool) {
		g := Group{Name: name, Title: title}
		for _, c := range cmd.Commands() {
			if IsShown(c) && in(c) {
				g.Commands = append(g.Commands, c)
			}
		}
		if len(g.Commands) > 0 {
			groups = append(groups, g)
		}
	}
	topic := (*cobra.Command).IsAdditionalHelpTopicCommand
	for _, group := range cmd.Groups() {
		add(group.ID, group.Title, func(c *cobra.Command) bool { return c.GroupID == group.ID })
	}
	add("", "Commands:", func(c *cobra.Command) bool { return c.GroupID == "" && !topic(c) })
	add("topics", "Topics:", topic)
	return groups
}

// IsShown reports whether help shows a command or a topic.
func IsShown(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() || cmd.Name() == "help" || cmd.IsAdditionalHelpTopicCommand()
}

// OwnFlags returns the flags of a command that are not flags of all commands, in the order of
// declaration, without --help and hidden flags. A flag that only has the name of a flag of all commands
// is the command's own.
func OwnFlags(cmd *cobra.Command) []*pflag.Flag {
	shared, fs := cmd.Root().PersistentFlags(), cmd.Flags()
	return visible(fs, func(f *pflag.Flag) bool { return shared.Lookup(f.Name) != f })
}

// SharedFlags returns the flags that all commands have, in the order of declaration, without --help and
// hidden flags.
func SharedFlags(cmd *cobra.Command) []*pflag.Flag {
	return visible(cmd.Root().PersistentFlags(), func(*pflag.Flag) bool { return true })
}

// visible returns the flags that the function wanted selects, without --help and hidden flags.
func visible(fs *pflag.FlagSet, wanted func(*pflag.Flag) bool) (flags []*pflag.Flag) {
	fs.SortFlags = false
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && wanted(f) {
			flags = append(flags, f)
		}
	})
	return flags
}

// FlagHelp returns the name of a flag's value and the description of the flag. The name is empty for a
// switch. The description ends with the default, unless the default is a zero value.
func FlagHelp(f *pflag.Flag) (value, usage string) {
	value, usage = pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		usage += " (default " + f.DefValue + ")"
	}
	return value, usage
}

// FlagRows returns a row of help for each flag: its names and value, and its description.
func FlagRows(flags []*pflag.Flag) [][2]string {
	rows := make([][2]string, len(flags))
	for i, f := range flags {
		name := "    --" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		value, usage := FlagHelp(f)
		rows[i] = [2]string{strings.TrimRight(name+" "+value, " "), usage}
	}
	return rows
}

// Rows formats rows of a term and its meaning as two columns. Lines have at most width columns, unless
// a term or a word is longer.
func Rows(rows [][2]string, width int) string {
	const indent, gap, widest = 2, 2, 30 // a term longer than widest gets its own line
	column := 0
	for _, row := range rows {
		if n := utf8.RuneCountInString(row[0]); n <= widest {
			column = max(column, n)
		}
	}
	begin := indent + column + gap // where the meanings begin
	var b strings.Builder
	for _, row := range rows {
		term := strings.Repeat(" ", indent) + row[0]
		switch n := utf8.RuneCountInString(row[0]); {
		case row[1] == "":
		case n > column:
			term += "\n" + fillWords(strings.Repeat(" ", begin), row[1:], width)
		default:
			term = fillWords(term+strings.Repeat(" ", begin-indent-n), row[1:], width)
		}
		b.WriteString(term + "\n")
	}
	return b.String()
}
