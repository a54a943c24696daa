package app

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// SetOutput makes the printers for a form of output. The empty form is human if standard output is
// a terminal, and raw otherwise.
func (a *App) SetOutput(form string) error {
	stdout := a.stream(a.Stdout)
	if form == "" {
		form = "raw"
		if stdout.IsTerminal() {
			form = "human"
		}
	}
	out, err := stdout.Printer(form, a.Stdout)
	if err != nil {
		return err
	}
	a.Faults, err = a.Diagnostics(form)
	if form == "wide" {
		form = "human"
	}
	a.Out, a.Output = out, form
	return err
}

func (a *App) stream(f *os.File) terminal.Stream {
	return terminal.Stream{File: f, Color: a.Settings.Color, Env: a.Env}
}

// Diagnostics returns a printer that prints to standard error in the given form.
func (a *App) Diagnostics(form string) (*format.Printer, error) {
	return a.stream(a.Stderr).Printer(form, a.Stderr)
}

// UsesColor reports whether to use colors on standard output.
func (a *App) UsesColor() bool { return a.stream(a.Stdout).UsesColor() }

// Report prints the error that ended a command, if there is one, and returns the exit code.
func (a *App) Report(err error) int {
	if err == nil {
		return 0
	}
	if a.Faults == nil {
		// The command line could not be parsed, or its --output is invalid.
		p, formErr := a.Diagnostics("human")
		if formErr != nil {
			fmt.Fprintln(a.Stderr, "sscli:", err)
			return fault.CodeUsage
		}
		a.Faults = p
	}
	return a.Fault(err)
}

// Fault prints an error and returns its exit code. It prints nothing for [fault.ErrNo], whose
// result is already printed, and for a *fault.ExitError, which was printed where it happened.
func (a *App) Fault(err error) int {
	f, printed := a.Explain(err)
	if !printed {
		a.Say(f)
	}
	return f.Code
}

// Refuse prints an error about one key of a command with several keys. If *first is nil, it becomes
// a *fault.ExitError with the error's exit code, for the command to return.
func (a *App) Refuse(first *error, err error) {
	code := a.Fault(err)
	if *first == nil {
		*first = &fault.ExitError{Code: code, Err: err}
	}
}

// Explain returns what Fault prints. printed is true if there is nothing to print.
func (a *App) Explain(err error) (f format.Fault, printed bool) {
	if errors.Is(err, fault.ErrNo) {
		return format.Fault{Code: fault.CodeNo}, true
	}
	if e, ok := errors.AsType[*fault.ExitError](err); ok {
		return format.Fault{Code: e.Code}, true
	}
	if a.Settings.TLS {
		err = &fault.OverTLSError{Err: err}
	}
	f = fault.Of(describeLogin(err, a.Settings, a.CanAsk()))
	f.Line = a.Line
	f.Hint = a.possible(f.Hint)
	if a.Shell != nil {
		f.Hint = shellHint(f.Hint)
	}
	return f, false
}

// Warn prints a warning, unless --quiet was given. hint is the next command to type; it may be
// empty.
func (a *App) Warn(message, hint string) {
	a.Notify(format.Note{Level: format.Warning, Message: message, Hint: hint})
}

// Inform prints what sscli is doing or waiting for, unless --quiet was given.
func (a *App) Inform(message string) {
	a.Notify(format.Note{Level: format.Notice, Message: message})
}

// Notify prints a note on standard error, unless --quiet was given.
func (a *App) Notify(n format.Note) {
	if !a.Settings.Quiet {
		n.Line = a.Line
		a.Say(n)
	}
}

// Summarize prints a summary on standard error, unless --quiet was given.
func (a *App) Summarize(r format.Result) {
	if !a.Settings.Quiet {
		a.Say(r)
	}
}

// Note is like Warn, for a harmless deviation. It prints only with --verbose.
func (a *App) Note(message string) {
	if a.Settings.Verbose > 0 {
		a.Warn(message, "")
	}
}

// Say prints on standard error. It ignores errors: there is no place left to report them.
func (a *App) Say(r format.Result) {
	a.saying.Lock()
	defer a.saying.Unlock()
	_ = a.Faults.Print(r)
}

// WarnOf prints the warnings and notes that came with a reply.
func (a *App) WarnOf(r client.ReplyInfo) {
	for _, w := range r.Warnings {
		a.Warn(w, "")
	}
	for _, n := range r.Notes {
		a.Note(n)
	}
}

// Emit prints a result on standard output immediately. It prints nothing if result is nil. The error is
// a *fault.OutputError.
func (a *App) Emit(result format.Result) error {
	if result == nil {
		return nil
	}
	return fault.Output(a.Out.Print(result))
}

// Queue is like Emit, but the next Flush prints the result, together with other queued results.
func (a *App) Queue(result format.Result) error { return fault.Output(a.Out.Queue(result)) }

// Flush prints the queued results.
func (a *App) Flush() error { return fault.Output(a.Out.Flush()) }

// Version converts a version for a result. The zero Version becomes nil, which is not shown.
func Version(v client.Version) format.Version {
	if v.IsZero() {
		return nil
	}
	return v
}

// possible returns a hint without the parts that the user cannot follow. The parts are separated by
// semicolons. possible removes each part that names a flag which this command does not have, unless the
// part is a command line of sscli. If the command has the same setting under another name, as in
// statestore-cli, possible uses that name.
func (a *App) possible(hint string) string {
	if a.Flags == nil {
		return hint
	}
	var parts []string
	for part := range strings.SplitSeq(hint, "; ") {
		words := strings.Fields(part)
		if slices.Contains(words, "sscli") {
			parts = append(parts, part)
			continue
		}
		fits := true
		for _, w := range words {
			name, isFlag := strings.CutPrefix(strings.TrimRight(w, ",:"), "--")
			if !isFlag || name == "" || a.Flags.Lookup(name) != nil {
				continue
			}
			other, known := strings.CutPrefix(a.Settings.Sources[name], "--")
			if fits = fits && known && a.Flags.Lookup(other) != nil; fits {
				part = strings.ReplaceAll(part, "--"+name, "--"+other)
			}
		}
		if fits {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// shellHint returns a hint as the user types it in sscli's shell: without the word sscli, unless the
// hint is a command for the user's shell.
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

// Width returns the number of columns of standard output; 0 if it is not a terminal.
func (a *App) Width() int {
	stdout := a.stream(a.Stdout)
	if !stdout.IsTerminal() {
		return 0
	}
	width, _ := stdout.Size()
	return width
}
