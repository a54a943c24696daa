// Package app provides the [App], the environment that all commands share: the standard
// streams, the settings, printers for results and errors, questions to the user, and the
// connection.
//
// A command is a row of the command table, a [Command], whose New builds a cobra command
// around the App:
//
//	func New(a *app.App) *cobra.Command {
//		return &cobra.Command{
//			Use:     "count KEY",
//			Short:   "Count the bytes of a value",
//			GroupID: app.GroupFirst,
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
// When RunE is called, the settings are resolved and the printers exist. RunE returns errors
// and does not print them: package fault turns every error into a message, a hint and an
// exit code. Before RunE sends a write, it calls [App.Confirm].
//
// Package cmdline builds the root command from the command table. The shell builds a new root
// for each line that it runs, with an App whose Shell is set.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/format"
)

// ProbeKey is the key that sscli reads to find out whether the store answers. It need not exist.
const ProbeKey = "sscli/ping"

// The keys that doctor and bench write begin with these texts; random characters and a name follow.
const (
	DoctorKeys = "sscli/doctor/"
	BenchKeys  = "sscli/bench/"
)

// An App is the environment that a command runs in. Only one goroutine may use an App, but any
// goroutine may call Warn, Detail, Inform, Notify and Say, which print whole lines.
type App struct {
	Commands []Command               // the command table
	Topics   func() []*cobra.Command // returns the help topics: pages that do not describe a command
	Build    format.Build            // set by the linker; empty = a plain build

	Stdin          io.Reader
	Stdout, Stderr *terminal.Output
	Env            func(string) (string, bool) // like os.LookupEnv
	Signals        *signals.Signals            // nil = no signals are caught

	// Configure sets Settings, Output, Out, Faults, Flags and Refused.

	Settings config.Settings
	Output   string          // the form of results: human (also for wide), raw, json or template=…
	Form     string          // the form that the command prints itself, one of Forms; Output is then raw
	Out      *format.Printer // prints results
	Faults   *format.Printer // prints errors and warnings; nil = not configured yet
	saying   sync.Mutex      // held while Faults prints
	mistakes *mistakes       // see HoldMistakes; nil = not held

	Forms []string // further forms of output, which the command prints itself

	// LogsResults means that results are only a log, as those of a server: the command goes on when
	// nobody reads them, and messages on standard error never block it; see NeverWait.
	LogsResults bool
	log         *logWriter // takes messages on standard error; nil = they are written directly
	inputTaken  bool       // see TakeInput

	Flags *pflag.FlagSet // the flags that hints may name; nil = any

	Cluster *via.Way // the connection of --via while WithBroker runs; nil = no --via, or the shell owns it

	Streaming bool   // the command reads standard input itself, so the user cannot answer a question there
	Line      int    // the line of a batch that errors are about, from 1; 0 = none
	Shell     Shell  // the state that the lines of a shell share; nil outside a shell
	Refused   string // the first connection flag on a shell line, where such flags are not allowed; empty = none

	Hinted          func(suggest.Hint) // called with each hint that the user gets; nil outside tests
	CompletionLimit time.Duration      // how long completion waits for the store; 0 = 300 ms

	confirmed  bool   // ConfirmAll returned nil in a protected context: do not ask again
	declined   bool   // the user answered no to ConfirmAll
	password   []byte // the password that the user typed for --askpass, used for all connections; nil = not asked yet
	overridden bool   // warnOverride was called
}

// Configure resolves the settings from flags, environment and contexts, and makes the printers. The
// printers exist even if Configure returns an error, unless the form of output is invalid. The error is
// from package config.
func (a *App) Configure(fs *pflag.FlagSet) error {
	a.Flags = fs
	if a.Shell != nil {
		settings, flag, err := a.Shell.Settings().Line(fs)
		a.Refused = flag
		return a.configured(settings, err)
	}
	return a.configured(config.Resolve(fs, a.Env))
}

// ConfigureConnection is like Configure, for a command that connects. With --askpass it also
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
	a.password = append([]byte{}, password...) // not nil even if empty, so that we ask only once
	return nil
}

// ConfigureOffline is like Configure, for a command that does not connect. Outside a shell, it does
// not read the connection settings or the context file, so it does not report mistakes there.
func (a *App) ConfigureOffline(fs *pflag.FlagSet) error {
	a.Flags = fs
	if a.Shell != nil {
		return a.Configure(fs)
	}
	return a.configured(config.ResolveRun(fs, a.Env))
}

func (a *App) configured(settings config.Settings, err error) error {
	a.Settings = settings
	form := settings.Output
	if a.Form = ""; slices.Contains(a.Forms, form) {
		a.Form, form = form, "raw"
	}
	if settings.Output == Plugin {
		a.Signals.Arm() // the exit code is not that of a signal
	}
	if bad, ok := errors.AsType[*format.FormError](a.SetOutput(form)); ok {
		why := bad.Why
		if len(a.Forms) > 0 {
			why += "; or here " + format.List(a.Forms, "or")
		}
		return errors.Join(err, &config.Error{Source: settings.Sources["output"], Why: why})
	}
	if err == nil && settings.Override.Context != "" && !a.overridden {
		a.overridden = true
		a.warnOverride(settings.Override)
	}
	return err
}

// warnOverride warns that variables override the chosen context. With --verbose it warns each
// time. On a terminal it warns once a day for the same context and the same values. Elsewhere it
// does not warn, because a script sets its variables on purpose.
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
	onTerminal := a.stream(a.Stdout).IsTerminal() && a.stream(a.Stderr).IsTerminal()
	if a.Settings.Verbose > 0 || onTerminal && !a.Settings.Quiet && !config.AlreadyWarned(a.Env, about, time.Now()) {
		a.Warn(warning)
	}
}

// GuessOutput makes the printers for a command line that could not be parsed. It uses the flags that
// it can parse and ignores the rest.
func (a *App) GuessOutput(args []string) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	config.Bind(fs)
	// Errors are ignored: the caller reports what is wrong with the command line.
	_ = fs.Parse(args)
	_ = a.ConfigureOffline(fs)
	a.Flags = nil // no command was found
}

// The cobra annotations of commands.
const (
	Offline     = "offline"      // the command does not connect
	LogsResults = "logs results" // see App.LogsResults
	Forms       = "forms"        // see App.Forms; separated by blanks
	RunsCommand = "runs command" // the words after -- are the command line of another program
)

// Plugin is the form of output of a monitoring plugin: one line, and an exit code from 0 to 3. With it, a
// command line that cannot be carried out is the state UNKNOWN.
const Plugin = "nagios"

// A Command is a row of the command table. New builds a new cobra command for each command line,
// because a cobra command holds the values of its flags.
type Command struct {
	Name string
	New  func(*App) *cobra.Command
}

// The groups of commands in help, as users name them after `sscli help`. Within a group, commands are in the
// order of the command table.
const (
	GroupFirst = "basics" // what everybody needs first
	GroupFiles = "files"
	GroupDebug = "diagnostics"
	GroupServe = "servers"
	GroupMore  = "more"
)

// WithCommands adds subcommands to a command and returns it.
func WithCommands(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	return cmd
}

// OnTerminal reports whether sscli can start its shell: standard input and output are a terminal,
// and this command line is not already a line of a shell.
func (a *App) OnTerminal() bool {
	return a.Shell == nil && a.inputIsTerminal() && term.IsTerminal(int(a.Stdout.Fd()))
}
