package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/config"
	"github.com/sscli/sscli/format"
)

// app is what a command needs of the world and of the command line.
type app struct {
	stdin          io.Reader
	stdout, stderr *os.File
	env            func(string) (string, bool)

	settings config.Settings

	confirmed bool   // all that a protected context would ask of this run
	declined  bool   // the same, with the other answer
	streaming bool   // standard input is being read, and is not for answers
	password  []byte // the answer to --askpass, for all connections
	toldOf    bool   // the context that variables override

	output   string          // the form of results
	out      *format.Printer // results
	faults   *format.Printer // errors and warnings
	line     int             // of a batch, which errors are about; 0 outside of one
	progress *progress       // of a batch, on standard error; nil: none

	signals *signals // nil = none are heeded

	// In a shell, for one line of it:
	held           *held  // the shell's connection; nil on the command line
	connectionFlag string // one that the line has, empty = none
	timed          bool   // how long the command takes says something
}

func newApp() *app {
	return &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}
}

// errNo is a "no": a result that was printed, and exit code 1.
var errNo = errors.New("no")

// An exitError is an exit code that needs no more words: a child's, or that of an
// error that was printed where it happened.
type exitError struct {
	code int
	err  error // may be nil
}

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func (e *exitError) Unwrap() error { return e.err }

// A usageError is a command line that cannot be understood.
type usageError struct {
	err  error
	hint string // the next thing to type
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

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

// shellHint is a hint as it is typed in a shell.
func shellHint(hint string) string {
	line, ok := strings.CutPrefix(hint, "sscli ")
	switch about, help := strings.CutSuffix(line, "--help"); {
	case !ok || strings.HasPrefix(line, "serve") || strings.HasPrefix(line, "shell") || strings.HasPrefix(line, "-"):
		if hint == "sscli --help" {
			return "help"
		}
		return hint
	case help:
		return strings.TrimSpace("help " + about)
	}
	return line
}

// guessForm finds out in which form to print what is wrong with a command line
// that could not be parsed.
func (a *app) guessForm(args []string) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	config.Bind(fs)
	// Whatever is wrong with the rest, the user is being told already.
	_ = fs.Parse(args)
	_ = a.configureRun(fs)
}

// configure reads the settings and makes the printers.
func (a *app) configure(fs *pflag.FlagSet) error {
	if a.held != nil {
		settings, flag, err := a.held.settings.Line(fs)
		a.connectionFlag = flag
		return a.configured(settings, err)
	}
	return a.configured(config.Resolve(fs, a.env))
}

// configureConnection is configure for what connects: it also asks for the password,
// once, if it is to be asked for.
func (a *app) configureConnection(ctx context.Context, fs *pflag.FlagSet) error {
	if err := a.configure(fs); err != nil {
		return err
	}
	s := a.settings
	if a.held != nil || !s.AskPass || a.password != nil || s.Embedded || s.Broker() != nil {
		return nil
	}
	password, err := a.askSecret(ctx, fmt.Sprintf("Password of %s at %s: ", format.Escape(s.Username), s.Address))
	if err != nil {
		return fmt.Errorf("%s: %w", s.Sources["askpass"], err)
	}
	a.password = append([]byte{}, password...) // not nil, so that it is asked for once
	return nil
}

// configureRun is configure for what does not connect: whatever is said about the
// connection, it is not looked at, and neither is the file of contexts.
func (a *app) configureRun(fs *pflag.FlagSet) error {
	if a.held != nil {
		return a.configure(fs)
	}
	return a.configured(config.ResolveRun(fs, a.env))
}

func (a *app) configured(settings config.Settings, err error) error {
	a.settings = settings
	if printErr := a.print(settings.Output); printErr != nil {
		source := settings.Sources["output"]
		return errors.Join(err, &config.Error{Source: source, Why: strings.TrimPrefix(printErr.Error(), "output ")})
	}
	if o := settings.Override; err == nil && o.Context != "" && !a.toldOf {
		a.toldOf = true
		verb := "overrides"
		if len(o.Variables) > 1 {
			verb = "override"
		}
		a.warn(fmt.Sprintf("%s %s the chosen context %s", strings.Join(o.Variables, ", "), verb, o.Context), "")
	}
	return err
}

// offline marks the commands that do not connect.
const offline = "offline"

// print makes the printers for a form of output; empty is the one that suits
// where standard output leads.
func (a *app) print(output string) error {
	terminal := term.IsTerminal(int(a.stdout.Fd()))
	if output == "" {
		output = "raw"
		if terminal {
			output = "human"
		}
	}
	out, err := format.New(a.stdout, format.Options{Output: output, Terminal: terminal, Color: a.color(terminal)})
	if err != nil {
		return err
	}
	a.out, a.output = out, output
	a.faults, err = a.stderrPrinter(output, a.stderr)
	return err
}

