// Package operand protects operands that begin with a minus from flag parsers.
//
// A word such as the -5 of `set temp -5` is an operand, and so is a word that was quoted on
// the line of a shell or of a batch. [Protect] marks such words before a flag parser gets
// them; [Unprotect] and [UnprotectFlags] remove the marks from what the parser found. Package
// cmdline does both for commands, and batch for its lines: a command sees the words that the
// user wrote.
package operand

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/repl"
)

// mark begins an operand that a flag parser would take for a flag. No argument of a process
// holds a NUL. A word of a batch may begin with one, and then gets a second.
const mark = "\x00"

// Protect returns words as a flag parser must get them: with a mark before each operand that
// looks like a flag. A word looks like a flag if it begins with a minus; it is an operand
// nevertheless if it was quoted, or if a digit comes next.
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

// Words returns the words that Protect was called with. A word with a mark is Quoted: a lone minus
// that was quoted does not mean standard input.
func Words(args []string) []repl.Word {
	words := make([]repl.Word, len(args))
	for i, arg := range args {
		words[i].Text, words[i].Quoted = strings.CutPrefix(arg, mark)
	}
	return words
}

// Unprotect returns the words that the user wrote.
func Unprotect(args []string) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = strings.TrimPrefix(arg, mark)
	}
	return words
}

// UnprotectFlags removes the marks from the values of flags, which may look like flags
// themselves (--skew -2m). It returns the error of the flag parser.
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

// FlagError returns the message of a flag parser in terms of what the user wrote.
func FlagError(err error) string {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return strings.ReplaceAll(err.Error(), mark, "")
	}
	f := bad.GetFlag()
	why := bad.Unwrap().Error()
	if _, ok := errors.AsType[*strconv.NumError](bad.Unwrap()); ok {
		switch f.Value.Type() {
		case "bool":
			why = "must be true or false"
		case "float64":
			why = "must be a number of at least 0"
		default:
			why = "expected a whole number of at least 0"
		}
	}
	return fmt.Sprintf("--%s %.32q: %s", f.Name, strings.TrimPrefix(bad.GetValue(), mark), why)
}
