package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// UseStandardStreams makes the App use the standard streams of the process. ctx is the context of
// [signals.Notify].
func (a *App) UseStandardStreams(ctx context.Context) {
	a.Stdin = os.Stdin
	stdout, stderr := terminal.Standard()
	a.Stdout, a.Stderr = &terminal.Output{File: stdout, Ended: ctx}, &terminal.Output{File: stderr, Ended: ctx}
	if terminal.InputClosed() {
		a.Stdin = closedInput{}
	}
}

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

func (a *App) stream(o *terminal.Output) terminal.Stream {
	return terminal.Stream{File: o.File, Color: a.Settings.Color, Env: a.Env}
}

// Diagnostics returns a printer that prints to standard error in the given form.
func (a *App) Diagnostics(form string) (*format.Printer, error) {
	w := a.errors()
	if a.log != nil {
		a.log.setForm(form)
	}
	return a.stream(a.Stderr).Printer(form, w)
}

// UsesColor reports whether to use colors on standard output.
func (a *App) UsesColor() bool { return a.stream(a.Stdout).UsesColor() }

// Report prints the error that ended a command, if there is one, and returns the exit code.
func (a *App) Report(err error) int {
	defer func() {
		if a.log != nil {
			a.log.flush()
		}
	}()
	if err == nil {
		return 0
	}
	if a.Settings.Output == Plugin {
		return a.reportUnknown(err)
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

// reportUnknown prints an error as a monitoring plugin, and returns the exit code, from 0 to 3.
func (a *App) reportUnknown(err error) int {
	const unknown = 3
	f, printed := a.FaultOf(err)
	if printed {
		return min(f.Code, unknown)
	}
	text := f.Text()
	if parts := fault.Parts(err); len(parts) > 1 {
		var texts []string
		for _, part := range parts {
			texts = append(texts, fault.Message(part))
		}
		text = strings.Join(texts, "; ")
	}
	if len(f.Hint) > 0 {
		text += "; try: " + f.Hint.String()
	}
	fmt.Fprintln(a.Stdout, "SSCLI UNKNOWN - "+strings.ReplaceAll(format.Escape(text), "|", "/"))
	return unknown
}

// Fault prints an error and returns its exit code. It prints nothing for [fault.ErrNo], whose
// result is already printed, and for a *fault.ExitError, which was printed where it happened. Errors
// that are joined are printed one by one, with the same exit code, and the hint after the last.
func (a *App) Fault(err error) int {
	whole, printed := a.FaultOf(err)
	if printed {
		return whole.Code
	}
	parts := fault.Parts(err)
	last := len(parts) - 1
	for _, part := range parts[:last] {
		f, _ := a.FaultOf(part)
		f.Code, f.Hint = whole.Code, nil
		a.Say(f)
	}
	f := whole
	if last > 0 {
		f, _ = a.FaultOf(parts[last])
		f.Code, f.Hint = whole.Code, whole.Hint
	}
	a.Say(f)
	return whole.Code
}

// Refuse prints an error about one key of a command with several keys. If *first is nil, it becomes
// a *fault.ExitError with the error's exit code, for the command to return.
func (a *App) Refuse(first *error, err error) {
	code := a.Fault(err)
	if *first == nil {
		*first = &fault.ExitError{Code: code, Err: err}
	}
}

// FaultOf returns what Fault prints. printed is true if there is nothing to print.
func (a *App) FaultOf(err error) (f format.Fault, printed bool) {
	if errors.Is(err, fault.ErrNo) {
		return format.Fault{Code: fault.CodeNo}, true
	}
	if e, ok := errors.AsType[*fault.ExitError](err); ok {
		return format.Fault{Code: e.Code}, true
	}
	if fault.IsUnread(err) {
		return format.Fault{Code: fault.CodeOutput}, true
	}
	if a.Settings.TLS {
		err = &fault.OverTLSError{Err: err}
	}
	f, hint := fault.Of(describeLogin(err, a.Settings, a.CanAsk()))
	if rule := a.ruleToAskFor(f.Kind, err); rule != "" {
		hint = append(suggest.Say("the rule to ask for: "+rule), hint...)
	}
	f.Line, f.Hint = a.Line, a.steps(hint)
	return f, false
}

// Warn prints a warning, unless --quiet was given.
func (a *App) Warn(message string) { a.Advise(message, nil) }

// Advise prints a warning with a hint, unless --quiet was given.
func (a *App) Advise(message string, hint suggest.Hint) {
	a.Notify(format.Note{Level: format.Warning, Message: message, Hint: a.Hint(hint)})
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

// Detail is like Warn, for a harmless deviation. It prints only with --verbose.
func (a *App) Detail(message string) {
	if a.Settings.Verbose > 0 {
		a.Warn(message)
	}
}

// Say prints on standard error. It ignores errors: there is no place left to report them.
func (a *App) Say(r format.Result) {
	a.saying.Lock()
	defer a.saying.Unlock()
	a.say(r)
}

// WarnOf prints the warnings and notes that came with a reply.
func (a *App) WarnOf(r client.ReplyInfo) {
	for _, w := range r.Warnings {
		a.Warn(w)
	}
	for _, n := range r.Notes {
		a.Detail(n)
	}
}

// Emit prints a result on standard output immediately. It prints nothing if result is nil. The error is
// a *fault.OutputError.
func (a *App) Emit(result format.Result) error {
	if result == nil {
		return nil
	}
	return a.printed(a.Out.Print(result))
}

// Print prints text in a form that the command makes itself (App.Form). The error is a *fault.OutputError.
func (a *App) Print(text string) error {
	_, err := a.Stdout.WriteString(text)
	return a.printed(err)
}

// Queue is like Emit, but the next Flush prints the result, together with other queued results.
func (a *App) Queue(result format.Result) error { return a.printed(a.Out.Queue(result)) }

// Flush prints the queued results.
func (a *App) Flush() error { return a.printed(a.Out.Flush()) }

func (a *App) printed(err error) error {
	if a.LogsResults && terminal.IsReaderGone(err) {
		return nil
	}
	return fault.Output(err)
}

// Hint returns the text of a hint as the user of this command can follow it: without flags that the
// command does not have, and in a shell without the word sscli. statestore-cli has some of sscli's flags
// under other names.
func (a *App) Hint(hint suggest.Hint) string { return a.steps(hint).String() }

func (a *App) steps(hint suggest.Hint) format.Hint {
	if a.Flags != nil {
		hint = hint.Possible(func(flag string) string {
			if a.Flags.Lookup(flag) != nil {
				return flag
			}
			if other := a.Settings.Sources[flag].Flag; a.Flags.Lookup(other) != nil {
				return other
			}
			return ""
		})
	}
	if a.Hinted != nil && hint != nil {
		a.Hinted(hint)
	}
	if a.Shell != nil {
		hint = hint.Inside()
	}
	return hint.Steps()
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

// A Table prints rows. In the human form, the first rows set the widths of the columns, so they are held
// back.
type Table struct {
	app     *App
	first   int          // how many rows set the widths, unless Flush is called earlier
	rows    []format.Row // rows that are held back
	aligned bool         // no rows are held back
}

// NewTable returns a table. The first rows set the widths of its columns.
func (a *App) NewTable(first int) *Table {
	return &Table{app: a, first: first, aligned: a.Output != "human"}
}

// Add queues a row or holds it back.
func (t *Table) Add(row format.Row) error {
	if t.aligned {
		return t.app.Queue(row)
	}
	if t.rows = append(t.rows, row); len(t.rows) == t.first {
		return t.align()
	}
	return nil
}

// align queues the rows that are held back, if there are any.
func (t *Table) align() error {
	if len(t.rows) == 0 {
		return nil
	}
	t.app.Out.Measure(t.rows...)
	t.aligned = true
	for _, row := range t.rows {
		if err := t.app.Queue(row); err != nil {
			return err
		}
	}
	t.rows = nil
	return nil
}

// Flush prints all rows.
func (t *Table) Flush() error { return cmp.Or(t.align(), t.app.Flush()) }
