package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// execute runs one command line, under the name that the program was called by.
func (a *app) execute(ctx context.Context, name string, args []string) error {
	var root *cobra.Command
	if strings.TrimSuffix(filepath.Base(name), ".exe") == statestoreCLI {
		root = newStatestoreCLI(a)
	} else {
		root = newRootWith(a, firstWord(args))
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
// connection flag nor its value. It is empty if there is none.
func firstWord(args []string) string {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[0]
	}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SetInterspersed(false)
	config.Bind(fs)
	// What is wrong with it is told when it is parsed for good.
	if fs.Parse(args) != nil {
		return ""
	}
	return fs.Arg(0)
}
