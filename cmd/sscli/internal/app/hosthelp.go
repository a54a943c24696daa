package app

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// CheckHelp refuses -h where redis-cli has its host: before a word that is no command. Else
// `v=$(sscli -h HOST get a)` would put the help into v, and end with 0.
func CheckHelp(a *App, root *cobra.Command, args []string) error {
	known := root.PersistentFlags()
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		arg := args[i]
		if arg == "-h" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && !isCommand(root, args[i+1]) {
			return &fault.UsageError{
				Err:  fault.Usagef("%.64q after -h: -h shows help; the host is -H", Unprotect(args[i+1])),
				Hint: "-H " + args[i+1],
			}
		}
		if len(arg) > 1 && arg[0] == '-' {
			if _, value := flagWord(known, arg); value {
				i++
			}
		}
	}
	return helpAbout(a, root, args)
}

// helpAbout returns the usage error for --help after words that are no command: cobra would print
// the help of the command above them.
func helpAbout(a *App, root *cobra.Command, args []string) error {
	for i, arg := range args {
		switch {
		case arg == "--" || i == 0 && (arg == cobra.ShellCompRequestCmd || arg == cobra.ShellCompNoDescRequestCmd):
			return nil
		case arg != "-h" && arg != "--help":
			continue
		}
		// A command knows -h as a switch only once it has the flag. An error is the parser's to
		// report.
		root.InitDefaultHelpFlag()
		cmd, rest, err := root.Find(args)
		for below := root; err == nil && cmd != below; {
			below = cmd
			cmd.InitDefaultHelpFlag()
			cmd, rest, err = root.Find(args)
		}
		if err != nil || cmd.Root().Name() != "sscli" || !cmd.HasSubCommands() {
			return nil
		}
		cmd.InheritedFlags() // makes cmd.Flags have them
		if i := firstWord(cmd.Flags(), rest); i < len(rest) {
			words := slices.DeleteFunc(slices.Clone(rest[i:]), func(w string) bool { return strings.HasPrefix(w, "-") })
			return unknownCommand(a, cmd, words)
		}
		return nil
	}
	return nil
}

// isCommand reports whether a word is the name of a command below cmd, at any depth.
func isCommand(cmd *cobra.Command, word string) bool {
	for _, c := range cmd.Commands() {
		if strings.EqualFold(c.Name(), word) || c.HasAlias(word) || isCommand(c, word) {
			return true
		}
	}
	return false
}
