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
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/glob"
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
			if names[len(args)] == config.FileValue {
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

// Pattern parses a pattern of keys, the value of a flag, in the syntax of `sscli scan`. The error is a
// *fault.UsageError.
func Pattern(flag, text string) (*glob.Pattern, error) {
	p, ok := glob.Parse(text)
	if !ok {
		return nil, fault.Usagef("%s %.64q: not a pattern: a [ needs a ], and ** is a whole level, as in a/** or a/**/b", flag, text)
	}
	return p, nil
}

// BindShow defines the flag --show, which selects how the human form shows values.
func BindShow(fs *pflag.FlagSet, show *format.Show) {
	fs.Var(show, "show", "show values as `FORM`: text, json, hex or quoted (default: chosen for each value)")
}

// CheckShow returns a usage error if --show was given for a form of output that ignores it.
func CheckShow(show format.Show, output string) error {
	if show != "" && output != "human" {
		form, _, _ := strings.Cut(output, "=")
		return &fault.UsageError{Err: fmt.Errorf("--show %s is for the human form, and the output is %s", show, form), Hint: suggest.Try("`-o human`")}
	}
	return nil
}
