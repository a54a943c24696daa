package usage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/repl"
)

// mark is put before an operand that a flag parser would take for a flag. The mark is a NUL, which an
// argument of a process cannot contain. A word in a batch can: if the word begins with a NUL, Protect
// puts a second one before it.
const mark = "\x00"

// Protect prepares words for a flag parser: it puts a mark before each operand that looks like a
// flag. A word that begins with a minus is an operand if it was quoted, or if a digit follows the
// minus.
func Protect(words []repl.Word) []string {
	args := make([]string, len(words))
	for i, w := range words {
		args[i] = w.Text
		if strings.HasPrefix(w.Text, mark) || strings.HasPrefix(w.Text, "-") && w != (repl.Word{Text: "-"}) && !IsFlag(w) {
			args[i] = mark + w.Text
		}
	}
	return args
}

// IsFlag reports whether a word is a flag, or the -- that ends flags.
func IsFlag(w repl.Word) bool {
	return len(w.Text) > 1 && w.Text[0] == '-' && !w.Quoted && (w.Text[1] < '0' || w.Text[1] > '9')
}

// Words undoes Protect. It sets Quoted for words with a mark, so that a quoted - does not mean
// standard input.
func Words(args []string) []repl.Word {
	words := make([]repl.Word, len(args))
	for i, arg := range args {
		words[i].Text, words[i].Quoted = strings.CutPrefix(arg, mark)
	}
	return words
}

// Unprotect returns the words without the marks of Protect.
func Unprotect(args []string) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = strings.TrimPrefix(arg, mark)
	}
	return words
}

// UnprotectFlags removes the marks from the values of flags. A value has a mark if it looks like a
// flag, as in --skew -2m. The error is about a value that cannot be set.
func UnprotectFlags(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = errors.Join(err, list.Replace(Unprotect(list.GetSlice())))
		} else if value, marked := strings.CutPrefix(f.Value.String(), mark); marked {
			err = errors.Join(err, f.Value.Set(value))
		}
	})
	return err
}

// FlagError returns the usage error for a flag parser's error, without marks and without names from Go's
// packages. where precedes its text; it may be empty.
func FlagError(where string, err error) *fault.UsageError {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return &fault.UsageError{Err: errors.New(where + strings.ReplaceAll(err.Error(), mark, ""))}
	}
	f, text := bad.GetFlag(), strings.TrimPrefix(bad.GetValue(), mark)
	if d, ok := f.Value.(*Duration); ok {
		_, err := ParseDuration("--"+f.Name, text, d.least)
		return err.(*fault.UsageError)
	}
	why := bad.Unwrap().Error()
	switch f.Value.Type() {
	case "int", "int64", "uint16":
		why = "expected a whole number of at least 0"
	case "float64":
		why = "must be a number of at least 0"
	}
	return &fault.UsageError{Err: fmt.Errorf("%s--%s %.32q: %s", where, f.Name, text, why)}
}
