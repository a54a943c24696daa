package main

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
	"github.com/sscli/sscli/format"
)

// app is what a command needs of the world and of the command line.
type app struct {
	commands []command               // the command table
	topics   func() []*cobra.Command // pages of help without a command

	build format.Build // what the linker has set

	stdin          io.Reader
	stdout, stderr *os.File
	env            func(string) (string, bool)

	settings config.Settings

	confirmed bool   // all that a protected context would ask of this run
	declined  bool   // the same, with the other answer
	streaming bool   // standard input is being read, and is not for answers
	password  []byte // the answer to --askpass, for all connections
	toldOf    bool   // the context that variables override

	output string          // the form of results
	out    *format.Printer // results
	faults *format.Printer // errors and warnings
	line   int             // of a batch, which errors are about; 0 outside of one

	signals *signals // nil = none are heeded

	// In a shell, for one line of it:
	shell          Shell  // nil on the command line
	connectionFlag string // one that the line has, empty = none
	timed          bool   // how long the command takes says something
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
	if a.shell != nil {
		settings, flag, err := a.shell.Settings().Line(fs)
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
	if a.shell != nil || !s.AskPass || a.password != nil || s.Embedded || s.Broker() != nil {
		return nil
	}
	password, err := askSecret(ctx, a.stderr, fmt.Sprintf("Password of %s at %s: ", format.Escape(s.Username), s.Address))
	if err != nil {
		return fmt.Errorf("%s: %w", s.Sources["askpass"], err)
	}
	a.password = append([]byte{}, password...) // not nil, so that it is asked for once
	return nil
}

// configureRun is configure for what does not connect: whatever is said about the
// connection, it is not looked at, and neither is the file of contexts.
func (a *app) configureRun(fs *pflag.FlagSet) error {
	if a.shell != nil {
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

// above prints errors and warnings above a live line; restore undoes that.
func (a *app) above(line *liveLine) (restore func(), err error) {
	before := a.faults
	faults, err := a.stderrPrinter(a.output, line)
	if err != nil {
		return nil, err
	}
	a.faults = faults
	return func() { a.faults = before }, nil
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
	if a.shell != nil {
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

// version is how a result shows a version: not at all if there is none.
func version(v wire.Version) format.Version {
	if v.IsZero() {
		return nil
	}
	return v
}

// onTerminal tells whether there is a user to talk to.
func (a *app) onTerminal() bool {
	in, ok := a.stdin.(*os.File)
	return ok && a.shell == nil && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(a.stdout.Fd()))
}

// emit prints a result on standard output, if there is one.
func (a *app) emit(result format.Result) error {
	if result == nil {
		return nil
	}
	if err := a.out.Print(result); err != nil {
		return &outputError{err: err}
	}
	return nil
}

// queue is emit for one of several results that are there already; flush prints them.
func (a *app) queue(result format.Result) error {
	if err := a.out.Queue(result); err != nil {
		return &outputError{err: err}
	}
	return nil
}

func (a *app) flush() error {
	if err := a.out.Flush(); err != nil {
		return &outputError{err: err}
	}
	return nil
}
