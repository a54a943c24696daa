package cmdline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
)

// checkHelp returns an error for -h HOST, which is redis-cli's flag for the host. Otherwise
// `v=$(sscli -h HOST get a)` would put the help into v and exit with 0. A word after -h is taken
// for a host unless it names a command. checkHelp also returns an error for help about an unknown
// command, where cobra would show the parent's help.
func checkHelp(root *cobra.Command, w words) error {
	if w.completes || !w.help {
		return nil
	}
	if w.host != "" && !isCommand(root, w.host) {
		host := usage.Unprotect([]string{w.host})[0]
		return &fault.UsageError{Err: fmt.Errorf("%.64q after -h: -h shows help; the host is -H", host), Hint: suggest.Run("-H", host)}
	}
	// root.Find treats -h as a switch only in commands that already define the flag, so define it in
	// each command that Find returns. If Find fails, the parser reports the error later.
	root.InitDefaultHelpFlag()
	cmd, rest, err := root.Find(w.args)
	for below := root; err == nil && cmd != below; {
		below = cmd
		cmd.InitDefaultHelpFlag()
		cmd, rest, err = root.Find(w.args)
	}
	if err != nil || !cmd.HasSubCommands() {
		return nil
	}
	cmd.InheritedFlags() // adds the inherited flags to cmd.Flags
	if w := readWords(cmd.Flags(), rest); w.first < len(w.args) {
		names := slices.DeleteFunc(w.args[w.first:], func(word string) bool { return strings.HasPrefix(word, "-") })
		return unknownCommand(cmd, usage.Unprotect(names))
	}
	return nil
}

// isCommand reports whether a word is the name or an alias of a command below cmd, at any depth.
func isCommand(cmd *cobra.Command, word string) bool {
	for _, c := range cmd.Commands() {
		if strings.EqualFold(c.Name(), word) || c.HasAlias(word) || isCommand(c, word) {
			return true
		}
	}
	return false
}

// addHelpCommand adds cobra's help command, changed so that it returns errors like other commands
// and works even if the settings are invalid.
func addHelpCommand(a *app.App, root *cobra.Command) {
	root.SetHelpCommandGroupID(app.GroupMore)
	root.InitDefaultHelpCmd()
	commands := root.Commands()
	cmd := commands[slices.IndexFunc(commands, func(c *cobra.Command) bool { return c.Name() == "help" })]
	cmd.Use, cmd.Short, cmd.Long = "help [COMMAND|GROUP|TOPIC]", "Explain a command or a topic", ""
	cmd.Example = "  sscli help lock run\n  sscli help connection\n  sscli help diagnostics    # the commands of a group\n  sscli help --all"
	all := cmd.Flags().Bool("all", false, "list all commands and topics")
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
	cmd.Run = nil
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil {
			about, rest = root, args
		}
		group := ""
		if about == root && len(rest) == 1 {
			group = rest[0]
		}
		if list := help.List(root, group, help.Columns(a.Stdout.File)); group != "" && list != "" || *all && len(args) == 0 {
			return a.Print(strings.TrimPrefix(list, "\n"))
		}
		if len(rest) == 0 {
			return about.Help()
		}
		if meant := suggest.Command("help TOPIC", rest); about == root && meant.Hint != nil {
			return &fault.UsageError{Err: fmt.Errorf("unknown command %.64q", rest[0]), Hint: meant.Hint}
		}
		return unknownCommand(about, rest)
	}
}
