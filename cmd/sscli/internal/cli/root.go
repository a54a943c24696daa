package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// Offline is the annotation of commands that do not connect.
const Offline = "offline"

// NewRoot builds the command line of the whole table. Everything that lists commands (the
// parser, help, completion, the manual) reads them from it.
func NewRoot(a *App) *cobra.Command { return NewRootFor(a, nil) }

// NewRootFor builds what one command line needs: one command if its first word is the name
// of one, else all. Building all takes a fifth of the time that sscli takes to start.
func NewRootFor(a *App, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "sscli",
		Short: "Command line for the state store of the Azure IoT Operations MQTT broker",
		Long: `sscli reads, writes and watches the state store of the Azure IoT Operations MQTT
broker: keys and values of any bytes, with hybrid logical clock versions and
fencing tokens.

	sscli --embedded set setpoint 21.5    try it without a broker
	sscli serve                           a state store for development
	sscli -u mqtt://127.0.0.1:1883 get setpoint
	sscli watch setpoint                  stream its changes
	sscli - < commands                    run commands from standard input`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := UnprotectFlags(cmd.Flags()); err != nil {
				return explain.Usagef("%w", err)
			}
			if a.Signals != nil {
				<-a.Signals.Heeded
			}
			if isOffline(cmd) {
				return a.configureRun(cmd.Flags())
			}
			return a.ConfigureConnection(cmd.Context(), cmd.Flags())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && args[0] == "-" {
				return explain.Usagef("%.64q after -: want sscli - alone, which reads commands from standard input", Unprotect(args[1]))
			}
			if len(args) == 1 && args[0] == "-" {
				return runAlone(cmd.Context(), a, "batch", "-")
			}
			if len(args) > 0 {
				return unknownCommand(cmd, Unprotect(args[0]))
			}
			if a.OnTerminal() {
				return runAlone(cmd.Context(), a, "shell")
			}
			return &explain.UsageError{Err: errors.New("no command"), Hint: "sscli --help, or sscli - to read commands from standard input"}
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return explain.Usagef("%s", FlagError(err))
	})
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	config.Bind(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: GroupStore, Title: "Keys:"}, &cobra.Group{ID: GroupDebug, Title: "Looking closer:"},
		&cobra.Group{ID: GroupMore, Title: "More:"})
	if cmd := NewCommand(a, firstWord(root.PersistentFlags(), args)); cmd != nil {
		root.AddCommand(cmd)
		root.CompletionOptions.DisableDefaultCmd = true
	} else {
		for _, c := range a.Commands {
			root.AddCommand(c.New(a))
		}
		root.AddCommand(a.Topics()...)
	}
	setHelp(root)
	root.SetCompletionCommandGroupID(GroupMore)
	return root
}

// isOffline reports whether a command, or one above it, does not connect. The commands
// that cobra adds do not.
func isOffline(cmd *cobra.Command) bool {
	for c := cmd; c.HasParent(); c = c.Parent() {
		switch c.Name() {
		case "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
		if _, ok := c.Annotations[Offline]; ok {
			return true
		}
	}
	return false
}

// A Command is a row of the command table. New builds it for one command line: the command
// holds the values of its flags.
type Command struct {
	Name string
	New  func(*App) *cobra.Command
}

// NewCommand builds the command with this name, or returns nil if there is none. Aliases
// and other spellings are cobra's affair.
func NewCommand(a *App, name string) *cobra.Command {
	for _, c := range a.Commands {
		if c.Name == name {
			return c.New(a)
		}
	}
	return nil
}

// runAlone runs a command of the table without flags of its own.
func runAlone(ctx context.Context, a *App, name string, args ...string) error {
	cmd := NewCommand(a, name)
	cmd.SetContext(ctx)
	return cmd.RunE(cmd, args)
}

// The groups of commands in help.
const (
	GroupStore = "store"
	GroupDebug = "debug"
	GroupMore  = "more"
)

// setHelp lets cobra's help command return errors as other commands do, and work whatever
// the settings are.
func setHelp(root *cobra.Command) {
	root.SetHelpCommandGroupID(GroupMore)
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "help" {
			continue
		}
		cmd.Use, cmd.Short, cmd.Long = "help [COMMAND|TOPIC]", "Explain a command or a topic", ""
		cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
		cmd.Run = nil
		cmd.RunE = func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(root, Unprotect(args[0]))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		}
	}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := "sscli --help"
	if near := suggest.Near(name, names); len(near) > 0 {
		hint = "sscli " + near[0] + " --help"
	}
	return &explain.UsageError{Err: fmt.Errorf("unknown command %.64q", name), Hint: hint}
}

// NoArgs refuses operands.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return explain.Usagef("%.64q: %s takes no operand", Unprotect(args[0]), cmd.CommandPath())
	}
	return nil
}

// ExactArgs requires the operands with these names: one word for each.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return explain.Usagef("missing %s", strings.Join(names[len(args):], " and "))
		}
		if len(args) > len(names) {
			return explain.Usagef("%.64q: %s takes only %s", Unprotect(args[len(names)]), cmd.CommandPath(), strings.Join(names, " and "))
		}
		return nil
	}
}

// firstWord returns the word that may be the name of a command: the first that is neither
// a flag of fs nor the value of one. It is empty if there is none, or if a flag is unknown.
// It only looks: the parser reads the flags later and reports what is wrong with them.
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