// stderrPrinter returns a printer to standard error by way of w.
func (a *app) stderrPrinter(output string, w io.Writer) (*format.Printer, error) {
	terminal := term.IsTerminal(int(a.stderr.Fd()))
	return format.New(w, format.Options{Output: output, Terminal: terminal, Color: a.color(terminal)})
}

// color follows no-color.org and the CLICOLOR convention; a flag comes first.
func (a *app) color(terminal bool) bool {
	set := func(name string) bool {
		v, ok := a.env(name)
		return ok && v != "" && v != "0"
	}
	clicolor, _ := a.env("CLICOLOR")
	term, _ := a.env("TERM")
	switch {
	case a.settings.Color == "always":
		return true
	case a.settings.Color == "never":
		return false
	case set("NO_COLOR"):
		return false
	case set("CLICOLOR_FORCE"):
		return true
	}
	return terminal && term != "dumb" && clicolor != "0"
}

// report prints what ended a command and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return 0
	}
	if a.faults == nil {
		// The command line was not understood, so nobody asked for another form.
		p, formErr := a.stderrPrinter("human", a.stderr)
		if formErr != nil {
			fmt.Fprintln(a.stderr, "sscli:", err)
			return codeUsage
		}
		a.faults = p
	}
	return a.fault(err)
}

// fault prints one error and returns its exit code. Not printed is a "no", whose
// result was, and what was printed where it happened.
func (a *app) fault(err error) int {
	f, printed := a.explain(err)
	if !printed {
		a.say(f)
	}
	return f.Code
}

func (a *app) explain(err error) (f format.Fault, printed bool) {
	if errors.Is(err, errNo) {
		return format.Fault{Code: codeNo}, true
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return format.Fault{Code: e.code}, true
	}
	if a.settings.TLS {
		err = &overTLSError{err}
	}
	f = explain(err)
	f.Line = a.line
	if a.held != nil {
		f.Hint = shellHint(f.Hint)
	}
	return f, false
}

func (a *app) warn(message, hint string) {
	if !a.settings.Quiet {
		a.say(format.Warning{Message: message, Hint: hint, Line: a.line})
	}
}

// note warns of what did no harm, for those who want to know.
func (a *app) note(message string) {
	if a.settings.Verbose {
		a.warn(message, "")
	}
}

// say prints on standard error. If that is gone there is nobody to tell.
func (a *app) say(r format.Result) { _ = a.faults.Print(r) }

// attend passes on what a reply says beside its result.
func (a *app) attend(r client.ReplyInfo) {
	for _, w := range r.Warnings {
		a.warn(w, "")
	}
	for _, n := range r.Notes {
		a.note(n)
	}
}

// newRoot builds the command table; everything that lists commands (the
// parser, help, completion) reads it from there.
func newRoot(a *app) *cobra.Command { return newRootWith(a, "") }

// newRootWith builds as much of the command table as a command line needs that begins
// with a word: one command, if the word is its name, or else all. To build all of them
// takes a fifth of the time that sscli takes to start.
func newRootWith(a *app, first string) *cobra.Command {
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
				return a.batch(cmd.Context(), batchFlags{inflight: 1, from: 1}, "-")
			}
			if len(args) > 0 {
				return unknownCommand(cmd, unprotect(args[0]))
			}
			if a.onTerminal() {
				return a.shell(cmd.Context())
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
	if cmd := a.newCommand(first); cmd != nil {
		root.AddCommand(cmd)
		root.CompletionOptions.DisableDefaultCmd = true
	} else {
		for _, v := range verbs() {
			root.AddCommand(a.verbCommand(v))
		}
		for _, c := range a.otherCommands() {
			root.AddCommand(c.make())
		}
		for _, topic := range helpTopics() {
			root.AddCommand(topic)
		}
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

// command makes a command that is no verb.
type command struct {
	name string
	make func() *cobra.Command
}

func (a *app) otherCommands() []command {
	return []command{
		{"watch", a.newWatch},
		{"lock", a.newLock},
		{"ping", func() *cobra.Command { return a.newPing(a.ping) }},
		{"doctor", a.newDoctor},
		{"bench", a.newBench},
		{"hlc", a.newHLC},
		{"batch", a.newBatch},
		{"shell", a.newShell},
		{"serve", a.newServe},
		{"context", a.newContext},
		{"man", a.newMan},
		{"version", a.newVersion},
	}
}

// newCommand returns the command of that very name, or nil if there is none.
func (a *app) newCommand(name string) *cobra.Command {
	for _, c := range a.otherCommands() {
		if c.name == name {
			return c.make()
		}
	}
	for _, v := range verbs() {
		if v.name() == name {
			return a.verbCommand(v)
		}
	}
	return nil
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
	unknown := &usageError{err: fmt.Errorf("unknown command %.64q", name), hint: "sscli --help"}
	for distance := 1; distance <= 2; distance++ {
		cmd.SuggestionsMinimumDistance = distance
		if near := cmd.SuggestionsFor(strings.ToLower(name)); len(near) > 0 {
			unknown.hint = "sscli " + near[0] + " --help"
			break
		}
	}
	return unknown
}
