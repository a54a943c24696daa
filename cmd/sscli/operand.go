package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// guard stands before an operand that a flag parser would take for a flag: one
// that begins with a minus and a digit (`set temp -5`), or one that was quoted in
// a batch. No argument of a process can hold a NUL, and a word of a batch that
// begins with one gets a second.
const guard = "\x00"

func protect(word string, quoted bool) string {
	switch {
	case strings.HasPrefix(word, guard),
		quoted && strings.HasPrefix(word, "-"),
		len(word) > 1 && word[0] == '-' && word[1] >= '0' && word[1] <= '9':
		return guard + word
	}
	return word
}

func unprotect(word string) string { return strings.TrimPrefix(word, guard) }

// unprotectFlags takes the guard off the values of flags, which may look like
// operands (--skew -2m).
func unprotectFlags(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if v := f.Value.String(); strings.HasPrefix(v, guard) && err == nil {
			err = f.Value.Set(unprotect(v))
		}
	})
	return err
}

// flagError is what a flag parser says, in terms of what the user wrote.
func flagError(err error) string {
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
	return fmt.Sprintf("--%s %.32q: %s", f.Name, unprotect(bad.GetValue()), why)
}

// A stdin reads what a lone `-` stands for.
type stdin func() ([]byte, error)

// all reads standard input to its end.
func (a *app) all() ([]byte, error) {
	data, err := io.ReadAll(a.stdin)
	if isA[*usageError](err) {
		return nil, err // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return data, nil
}

// value takes the operand VALUE from the words that follow the key: the file's
// content when there is a file, else the first word.
func value(words []string, file string, in stdin) (value []byte, rest []string, err error) {
	switch {
	case file == "-":
		value, err = in()
		return value, words, err
	case file != "":
		value, err = os.ReadFile(file)
		if err != nil {
			return nil, nil, &usageError{err: fmt.Errorf("-f: %w", err)}
		}
		return value, words, nil
	case len(words) == 0:
		return nil, nil, usage("no value: want VALUE, - for standard input, or -f FILE")
	case words[0] == "-":
		value, err = in()
		return value, words[1:], err
	}
	return []byte(unprotect(words[0])), words[1:], nil
}

func unprotectAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = unprotect(w)
	}
	return out
}
