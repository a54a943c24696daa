package app

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// HelpWidth is the number of columns that help has at most.
const HelpWidth = 100

// everydayFlags lists the flags of all commands that the help of every command shows.
// `sscli help connection` shows the others.
func everydayFlags() []string { return []string{"url", "context", "output", "timeout", "quiet"} }

// setHelp lets help, and cobra's command of that name, print what this file says.
func setHelp(a *App, root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := strings.TrimSpace(cmd.Long)
		if text == "" {
			text = cmd.Short + "."
		}
		width := helpWidth(a)
		text = fill(text, width)
		if cmd.IsAdditionalHelpTopicCommand() {
			text += "\n"
		} else {
			text += "\n\n" + usage(cmd, width)
		}
		// There is no place to report an error to, as in cobra.
		_, _ = io.WriteString(cmd.OutOrStdout(), text)
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd, HelpWidth))
		return err
	})
	root.SetHelpCommandGroupID(GroupMore)
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			helpCommand(a, root, cmd)
		}
	}
}

// helpCommand lets cobra's command help return errors as other commands do, and work whatever
// the settings are.
func helpCommand(a *App, root, cmd *cobra.Command) {
	cmd.Use, cmd.Short, cmd.Long = "help [COMMAND|TOPIC]", "Explain a command or a topic", ""
	cmd.Example = "  sscli help lock run\n  sscli help connection"
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
	cmd.Run = nil
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil {
			about, rest = root, args
		}
		if len(rest) > 0 && about == root {
			isShown := shown(a)
			topic := func(path string) bool { return isShown(strings.TrimPrefix(path, "help ")) }
			if meant := suggest.Command("help", UnprotectAll(rest), topic); meant.Hint != "" {
				return &fault.UsageError{Err: fmt.Errorf("unknown command %.64q", Unprotect(rest[0])), Hint: meant.Hint}
			}
		}
		if len(rest) > 0 {
			return unknownCommand(a, about, rest)
		}
		return about.Help()
	}
}

// helpWidth returns the columns for help: the terminal's, but at most HelpWidth.
func helpWidth(a *App) int {
	const least = 60
	width, _, err := term.GetSize(int(a.Stdout.Fd()))
	if err != nil {
		return HelpWidth
	}
	return max(least, min(width, HelpWidth))
}

// usage returns what help says after the explanation of a command: how to call it, examples,
// its commands and its flags.
func usage(cmd *cobra.Command, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", UseLine(cmd))
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAlso: %s.\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, group := range commandGroups(cmd) {
		fmt.Fprintf(&b, "\n%s\n%s", group.title, Rows(group.rows, width))
	}
	if own := OwnFlags(cmd); len(own) > 0 {
		fmt.Fprintf(&b, "\nFlags:\n%s", Rows(FlagRows(own), width))
	}
	var everyday []*pflag.Flag
	for _, name := range everydayFlags() {
		if f := cmd.Root().PersistentFlags().Lookup(name); f != nil && !f.Hidden {
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
	return b.String()
}

// UseLine returns how to call a command: its path, its operands, and that there are flags.
func UseLine(cmd *cobra.Command) string {
	line := cmd.CommandPath()
	if _, operands, ok := strings.Cut(cmd.Use, " "); ok {
		line += " " + operands
	}
	if cmd.HasAvailableSubCommands() {
		line += " COMMAND"
	}
	return line + " [flags]"
}

// A commandGroup is a part of the list of commands.
type commandGroup struct {
	title string
	rows  [][2]string
}

// commandGroups lists the commands and the topics below a command as its help shows them.
func commandGroups(cmd *cobra.Command) []commandGroup {
	var groups []commandGroup
	widest := 0
	add := func(title string, in func(*cobra.Command) bool) {
		g := commandGroup{title: title}
		for _, c := range cmd.Commands() {
			if in(c) {
				g.rows = append(g.rows, [2]string{c.Name(), c.Short})
				widest = max(widest, len(c.Name()))
			}
		}
		if len(g.rows) > 0 {
			groups = append(groups, g)
		}
	}
	command := func(c *cobra.Command) bool { return isShown(c) && !c.IsAdditionalHelpTopicCommand() }
	for _, group := range cmd.Groups() {
		add(group.Title, func(c *cobra.Command) bool { return command(c) && c.GroupID == group.ID })
	}
	add("Commands:", func(c *cobra.Command) bool { return command(c) && c.GroupID == "" })
	add("Topics:", (*cobra.Command).IsAdditionalHelpTopicCommand)
	for _, g := range groups { // which share their columns
		for i := range g.rows {
			g.rows[i][0] = fmt.Sprintf("%-*s", widest, g.rows[i][0])
		}
	}
	return groups
}

// OwnFlags lists the flags that a command does not share with all others, in the order of
// declaration, without --help and hidden flags.
func OwnFlags(cmd *cobra.Command) []*pflag.Flag {
	shared, fs := cmd.Root().PersistentFlags(), cmd.Flags()
	return visible(fs, func(f *pflag.Flag) bool { return shared.Lookup(f.Name) == nil })
}

// SharedFlags lists the flags of all commands, in the order of declaration.
func SharedFlags(cmd *cobra.Command) []*pflag.Flag {
	return visible(cmd.Root().PersistentFlags(), func(*pflag.Flag) bool { return true })
}

// visible lists the flags that help shows, of those that are wanted.
func visible(fs *pflag.FlagSet, wanted func(*pflag.Flag) bool) (flags []*pflag.Flag) {
	fs.SortFlags = false
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && wanted(f) {
			flags = append(flags, f)
		}
	})
	return flags
}

// FlagHelp returns the name of a flag's value, empty for a switch, and what the flag does, with
// its default.
func FlagHelp(f *pflag.Flag) (value, usage string) {
	value, usage = pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		usage += " (default " + f.DefValue + ")"
	}
	return value, usage
}

// FlagRows returns flags as rows of help: the names with the value, and what FlagHelp says.
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

// Rows lays out terms and what they mean in two columns, with lines of at most width columns
// unless a single word is longer.
func Rows(rows [][2]string, width int) string {
	const indent, gap, widest = 2, 2, 30 // a longer term has a line of its own
	column := 0
	for _, row := range rows {
		if n := utf8.RuneCountInString(row[0]); n <= widest {
			column = max(column, n)
		}
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.Repeat(" ", indent) + row[0])
		at := indent + utf8.RuneCountInString(row[0]) // the column after what is written
		begin := indent + column + gap                // of the second column
		first := true
		for word := range strings.FieldsSeq(row[1]) {
			n := utf8.RuneCountInString(word)
			if first && at+gap > begin || !first && at+1+n > width {
				b.WriteByte('\n')
				at, first = 0, true
			}
			if first {
				b.WriteString(strings.Repeat(" ", begin-at))
				at = begin
			} else {
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at, first = at+n, false
		}
		b.WriteByte('\n')
	}
	return b.String()
}
