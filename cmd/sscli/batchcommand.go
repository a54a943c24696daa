package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// command reads the words of a line: a request, or what else a batch knows.
func (b *batch) command(args []string) (request, func(context.Context) error, error) {
	name, rest := args[0], args[1:]
	if anew, ok := b.verbs[name]; ok {
		return b.request(anew(), rest)
	}
	name = strings.ToLower(unprotect(name))
	if anew, ok := b.verbs[name]; ok {
		return b.request(anew(), rest)
	}
	run := func(f func(context.Context, []string) error) (request, func(context.Context) error, error) {
		return request{}, func(ctx context.Context) error { return f(ctx, rest) }, nil
	}
	switch name {
	case "hlc", "version":
		return run(alone(b.app.newCommand(name)))
	case "ping":
		return run(alone(newPingOver(b.app, b.session, b.budget)))
	}
	if isLineWord(name) {
		return request{}, func(ctx context.Context) error { return lineWord(ctx, b.app, args, b.words) }, nil
	}
	for _, cmd := range newRoot(b.app).Commands() {
		if cmd.Name() == name || cmd.HasAlias(name) {
			return request{}, nil, usage("%s cannot run in a batch, which knows %s", name, b.names())
		}
	}
	return request{}, nil, usage("unknown command %.64q: a batch knows %s", unprotect(args[0]), b.names())
}

// names lists what a batch knows.
func (b *batch) names() string {
	names := []string{"hlc", "ping", "version"}
	for _, w := range lineWords() {
		name, _, _ := strings.Cut(w[0], " ")
		names = append(names, name)
	}
	for _, anew := range makers() {
		if v := anew(); !v.hidden {
			names = append(names, v.name())
		}
	}
	slices.Sort(names)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// alone runs a command of the command line that needs nothing of its root.
func alone(cmd *cobra.Command) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.CompletionOptions.DisableDefaultCmd = true
		cmd.SetHelpCommand(&cobra.Command{Hidden: true})
		cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
			return usage("%s: %s", cmd.Name(), flagError(err))
		})
		cmd.SetArgs(args)
		return cmd.ExecuteContext(ctx)
	}
}

// request reads the words of a verb.
func (b *batch) request(v verb, args []string) (request, func(context.Context) error, error) {
	if v.flags != nil && (hasFlags(args) || v.name() == "get") {
		fs := pflag.NewFlagSet(v.name(), pflag.ContinueOnError)
		fs.SetOutput(io.Discard)
		v.flags(fs)
		// In a batch a result is a line, also that of get.
		if lines := fs.Lookup("lines"); lines != nil && b.app.output == "raw" {
			if err := lines.Value.Set("true"); err != nil {
				return request{}, nil, err
			}
		}
		err := fs.Parse(args)
		if err == nil {
			err = unprotectFlags(fs)
		}
		if err != nil {
			return request{}, nil, usage("%s: %s", v.name(), flagError(err))
		}
		args = fs.Args()
	} else if v.flags == nil && hasFlags(args) {
		return request{}, nil, usage("%s: unknown flag: %.64s", v.name(), args[slices.IndexFunc(args, isFlag)])
	}
	req, err := v.parse(args, b.in)
	if err != nil {
		return request{}, nil, err
	}
	return req, nil, check(req)
}

// hasFlags tells whether a flag parser has anything to do.
func hasFlags(args []string) bool { return slices.ContainsFunc(args, isFlag) }

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// words runs the words behind one of lineWords.
func (b *batch) words(ctx context.Context, args []string) error {
	req, run, err := b.command(args)
	return b.carryOut(ctx, req, run, err)
}
