package batch

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/directive"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
)

// command reads the words of a line: a request of a verb, or run for anything else that a batch
// can run.
func (b *batch) command(args []string, room []client.Command) (verb.Request, func(context.Context) error, error) {
	name, rest := args[0], args[1:]
	v, ok := b.verbs[name]
	if !ok {
		name = strings.ToLower(app.Unprotect(name))
		v, ok = b.verbs[name]
	}
	if ok {
		req, err := b.request(v, rest, room)
		return req, nil, err
	}
	run := func(f func(context.Context, []string) error) (verb.Request, func(context.Context) error, error) {
		return verb.Request{}, func(ctx context.Context) error { return f(ctx, rest) }, nil
	}
	switch name {
	case "hlc", "version":
		return run(alone(app.NewCommand(b.app, name)))
	case "ping":
		return run(alone(ping.Over(b.app, b.session, b.budget)))
	}
	if directive.Is(name) {
		return verb.Request{}, func(ctx context.Context) error { return directive.Run(ctx, b.app, args, b.words) }, nil
	}
	for _, cmd := range app.NewRoot(b.app).Commands() {
		if cmd.Name() == name || cmd.HasAlias(name) {
			return verb.Request{}, nil, fault.Usagef("%s cannot run in a batch; these can: %s", name, b.names())
		}
	}
	unknown := fmt.Errorf("unknown command %.64q", app.Unprotect(args[0]))
	meant := app.Meaning(b.app, "", app.UnprotectAll(args))
	if meant.Why != "" {
		unknown = fmt.Errorf("%w: %s", unknown, meant.Why)
	} else {
		unknown = fmt.Errorf("%w; a batch can run %s", unknown, b.names())
	}
	return verb.Request{}, nil, &fault.UsageError{Err: unknown, Hint: strings.TrimPrefix(meant.Hint, "sscli ")}
}

// names lists the commands that can run in a batch.
func (b *batch) names() string {
	names := []string{"hlc", "ping", "version"}
	for _, w := range directive.Words() {
		name, _, _ := strings.Cut(w[0], " ")
		names = append(names, name)
	}
	for _, anew := range verb.Makers() {
		if v := anew(); !v.Hidden {
			names = append(names, v.Name())
		}
	}
	slices.Sort(names)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// alone returns a function that runs a cobra command without a root.
func alone(cmd *cobra.Command) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.CompletionOptions.DisableDefaultCmd = true
		cmd.SetHelpCommand(&cobra.Command{Hidden: true})
		cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
			return fault.Usagef("%s: %s", cmd.Name(), app.FlagError(err))
		})
		cmd.SetArgs(args)
		return cmd.ExecuteContext(ctx)
	}
}

// A lineVerb is a verb as lines use it.
type lineVerb struct {
	anew  func() verb.Verb // for a line with flags
	plain verb.Verb        // for all lines without
}

// flagsOf defines the flags of a verb, with the values that they have in a batch.
func (b *batch) flagsOf(v verb.Verb) *pflag.FlagSet {
	fs := pflag.NewFlagSet(v.Name(), pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if v.Flags != nil {
		v.Flags(fs)
	}
	// In a batch every result is a line.
	if lines := fs.Lookup("lines"); lines != nil && b.app.Output == "raw" {
		_ = lines.Value.Set("true") // a bool takes it
	}
	return fs
}

// request reads the flags and operands of a verb.
func (b *batch) request(known *lineVerb, args []string, room []client.Command) (verb.Request, error) {
	v := &known.plain
	if hasFlags(args) {
		fresh := known.anew()
		v = &fresh
		fs := b.flagsOf(*v)
		if v.Flags == nil {
			return verb.Request{}, fault.Usagef("%s: unknown flag: %.64s", v.Name(), args[slices.IndexFunc(args, isFlag)])
		}
		err := fs.Parse(args)
		if err == nil {
			err = app.UnprotectFlags(fs)
		}
		if err != nil {
			return verb.Request{}, fault.Usagef("%s: %s", v.Name(), app.FlagError(err))
		}
		args = fs.Args()
	}
	req, err := v.Parse(args, b.in, room)
	if err != nil {
		return verb.Request{}, err
	}
	return req, req.Check(b.app.Output)
}

// hasFlags reports whether there is anything for a flag parser.
func hasFlags(args []string) bool { return slices.ContainsFunc(args, isFlag) }

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// words runs the command of a line word.
func (b *batch) words(ctx context.Context, args []string) error {
	req, run, err := b.command(args, nil)
	return b.carryOut(ctx, req, run, err)
}
