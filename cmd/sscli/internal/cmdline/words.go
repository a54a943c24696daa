package cmdline

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/repl"
)

// words holds the words of a command line, and the facts about them that sscli needs before cobra
// parses them.
type words struct {
	args      []string // the words as returned by usage.Protect
	first     int      // index of the word that may name a command; len(args) if there is none
	completes bool     // the user's shell asks for completions
	operands  []string // the words before a -- that are neither flags nor the values of known flags
	help      bool     // -h or --help is among the words
	host      string   // the word after -h; empty = no -h, or a flag or nothing follows
}

// command returns the word that may name a command, or "".
func (w words) command() string {
	if w.completes || w.first == len(w.args) {
		return ""
	}
	return w.args[w.first]
}

// isCompletion reports whether a word is the hidden command with which the user's shell asks for
// completions.
func isCompletion(word string) bool {
	return word == cobra.ShellCompRequestCmd || word == cobra.ShellCompNoDescRequestCmd
}

// scanArgs protects the program's arguments (usage.Protect) and scans them.
func scanArgs(flags *pflag.FlagSet, args []string) words {
	plain := make([]repl.Word, len(args))
	for i, arg := range args {
		plain[i].Text = arg
	}
	return readWords(flags, usage.Protect(plain))
}

// readWords scans protected arguments. The first word that is neither a flag nor a flag's value may
// name a command, but not after an unknown flag. If that word is -, readWords inserts batch before it:
// `sscli - --keep-going` is `sscli batch - --keep-going`.
func readWords(flags *pflag.FlagSet, args []string) words {
	w := words{args: args, first: -1}
	i := 0
	if w.completes = len(args) > 0 && isCompletion(args[0]); w.completes {
		i = 1
	}
	for ; i < len(w.args); i++ {
		arg := w.args[i]
		if arg == "--" {
			if w.first < 0 {
				w.first = i + 1
			}
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			if w.first < 0 {
				w.first = i
				if arg == "-" {
					w.args = slices.Insert(w.args, i, "batch")
				}
			}
			w.operands = append(w.operands, w.args[i])
			continue
		}
		if arg == "-h" || arg == "--help" {
			w.help = true
		}
		if arg == "-h" && i+1 < len(w.args) && !strings.HasPrefix(w.args[i+1], "-") && w.host == "" {
			w.host = w.args[i+1]
		}
		known, value := lookUp(flags, arg)
		if !known && w.first < 0 {
			w.first = len(w.args)
		}
		if value {
			i++
		}
	}
	if w.first < 0 {
		w.first = len(w.args)
	}
	return w
}

// lookUp reports whether every flag in a word is known, and whether the next word is the value of
// the word's last flag.
func lookUp(flags *pflag.FlagSet, word string) (known, value bool) {
	if name, long := strings.CutPrefix(word, "--"); long {
		name, _, given := strings.Cut(name, "=")
		f := flags.Lookup(name)
		return f != nil, f != nil && f.NoOptDefVal == "" && !given
	}
	for i := 1; i < len(word); i++ {
		f := flags.ShorthandLookup(word[i : i+1])
		if f == nil {
			return false, false
		}
		if f.NoOptDefVal == "" {
			return true, i == len(word)-1 // otherwise the rest of the word is the value
		}
	}
	return true, false
}
