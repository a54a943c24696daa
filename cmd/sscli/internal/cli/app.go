package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// app is what a command needs of the world and of the command line.
type App struct {
	Commands []Command               // the command table
	Topics   func() []*cobra.Command // pages of help without a command

	Build format.Build // what the linker has set

	Stdin          io.Reader
	Stdout, Stderr *os.File
	Env            func(string) (string, bool)

	Settings config.Settings

	confirmed bool   // all that a protected context would ask of this run
	declined  bool   // the same, with the other answer
	Streaming bool   // standard input is being read, and is not for answers
	Password  []byte // the answer to --askpass, for all connections
	toldOf    bool   // the context that variables override

	Output string          // the form of results
	Out    *format.Printer // results
	Faults *format.Printer // errors and warnings
	Line   int             // of a batch, which errors are about; 0 outside of one

	Signals *signals.Signals // nil = none are heeded

	// In a shell, for one line of it:
	Shell          Shell  // nil on the command line
	ConnectionFlag string // one that the line has, empty = none
	Timed          bool   // how long the command takes says something
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

// GuessForm finds out in which form to print what is wrong with a command line
// that could not be parsed.
func GuessForm(a *App, args []string) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	config.Bind(fs)
	// Whatever is wrong with the rest, the user is being told already.
	_ = fs.Parse(args)
	_ = a.configureRun(fs)
}

// configure reads the settings and makes the printers.
func (a *App) Configure(fs *pflag.FlagSet) error {
	if a.Shell != nil {
		settings, flag, err := a.Shell.Settings().Line(fs)
		a.ConnectionFlag = flag
		return a.configured(settings, err)
	}
	return a.configured(config.Resolve(fs, a.Env))
}

// configureConnection is configure for what connects: it also asks for the password,
// once, if it is to be asked for.
func (a *App) ConfigureConnection(ctx context.Context, fs *pflag.FlagSet) error {
	if err := a.Configure(fs); err != nil {
		return err
	}
	s := a.Settings
	if a.Shell != nil || !s.AskPass || a.Password != nil || s.Embedded || s.Broker() != nil {
		return nil
	}
	password, err := terminal.AskSecret(ctx, a.Stderr, fmt.Sprintf("Password of %s at %s: ", format.Escape(s.Username), s.Address))
	if err != nil {
		return fmt.Errorf("%s: %w", s.Sources["askpass"], err)
	}
	a.Password = append([]byte{}, password...) // not nil, so that it is asked for once
	return nil
}

// configureRun is configure for what does not connect: whatever is said about the
// connection, it is not looked at, and neither is the file of contexts.
func (a *App) configureRun(fs *pflag.FlagSet) error {
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
	if o := settings.Override; err == nil && o.Context != "" && !a.toldOf {
		a.toldOf = true
		verb := "overrides"
		if len(o.Variables) > 1 {
			verb = "override"
		}
		a.Warn(fmt.Sprintf("%s %s the chosen context %s", strings.Join(o.Variables, ", "), verb, o.Context), "")
	}
	return err
}

// print makes the printers for a form of output; empty is the one that suits
// where standard output leads.
func (a *App) SetOutput(output string) error {
	terminal := term.IsTerminal(int(a.Stdout.Fd()))
	if output == "" {
		output = "raw"
		if terminal {
			output = "human"
		}
	}
	out, err := format.New(a.Stdout, format.Options{Output: output, Terminal: terminal, Color: useColor(a, terminal)})
	if err != nil {
		return err
	}
	a.Out, a.Output = out, output
	a.Faults, err = stderrPrinter(a, output, a.Stderr)
	return err
}

// stderrPrinter returns a printer to standard error by way of w.
func stderrPrinter(a *App, output string, w io.Writer) (*format.Printer, error) {
	terminal := term.IsTerminal(int(a.Stderr.Fd()))
	return format.New(w, format.Options{Output: output, Terminal: terminal, Color: useColor(a, terminal)})
}

