package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// guard is put before an operand that a flag parser would take for a flag: one that begins
// with a minus and a digit (`set temp -5`), or one that was quoted in a batch. No argument
// of a process can hold a NUL; a word of a batch that begins with one gets a second.
const guard = "\x00"

// Protect returns a word as a flag parser must get it: with the guard if it would be taken
// for a flag and is none. quoted means that the user quoted it, so that it is an operand.
func Protect(word string, quoted bool) string {
	switch {
	case strings.HasPrefix(word, guard),
		quoted && strings.HasPrefix(word, "-"),
		len(word) > 1 && word[0] == '-' && word[1] >= '0' && word[1] <= '9':
		return guard + word
	}
	return word
}

// Unprotect returns the operand that the user wrote.
func Unprotect(word string) string { return strings.TrimPrefix(word, guard) }

// UnprotectFlags removes the guard from the values of flags, which may look like operands
// (--skew -2m).
func UnprotectFlags(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if v := f.Value.String(); strings.HasPrefix(v, guard) && err == nil {
			err = f.Value.Set(Unprotect(v))
		}
	})
	return err
}

// FlagError returns the message of a flag parser in terms of what the user wrote.
func FlagError(err error) string {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return strings.ReplaceAll(err.Error(), guard, "")
	}
	f := bad.GetFlag()
	why := bad.Unwrap().Error()
	if _, ok := errors.AsType[*strconv.NumError](bad.Unwrap()); ok {
		switch f.Value.Type() {
		case "bool":
			why = "want true or false"
		case "float64":
			why = "want a number of at least 0"
		default:
			why = "want a whole number of at least 0"
		}
	}
	return fmt.Sprintf("--%s %.32q: %s", f.Name, Unprotect(bad.GetValue()), why)
}

// A Source reads a file, or standard input if the name is "-".
type Source func(name string) ([]byte, error)

// Read reads a file, or standard input if the name is "-", to its end or until ctx ends. On a
// terminal it first says what it reads, because nothing else shows that sscli waits.
func (a *App) Read(ctx context.Context, name, what string) ([]byte, error) {
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

// Value takes the operand VALUE from the words after the key: the content of the file if
// there is one, else the first word. rest is the words after it.
func Value(words []string, file string, in Source) (value string, rest []string, err error) {
	var data []byte
	switch {
	case file != "":
		data, err = in(file)
		if fault.IsA[*fs.PathError](err) && file != "-" {
			err = &fault.UsageError{Err: fmt.Errorf("-f: %w", err)}
		}
		return string(data), words, err
	case len(words) == 0:
		return "", nil, fault.Usagef("no value: want VALUE, - for standard input, or -f FILE")
	case words[0] == "-":
		data, err = in("-")
		return string(data), words[1:], err
	}
	return Unprotect(words[0]), words[1:], nil
}

// NotePattern says of a key that does not exist and looks like a pattern that it is none.
func NotePattern(a *App, key string) {
	if strings.ContainsAny(key, "*?") {
		a.Inform(fmt.Sprintf("no key is named %s; patterns are for scan", format.Brief(key)))
	}
}

// UnprotectAll is Unprotect for each word.
func UnprotectAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Unprotect(w)
	}
	return out
}
