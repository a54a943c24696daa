package app

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// NoArgs refuses operands.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.Usagef("%.64q: %s takes no operand", args[0], cmd.CommandPath())
	}
	return nil
}

// ExactArgs requires the operands with these names: one word for each.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fault.Usagef("missing %s", strings.Join(names[len(args):], " and "))
		}
		if len(args) > len(names) {
			return fault.Usagef("%.64q: %s takes only %s", args[len(names)], cmd.CommandPath(), strings.Join(names, " and "))
		}
		return nil
	}
}

// Read reads a file, or standard input if the name is "-", to its end or until ctx ends. On a
// terminal it first says what it reads, because nothing else shows that sscli waits.
func (a *App) Read(ctx context.Context, name, what string) ([]byte, error) {
	a.Signals.Arm()
	if name != "-" {
		return terminal.ReadFile(ctx, name)
	}
	if f, ok := a.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		a.Inform("reading " + what + "; Ctrl-D ends")
	}
	data, err := terminal.ReadAll(ctx, a.Stdin)
	if err == nil || fault.IsA[*fault.UsageError](err) || ctx.Err() != nil {
		return data, err // a *fault.UsageError: there is no standard input
	}
	return nil, fmt.Errorf("standard input: %w", err)
}

// NotePattern says of a missing key that looks like a pattern that it was not taken for one.
func (a *App) NotePattern(key string) {
	if strings.ContainsAny(key, "*?") {
		a.Inform(fmt.Sprintf("no key is named %s; patterns are for scan", format.Brief(key)))
	}
}
