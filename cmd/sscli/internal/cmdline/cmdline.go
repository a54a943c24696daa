// Package cmdline parses a command line and runs its command.
//
// [Run] runs a whole command line. [NewRoot] builds the tree of all commands, for help,
// completion and the manual pages.
//
//	err := cmdline.Run(ctx, a, os.Args[1:])
//	os.Exit(a.Report(err))
//
// Cobra parses the words. This package adds support for operands that begin with a minus
// (package usage), `sscli -` as short for `sscli batch -`, errors that suggest the command the
// user probably meant, and an error for -h HOST, which is redis-cli's flag for the host. If the first
// word names a command, only that command is built, because building all of them takes a
// fifth of the start-up time.
package cmdline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// Run runs a command line of sscli. args does not include the program's name.
func Run(ctx context.Context, a *app.App, args []string) error {
	root := newRoot(a)
	w := scanArgs(root.PersistentFlags(), args)
	addCommands(a, root, w.command())
	if err := checkHelp(root, w); err != nil {
		a.GuessOutput(w.args)
		return err
	}
	return execute(ctx, a, root, w)
}

// RunRoot runs a command line with root, another tree of commands. RunRoot calls [Prepare] for root, so
// the caller must not.
func RunRoot(ctx context.Context, a *app.App, root *cobra.Command, args []string) error {
	Prepare(root)
	return execute(ctx, a, root, scanArgs(root.PersistentFlags(), args))
}

func execute(ctx context.Context, a *app.App, root *cobra.Command, w words) error {
	if w.completes {
		complete.Register(a, root)
	}
	root.SetArgs(w.args)
	text := &textOutput{app: a}
	root.SetOut(text)
	cmd, err := root.ExecuteContextC(ctx)
	err = cmp.Or(err, text.err)
	if u, ok := errors.AsType[*fault.UsageError](err); ok {
		adviseFlag(cmd, w.args, u)
		if _, advised := fault.Advice(err); !advised {
			u.Hint = suggest.Run(strings.Fields(cmd.CommandPath() + " --help")...)
		}
	}
	if err != nil && a.Faults == nil {
		a.GuessOutput(w.args)
	}
	return err
}

// A textOutput prints help on standard output. Cobra ignores the errors of Write, so it keeps the first.
type textOutput struct {
	app *app.App
	err error
}

func (o *textOutput) Write(text []byte) (int, error) {
	n, err := o.app.Stdout.Write(text)
	o.err = cmp.Or(o.err, fault.Output(err))
	return n, err
}

// NewRoot builds the tree of all commands.
func NewRoot(a *app.App) *cobra.Command { return NewRootFor(a, nil) }

// NewRootFor builds the tree that a command line needs: with a single command if the first word of args
// names a command, and with all commands otherwise.
func NewRootFor(a *app.App, args []string) *cobra.Command {
	root := newRoot(a)
	addCommands(a, root, scanArgs(root.PersistentFlags(), args).command())
	return root
}

func newRoot(a *app.App) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "sscli",
		Short: "Work with the Azure IoT Operations state store",
		Long: `sscli reads, writes and watches the state store of the Azure IoT Operations MQTT
broker: keys and values of any bytes, with hybrid logical clock versions and
fencing tokens.`,
		Example: `  sscli --embedded set setpoint 21.5          # try it without a broker
  sscli serve                                 # a state store for development
  sscli -u mqtt://127.0.0.1:1883 get setpoint
  sscli watch setpoint                        # stream its changes
  sscli - < commands                          # run commands from standard input`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := usage.UnprotectFlags(cmd.Flags()); err != nil {
				return fault.Usagef("%w", err)
			}
			_, a.LogsResults = cmd.Annotations[app.LogsResults]
			a.Forms = strings.Fields(cmd.Annotations[app.Forms])
			if version || isOffline(cmd) {
				return a.ConfigureOffline(cmd.Flags())
			}
			return a.ConfigureConnection(cmd.Context(), cmd.Flags())
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return runAlone(cmd.Context(), a, "version")
			}
			if a.OnTerminal() {
				return runAlone(cmd.Context(), a, "shell")
			}
			return &fault.UsageError{Err: errors.New("no command"), Hint: suggest.Try("`sscli --help`, or `sscli -` to read commands from standard input")}
		},
	}
	// Cobra checks Args before the settings are resolved, so an unknown command is reported first.
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(root, args)
		}
		return nil
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); len(args) > 0 && (cmd == root || cmd.HasSubCommands()) {
			return unknownCommand(cmd, usage.Unprotect(args)) // probably the cause of the flag error
		}
		return flagUsage(cmd, err)
	})
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	config.Bind(root.PersistentFlags())
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.AddGroup(&cobra.Group{ID: app.GroupFirst, Title: "Commands:"}, &cobra.Group{ID: app.GroupFiles, Title: "Keys in files and editors:"},
		&cobra.Group{ID: app.GroupDebug, Title: "Diagnostics:"}, &cobra.Group{ID: app.GroupServe, Title: "Other servers, clusters:"},
		&cobra.Group{ID: app.GroupMore, Title: "More:"})
	root.CompletionOptions.DisableDefaultCmd = true // the command table has its own completion command
	return root
}

