package cmdline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

// unknownCommand returns the usage error for words that do not name a command below cmd. It suggests
// what the user may have meant.
func unknownCommand(cmd *cobra.Command, words []string) error {
	// The path of a command in a batch does not begin with sscli.
	under := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "sscli"), " ")
	path := strings.TrimSpace("sscli " + under)
	meant := suggest.Command(under, words)
	if !cmd.HasSubCommands() {
		return &fault.UsageError{Err: fmt.Errorf("%.64q after %s, which has no commands of its own", words[0], under), Hint: suggest.Run(strings.Fields(path + " --help")...)}
	}
	what := "unknown command"
	if under != "" {
		what = "unknown " + under + " command"
	}
	err := fmt.Errorf("%s %.64q", what, words[0])
	hint := meant.Hint
	if hint == nil && meant.Why == "" {
		if near := suggest.Near(words[0], available(cmd)); len(near) > 0 {
			hint = suggest.Run(strings.Fields(path + " " + near[0] + " --help")...)
		} else {
			hint = suggest.Other(under, words).Hint
		}
	}
	switch {
	case meant.Why != "":
		err = fmt.Errorf("%w: %s", err, meant.Why)
	case hint == nil && under != "":
		err = fmt.Errorf("%w: expected %s", err, format.List(available(cmd), "or"))
	}
	if hint == nil {
		hint = suggest.Run(strings.Fields(path + " --help")...)
	}
	return &fault.UsageError{Err: err, Hint: hint}
}

func available(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// flagUsage converts an error of the flag parser to a usage error. For an unknown flag, the hint is a
// flag with a similar name or, for another tool's flag, the flag of sscli that does the same.
func flagUsage(cmd *cobra.Command, err error) error {
	usage := usage.FlagError("", err)
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usage
	}
	usage.Err = &unknownFlagError{usage.Err, missing.GetSpecifiedName()}
	if missing.GetSpecifiedShortnames() != "" {
		return usage
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	name := missing.GetSpecifiedName()
	usage.Hint = suggest.Flag(name, func(flag string) bool { return cmd.Flags().Lookup(flag) != nil })
	if near := suggest.Near(name, names); usage.Hint == nil && len(near) > 0 {
		usage.Hint = suggest.Try("`--" + strings.Join(near, "` or `--") + "`")
	}
	return usage
}

// An unknownFlagError means that the command line has a flag that the command does not have.
type unknownFlagError struct {
	error
	flag string // without dashes
}

// adviseFlag replaces the hint about an unknown flag if a user of another tool would mean a different
// command of sscli by that flag. args holds the words of the command line.
func adviseFlag(cmd *cobra.Command, args []string, problem *fault.UsageError) {
	unknown, ok := problem.Err.(*unknownFlagError)
	if !ok {
		return
	}
	path := strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "sscli"))
	words := usage.Unprotect(readWords(cmd.Flags(), args).operands)
	i := slices.IndexFunc(words, func(w string) bool {
		return len(path) > 0 && (strings.EqualFold(w, path[0]) || cmd.HasAlias(w))
	})
	if i < 0 || i+len(path) > len(words) {
		return
	}
	meant := suggest.FlagMeaning(strings.Join(path, " "), unknown.flag, words[i+len(path):])
	if meant.Hint != nil {
		problem.Hint = meant.Hint
	}
}
