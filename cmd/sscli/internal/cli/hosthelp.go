package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/explain"
)

// CheckHelp refuses -h where redis-cli has its host: before a word that is no command. Else
// `v=$(sscli -h HOST get a)` would put the help into v, and end with 0.
func CheckHelp(root *cobra.Command, args []string) error {
	known := root.PersistentFlags()
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		arg := args[i]
		if arg == "-h" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && !isCommand(root, args[i+1]) {
			return &explain.UsageError{
				Err:  explain.Usagef("%.64q after -h, which is help: the host is -H", Unprotect(args[i+1])),
				Hint: "-H " + args[i+1],
			}
		}
		if len(arg) > 1 && arg[0] == '-' {
			if _, value := flagWord(known, arg); value {
				i++
			}
		}
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
