// Package usage checks the operands and the flags that several commands share. Its own errors are
// usage errors.
//
// It also protects operands that begin with a minus from flag parsers. The -5 in `set temp -5` is an
// operand, and so is a quoted word in a line of sscli's shell or of a batch. [Protect] marks such words
// before a flag parser gets them. [Unprotect] and [UnprotectFlags] remove the marks from the parser's
// results, so that a command sees the words that the user wrote.
package usage

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// NoArgs is the field Args of a cobra.Command without operands. It returns a usage error if there are
// any.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.Usagef("%.64q: %s takes no operand", args[0], cmd.CommandPath())
	}
	return nil
}

// ExactArgs returns a function that requires one operand for each of names. Its error names the missing
// operands, or the first excess operand.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			missing := &fault.UsageError{Err: fmt.Errorf("missing %s", strings.Join(names[len(args):], " and "))}
			if names[len(args)] == "FILE" {
				missing.Hint = suggest.Try("`WORDS... -` reads standard input").Fill(suggest.Words, strings.Fields(cmd.CommandPath())...)
			}
			return missing
		}
		if len(args) > len(names) {
			return fault.Usagef("%.64q: %s takes only %s", args[len(names)], cmd.CommandPath(), strings.Join(names, " and "))
		}
		return nil
	}
}

// Child is the field Args of a cobra.Command that runs the command after a --, if there is a --. It returns a
// usage error if nothing follows the --, as with a variable that is empty, or if an operand comes before it.
func Child(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash > 0, dash < 0 && len(args) > 0:
		return fault.Usagef("%.64q: to run a command, write %s -- CMD...", args[0], cmd.Name())
	case dash == 0 && len(args) == 0:
		return fault.Usagef("nothing after --: expected %s -- CMD...", cmd.Name())
	}
	return nil
}
