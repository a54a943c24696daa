package app

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// Offline is the annotation of commands that do not connect.
const Offline = "offline"

// NewRoot builds the command line of the whole table. Everything that lists commands (the
// parser, help, completion, the manual) reads them from it.
func NewRoot(a *App) *cobra.Command { return NewRootFor(a, nil) }

// NewRootFor builds what one command line needs: one command if its first word is the name
// of one, else all. Building all takes a fifth of the time that sscli takes to start. The words
// are as Protect returns them; executing the root parses them.
func NewRootFor(a *App, args []string) *cobra.Command {
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
			if err := UnprotectFlags(cmd.Flags()); err != nil {
				return fault.Usagef("%w", err)
			}
			a.Signals.Await()
			if version || isOffline(cmd) {
				return a.configureRun(cmd.Flags())
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
			return &fault.UsageError{Err: errors.New("no command"), Hint: "sscli --help, or sscli - to read commands from standard input"}
		},
	}
	// Before the settings, which do not matter then.
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(a, root, args)
		}
		return nil
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); len(words) > 0 && (cmd == root || cmd.HasSubCommands()) {
			return unknownCommand(a, cmd, words) // its flags do not matter
		}
		return flagUsage(cmd, err)
	})
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	config.Bind(root.PersistentFlags())
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.AddGroup(&cobra.Group{ID: GroupStore, Title: "Keys and locks:"}, &cobra.Group{ID: GroupDebug, Title: "Looking closer:"},
		&cobra.Group{ID: GroupServe, Title: "Servers:"}, &cobra.Group{ID: GroupMore, Title: "More:"})
	root.CompletionOptions.DisableDefaultCmd = true // the table has one
	args = batchForDash(root.PersistentFlags(), args)
	root.SetArgs(args)
	if cmd := NewCommand(a, FirstWord(root, args)); cmd != nil {
		root.AddCommand(cmd)
	} else {
		for _, c := range a.Commands {
			root.AddCommand(c.New(a))
		}
		root.AddCommand(a.Topics()...)
	}
	setHelp(a, root)
	return root
}

// isOffline reports whether a command, or one above it, does not connect. Completion does not
// need to.
func isOffline(cmd *cobra.Command) bool {
	for c := cmd; c.HasParent(); c = c.Parent() {
		switch c.Name() {
		case cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
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

// The groups of commands in help. A group has the order of the command table.
const (
	GroupStore = "store" // keys and locks
	GroupDebug = "debug" // what looks closer
	GroupServe = "serve" // servers
	GroupMore  = "more"
)

// NoArgs refuses operands.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.Usagef("%.64q: %s takes no operand", Unprotect(args[0]), cmd.CommandPath())
	}
	return nil
}

// ExactArgs requires the operands with these names: one word for each.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fault.Usagef("missing %s", strings.Join(names[len(args):], " and "))
		}
		if len(args) > len(names) {
			return fault.Usagef("%.64q: %s takes only %s", Unprotect(args[len(names)]), cmd.CommandPath(), strings.Join(names, " and "))
		}
		return nil
	}
}

// batchForDash puts batch before a lone - that is the first word: `sscli - --keep-going` is
// `sscli batch - --keep-going`.
func batchForDash(fs *pflag.FlagSet, args []string) []string {
	begin := 0
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		begin = 1 // of the line to complete
	}
	i := begin + firstWord(fs, args[begin:])
	if word(args, i) != "-" || slices.Contains(args[:i], "--") {
		return args
	}
	return slices.Insert(slices.Clone(args), i, "batch")
}

// FirstWord returns the word that may be the name of a command, or "". args are as Protect
// returns them.
func FirstWord(root *cobra.Command, args []string) string {
	return word(args, firstWord(root.PersistentFlags(), args))
}

// firstWord returns the index of the word that may be the name of a command: the first that is
// neither a flag of fs nor the value of one. It is len(args) if there is none, or if a flag is
// unknown. It only looks: the parser reads the flags later and reports what is wrong with them.
func firstWord(fs *pflag.FlagSet, args []string) int {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return min(i+1, len(args))
		}
		if len(arg) < 2 || arg[0] != '-' {
			return i
		}
		known, value := flagWord(fs, arg)
		if !known {
			break
		}
		if value {
			i++
		}
	}
	return len(args)
}

// word returns the i-th word, or "" if there are not that many.
func word(args []string, i int) string {
	if i < len(args) {
		return args[i]
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
