package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// offline marks the commands that do not connect.
const offline = "offline"

// newRoot builds the command table; everything that lists commands (the
// parser, help, completion) reads it from there.
func newRoot(a *app) *cobra.Command { return newRootFor(a, nil) }

// newRootFor builds as much of the command table as a command line needs: one command if
// its first word is the name of one, or else all. To build all of them takes a fifth of
// the time that sscli takes to start.
func newRootFor(a *app, args []string) *cobra.Command {
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
			if err := unprotectFlags(cmd.Flags()); err != nil {
				return usage("%w", err)
			}
			if a.signals != nil {
				<-a.signals.heeded
			}
			if isOffline(cmd) {
				return a.configureRun(cmd.Flags())
			}
			return a.configureConnection(cmd.Context(), cmd.Flags())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && args[0] == "-" {
				return usage("%.64q after -: want sscli - alone, which reads commands from standard input", unprotect(args[1]))
			}
			if len(args) == 1 && args[0] == "-" {
				return a.runAlone(cmd.Context(), "batch", "-")
			}
			if len(args) > 0 {
				return unknownCommand(cmd, unprotect(args[0]))
			}
			if a.onTerminal() {
				return a.runAlone(cmd.Context(), "shell")
			}
			return &usageError{err: errors.New("no command"), hint: "sscli --help, or sscli - to read commands from standard input"}
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usage("%s", flagError(err))
	})
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	config.Bind(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: groupStore, Title: "Keys:"}, &cobra.Group{ID: groupDebug, Title: "Looking closer:"},
		&cobra.Group{ID: groupMore, Title: "More:"})
	if cmd := a.newCommand(firstWord(root.PersistentFlags(), args)); cmd != nil {
		root.AddCommand(cmd)
		root.CompletionOptions.DisableDefaultCmd = true
	} else {
		for _, c := range a.commands {
			root.AddCommand(c.make(a))
		}
		root.AddCommand(a.topics()...)
	}
	setHelp(root)
	root.SetCompletionCommandGroupID(groupMore)
	return root
}

// isOffline tells whether the command or one that it belongs to does not connect;
// cobra's own do not.
func isOffline(cmd *cobra.Command) bool {
	for c := cmd; c.HasParent(); c = c.Parent() {
		switch c.Name() {
		case "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
		if _, ok := c.Annotations[offline]; ok {
			return true
		}
	}
	return false
}

// A command is a row of the command table. make builds it anew for each command line,
// because its flags are its own.
type command struct {
	name string
	make func(*app) *cobra.Command
}

// newCommand builds the command of that very name, or returns nil if there is none.
func (a *app) newCommand(name string) *cobra.Command {
	for _, c := range a.commands {
		if c.name == name {
			return c.make(a)
		}
	}
	return nil
}

// runAlone runs a command of the table without flags of its own.
func (a *app) runAlone(ctx context.Context, name string, args ...string) error {
	cmd := a.newCommand(name)
	cmd.SetContext(ctx)
	return cmd.RunE(cmd, args)
}

const (
	groupStore = "store"
	groupDebug = "debug"
	groupMore  = "more"
)

// setHelp lets cobra's help command fail as others do, and work whatever the
// settings are.
func setHelp(root *cobra.Command) {
	root.SetHelpCommandGroupID(groupMore)
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "help" {
			continue
		}
		cmd.Use, cmd.Short, cmd.Long = "help [COMMAND|TOPIC]", "Tell about a command or a topic", ""
		cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
		cmd.Run = nil
		cmd.RunE = func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(root, unprotect(args[0]))
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
	return &usageError{err: fmt.Errorf("unknown command %.64q", name), hint: hint}
}

// noArgs refuses operands.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%.64q: %s takes no operand", unprotect(args[0]), cmd.CommandPath())
	}
	return nil
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
