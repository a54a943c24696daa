package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// execute runs one command line, under the name that the program was called by.
func (a *app) execute(ctx context.Context, name string, args []string) error {
	var root *cobra.Command
	if strings.TrimSuffix(filepath.Base(name), ".exe") == statestoreCLI {
		root = newStatestoreCLI(a)
	} else {
		root = newRootFor(a, args)
	}
	protected := make([]string, len(args))
	for i, arg := range args {
		protected[i] = protect(arg, false)
	}
	if isCompletion(args) {
		a.setCompletions(root)
	}
	root.SetArgs(protected)
	cmd, err := root.ExecuteContextC(ctx)
	if u, ok := errors.AsType[*usageError](err); ok && u.hint == "" {
		u.hint = strings.TrimSpace(cmd.CommandPath()) + " --help"
	}
	if err != nil && a.faults == nil {
		a.guessForm(protected)
	}
	return err
}

// firstWord returns what may be the name of a command: the first word that is neither a
// flag of fs nor its value. It is empty if there is none, or if a flag is unknown. It only
// looks: the parser reads the flags later, and says what is wrong with them.
func firstWord(fs *pflag.FlagSet, args []string) string {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			i++
		}
		if arg == "--" || len(arg) < 2 || arg[0] != '-' {
			if i < len(args) {
				return args[i]
			}
			break
		}
		known, value := flagWord(fs, arg)
		if !known {
			break
		}
		if value {
			i++
		}
	}
	return ""
}

// flagWord reports whether every flag in a word is known, and whether the next word is
// the value of the last.
func flagWord(fs *pflag.FlagSet, word string) (known, value bool) {
	if name, long := strings.CutPrefix(word, "--"); long {
		name, _, given := strings.Cut(name, "=")
		f := fs.Lookup(name)
		return f != nil, f != nil && f.NoOptDefVal == "" && !given
	}
	for i := 1; i < len(word); i++ {
		f := fs.ShorthandLookup(word[i : i+1])
		if f == nil {
			return false, false
		}
		if f.NoOptDefVal == "" {
			return true, i == len(word)-1 // else the rest of the word is the value
		}
	}
	return true, false
}