// above prints errors and warnings above a live line; restore undoes that.
func (a *App) Above(line *terminal.Line) (restore func(), err error) {
	before := a.Faults
	faults, err := stderrPrinter(a, a.Output, line)
	if err != nil {
		return nil, err
	}
	a.Faults = faults
	return func() { a.Faults = before }, nil
}

// useColor follows no-color.org and the CLICOLOR convention; a flag comes first.
func useColor(a *App, terminal bool) bool {
	set := func(name string) bool {
		v, ok := a.Env(name)
		return ok && v != "" && v != "0"
	}
	clicolor, _ := a.Env("CLICOLOR")
	term, _ := a.Env("TERM")
	switch {
	case a.Settings.Color == "always":
		return true
	case a.Settings.Color == "never":
		return false
	case set("NO_COLOR"):
		return false
	case set("CLICOLOR_FORCE"):
		return true
	}
	return terminal && term != "dumb" && clicolor != "0"
}

// report prints what ended a command and returns the exit code.
func (a *App) Report(err error) int {
	if err == nil {
		return 0
	}
	if a.Faults == nil {
		// The command line was not understood, so nobody asked for another form.
		p, formErr := stderrPrinter(a, "human", a.Stderr)
		if formErr != nil {
			fmt.Fprintln(a.Stderr, "sscli:", err)
			return explain.CodeUsage
		}
		a.Faults = p
	}
	return a.Fault(err)
}

// fault prints one error and returns its exit code. Not printed is a "no", whose
// result was, and what was printed where it happened.
func (a *App) Fault(err error) int {
	f, printed := a.Explain(err)
	if !printed {
		a.Say(f)
	}
	return f.Code
}

func (a *App) Explain(err error) (f format.Fault, printed bool) {
	if errors.Is(err, explain.ErrNo) {
		return format.Fault{Code: explain.CodeNo}, true
	}
	if e, ok := errors.AsType[*explain.ExitError](err); ok {
		return format.Fault{Code: e.Code}, true
	}
	if a.Settings.TLS {
		err = &explain.OverTLSError{Err: err}
	}
	f = explain.Of(err)
	f.Line = a.Line
	if a.Shell != nil {
		f.Hint = shellHint(f.Hint)
	}
	return f, false
}

func (a *App) Warn(message, hint string) {
	if !a.Settings.Quiet {
		a.Say(format.Warning{Message: message, Hint: hint, Line: a.Line})
	}
}

// Inform prints what sscli is doing or waiting for, which is no warning.
func (a *App) Inform(message string) {
	if !a.Settings.Quiet {
		a.Say(format.Notice{Message: message, Line: a.Line})
	}
}

// note warns of what did no harm, for those who want to know.
func (a *App) Note(message string) {
	if a.Settings.Verbose {
		a.Warn(message, "")
	}
}

// say prints on standard error. If that is gone there is nobody to tell.
func (a *App) Say(r format.Result) { _ = a.Faults.Print(r) }

// attend passes on what a reply says beside its result.
func Attend(a *App, r client.ReplyInfo) {
	for _, w := range r.Warnings {
		a.Warn(w, "")
	}
	for _, n := range r.Notes {
		a.Note(n)
	}
}

// version is how a result shows a version: not at all if there is none.
func Version(v wire.Version) format.Version {
	if v.IsZero() {
		return nil
	}
	return v
}

// onTerminal tells whether there is a user to talk to.
func (a *App) OnTerminal() bool {
	in, ok := a.Stdin.(*os.File)
	return ok && a.Shell == nil && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(a.Stdout.Fd()))
}

// emit prints a result on standard output, if there is one.
func (a *App) Emit(result format.Result) error {
	if result == nil {
		return nil
	}
	if err := a.Out.Print(result); err != nil {
		return &explain.OutputError{Err: err}
	}
	return nil
}

// queue is emit for one of several results that are there already; flush prints them.
func (a *App) Queue(result format.Result) error {
	if err := a.Out.Queue(result); err != nil {
		return &explain.OutputError{Err: err}
	}
	return nil
}

func (a *App) Flush() error {
	if err := a.Out.Flush(); err != nil {
		return &explain.OutputError{Err: err}
	}
	return nil
}
