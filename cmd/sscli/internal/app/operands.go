package app

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// NoArgs is cobra's Args for a command without operands. It returns a usage error if there are any.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.Usagef("%.64q: %s takes no operand", args[0], cmd.CommandPath())
	}
	return nil
}

// ExactArgs requires one operand for each of names. Its errors name the missing ones.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			missing := &fault.UsageError{Err: fmt.Errorf("missing %s", strings.Join(names[len(args):], " and "))}
			if names[len(args)] == "FILE" {
				missing.Hint = cmd.CommandPath() + " - reads standard input"
			}
			return missing
		}
		if len(args) > len(names) {
			return fault.Usagef("%.64q: %s takes only %s", args[len(names)], cmd.CommandPath(), strings.Join(names, " and "))
		}
		return nil
	}
}

// Read reads a file, or standard input if the name is "-", to its end or until ctx ends. If standard
// input is a terminal, Read first prints that it is reading what, because nothing else shows that
// sscli waits for input.
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
		return data, err // the *fault.UsageError means that there is no standard input
	}
	return nil, fmt.Errorf("standard input: %w", err)
}

// NotePattern prints a note if a missing key looks like a pattern or like an MQTT topic filter: the
// command took it literally. use is the command that takes a PATTERN.
func (a *App) NotePattern(key, use string) {
	pattern := Pattern(key)
	if pattern == "" {
		return
	}
	if typed, ok := suggest.Quoted(pattern); ok {
		use = strings.ReplaceAll(use, "PATTERN", typed)
	}
	a.Inform(fmt.Sprintf("no key is named %s; for a pattern: %s", format.Brief(key), use))
}

// Pattern returns the pattern that the user may have meant by a key; empty if the key does not look
// like a pattern. The + and # of an MQTT topic filter become *.
func Pattern(key string) string {
	levels, filter := strings.Split(key, "/"), false
	for i, level := range levels {
		if level == "+" || level == "#" && i == len(levels)-1 {
			levels[i], filter = "*", true
		}
	}
	if !filter && !strings.ContainsAny(key, "*?") {
		return ""
	}
	return strings.Join(levels, "/")
}

// ReadKeys reads the file of --keys-from, or standard input if its name is "-".
func ReadKeys(name string, read func(name, what string) ([]byte, error)) ([]string, error) {
	text, err := read(name, "the keys, one per line")
	if fault.IsA[*fs.PathError](err) && name != "-" {
		return nil, &fault.UsageError{Err: fmt.Errorf("--keys-from: %w", err)}
	}
	if err != nil {
		return nil, err
	}
	return parseKeys(text)
}

// parseKeys parses keys in the form of the raw output, one per line. It ignores empty lines.
func parseKeys(text []byte) (keys []string, err error) {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); line == "" {
			continue
		}
		key, err := format.Unescape(line)
		if err != nil {
			return nil, fault.Usagef("--keys-from: line %d: %w", n, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