// addCommands adds the command with this name to the root, or all commands if no command has this name.
func addCommands(a *app.App, root *cobra.Command, name string) {
	if cmd := newCommand(a, name); cmd != nil {
		root.AddCommand(cmd)
	} else {
		for _, c := range a.Commands {
			root.AddCommand(c.New(a))
		}
		root.AddCommand(a.Topics()...)
	}
	help.Install(root, a.Stdout.File)
	addHelpCommand(a, root)
	Prepare(root)
}

// Prepare prepares a command and its subcommands to run. It strips the marks that package usage put
// on their operands. A command that only groups others returns a usage error if no subcommand
// follows.
func Prepare(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		Prepare(below)
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args)
			}
			return fault.Usagef("missing command: expected %s", format.List(available(cmd), "or"))
		}
		cmd.RunE = func(*cobra.Command, []string) error { return nil }
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return check(cmd, usage.Unprotect(args)) }
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, usage.Unprotect(args)) }
	}
}

// isOffline reports whether a command or one of its parents is marked as [app.Offline]. Completion
// counts as offline, because it connects by itself.
func isOffline(cmd *cobra.Command) bool {
	for c := cmd; c.HasParent(); c = c.Parent() {
		if _, ok := c.Annotations[app.Offline]; ok || isCompletion(c.Name()) {
			return true
		}
	}
	return false
}

// newCommand builds the command with this exact name, or returns nil if there is none. To find a
// command by an alias, or in another case, cobra needs the whole tree.
func newCommand(a *app.App, name string) *cobra.Command {
	for _, c := range a.Commands {
		if c.Name == name {
			return c.New(a)
		}
	}
	return nil
}

// NewCommand builds a command of the command table outside a tree of commands, for a caller such as a
// batch. The command must exist.
func NewCommand(a *app.App, name string) *cobra.Command {
	cmd := newCommand(a, name)
	Prepare(cmd)
	return cmd
}

// RunLine returns a function that runs cmd, which is not part of a tree of commands. operands holds the
// operands and the flags of a line.
func RunLine(cmd *cobra.Command, operands []repl.Word) func(context.Context) error {
	return func(ctx context.Context) error {
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.CompletionOptions.DisableDefaultCmd = true
		cmd.SetHelpCommand(&cobra.Command{Hidden: true})
		cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
			return usage.FlagError(cmd.Name()+": ", err)
		})
		var help error
		cmd.SetHelpFunc(func(asked *cobra.Command, _ []string) { help = NoHelp(asked.CommandPath()) })
		cmd.SetArgs(usage.Protect(operands))
		return cmp.Or(cmd.ExecuteContext(ctx), help)
	}
}

// NoHelp returns the usage error for a line of a batch that asks for help. It is an error because help
// is text between results. path is the path of the command without sscli.
func NoHelp(path string) error {
	return &fault.UsageError{Err: fmt.Errorf("%s: a batch shows no help", path), Hint: suggest.Run(strings.Fields("sscli " + path + " --help")...)}
}

// runAlone runs the command with this name, without flags or operands.
func runAlone(ctx context.Context, a *app.App, name string) error {
	cmd := newCommand(a, name)
	cmd.SetContext(ctx)
	return cmd.RunE(cmd, nil)
}
