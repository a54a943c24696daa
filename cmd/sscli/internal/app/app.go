// Package app provides what all commands share, as one [App]: the standard streams, the
// settings, printers for results and errors, questions to the user, and the connection.
//
// A command is a row of the command table, a [Command], whose New builds a cobra command
// around the App:
//
//	func New(a *app.App) *cobra.Command {
//		return &cobra.Command{
//			Use:     "count KEY",
//			Short:   "Count the bytes of a value",
//			GroupID: app.GroupStore,
//			RunE: func(cmd *cobra.Command, args []string) error {
//				return a.WithSession(cmd.Context(), func(s *client.Session, o client.Options) error {
//					r, err := s.Get(cmd.Context(), args[0])
//					if err != nil {
//						return err
//					}
//					return a.Emit(format.Note{Level: format.Aside, Message: fmt.Sprint(len(r.Value))})
//				})
//			},
//		}
//	}
//
// When RunE is called the settings are resolved and the printers exist. It returns an
// error in place of printing it: package fault turns every error into a message, a hint
// and an exit code. Before it sends a write it calls [App.Confirm].
//
// Package cmdline builds the root command from the command table. The shell builds a new root
// for each line that it runs, with an App whose Shell is set.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/format"
)

// An App is the environment that a command runs in. One goroutine uses it. Others may call Warn,
// Note, Inform and Say, which print whole lines.
type App struct {
	Commands []Command               // the command table
	Topics   func() []*cobra.Command // makes the help topics: pages of help that are not about a command
	Build    format.Build            // set by the linker; empty in a plain build

	Stdin          io.Reader
	Stdout, Stderr *os.File
	Env            func(string) (string, bool) // as os.LookupEnv
	Signals        *signals.Signals            // nil: no signals are caught

	// Configure fills in what follows.

	Settings config.Settings
	Output   string          // the form of results: human (also for wide), raw, json or template=…
	Out      *format.Printer // prints results
	Faults   *format.Printer // prints errors and warnings; nil before Configure
	saying   sync.Mutex      // held while Faults prints

	Flags *pflag.FlagSet // the flags that hints may name; nil = any

	Cluster *via.Way // the way of --via while WithBroker runs; nil = none, or it is a shell's

	Streaming bool   // the command reads standard input itself, so the user cannot answer a question there
	Line      int    // number of the line of a batch that errors are about; 0 = none
	Shell     Shell  // what the lines of a shell share; nil outside a shell
	Refused   string // the first connection flag on a shell line, where none is allowed; empty = none

	confirmed  bool   // ConfirmAll was answered with yes
	declined   bool   // ConfirmAll was answered with no
	password   []byte // the password typed for --askpass, for all connections; nil = not asked yet
	overridden bool   // the warning that variables override the chosen context was printed
}

// Configure resolves the settings from flags, environment and contexts, and makes the
// printers. They exist even if it returns an error, which is one of package config.
func (a *App) Configure(fs *pflag.FlagSet) error {
	a.Flags = fs
	if a.Shell != nil {
		settings, flag, err := a.Shell.Settings().Line(fs)
		a.Refused = flag
		return a.configured(settings, err)
	}
	return a.configured(config.Resolve(fs, a.Env))
}

// ConfigureConnection is Configure for a command that connects. With --askpass it also
// asks for the password, once.
func (a *App) ConfigureConnection(ctx context.Context, fs *pflag.FlagSet) error {
	if err := a.Configure(fs); err != nil {
		return err
	}
	s := a.Settings
	if a.Shell != nil || !s.AskPass || a.password != nil || s.Embedded || s.Broker() != nil {
		return nil
	}
	a.Signals.Arm()
	password, err := terminal.AskSecret(ctx, a.Stderr, fmt.Sprintf("Password of %s at %s: ", format.Escape(s.Username), s.Address))
	if err != nil {
		return fmt.Errorf("%s: %w", s.Sources["askpass"], err)
	}
	a.password = append([]byte{}, password...) // an empty one is not nil: it is asked for once
	return nil
}

// ConfigureOffline is Configure for a command that does not connect. Settings of the
// connection and the file of contexts are not read, so an error there does not matter.
func (a *App) ConfigureOffline(fs *pflag.FlagSet) error {
	a.Flags = fs
	if a.Shell != nil {
		return a.Configure(fs)
	}
	return a.configured(config.ResolveRun(fs, a.Env))
}

func (a *App) configured(settings config.Settings, err error) error {
	a.Settings = settings
	if printErr := a.SetOutput(settings.Output); printErr != nil {
		source := settings.Sources["output"]
		return errors.Join(err, &config.Error{Source: source, Why: strings.TrimPrefix(printErr.Error(), "output ")})
	}
	if err == nil && settings.Override.Context != "" && !a.overridden {
		a.overridden = true
		a.warnOverride(settings.Override)
	}
	return err
}

// warnOverride warns that variables override the chosen context: on a terminal once a day for the
// context and the values of the variables, and with --verbose each time. A script has set the
// variables itself.
func (a *App) warnOverride(o config.Override) {
	verb := "overrides"
	if len(o.Variables) > 1 {
		verb = "override"
	}
	warning := fmt.Sprintf("%s %s the chosen context %s", strings.Join(o.Variables, ", "), verb, o.Context)
	about := warning
	for _, name := range o.Variables {
		value, _ := a.Env(name)
		about += "\n" + value
	}
	terminal := a.stream(a.Stdout).IsTerminal() && a.stream(a.Stderr).IsTerminal()
	if a.Settings.Verbose > 0 || terminal && !a.Settings.Quiet && !config.AlreadyWarned(a.Env, about, time.Now()) {
		a.Warn(warning, "")
	}
}

// GuessOutput makes the printers for a command line that could not be parsed. It uses the flags
// that it can parse and ignores the others.
func (a *App) GuessOutput(args []string) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	config.Bind(fs)
	// What is wrong with the rest was reported already.
	_ = fs.Parse(args)
	_ = a.ConfigureOffline(fs)
	a.Flags = nil // no command was found
}

// Offline is the annotation of commands that do not connect.
const Offline = "offline"

// A Command is a row of the command table. New builds it for one command line: the command
// holds the values of its flags.
type Command struct {
	Name string
	New  func(*App) *cobra.Command
}

// The groups of commands in help. A group has the order of the command table.
const (
	GroupStore = "store" // keys and locks
	GroupDebug = "debug" // diagnostics
	GroupServe = "serve" // servers
	GroupMore  = "more"
)

// WithCommands returns a command with the commands below it.
func WithCommands(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	return cmd
}

// OnTerminal reports whether standard input and output are a terminal that is free for a
// shell.
func (a *App) OnTerminal() bool {
	in, ok := a.Stdin.(*os.File)
	return ok && a.Shell == nil && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(a.Stdout.Fd()))
}
