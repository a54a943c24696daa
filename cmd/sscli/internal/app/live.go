package app

import (
	"io"
	"time"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// Live shows a line at the bottom of the terminal and redraws it at each interval, until end is
// called, which clears the line. text returns the line, without control characters. It runs in
// another goroutine, and Live cuts its result to the terminal's width. Errors and warnings appear
// above the line. Write everything else for standard error to above. Until end is called, print
// nothing on standard output if that is a terminal too.
//
// Live shows no line, and above is standard error, if standard error is not a terminal or cannot
// redraw a line, with --quiet, and with --trace.
func (a *App) Live(interval time.Duration, text func() string) (above io.Writer, end func()) {
	kind, _ := a.Env("TERM")
	if a.Settings.Quiet || a.Settings.Trace || kind == "dumb" || !a.stream(a.Stderr).IsTerminal() {
		return a.Stderr, func() {}
	}
	line := &terminal.Line{W: a.Stderr}
	stderr := a.stream(a.Stderr)
	faults, err := stderr.Printer(a.Output, line)
	if err != nil { // cannot happen: a.Faults has the same form of output
		return a.Stderr, func() {}
	}
	before := a.Faults
	a.Faults = faults
	stop := line.Animate(interval, func() string {
		if width, _ := stderr.Size(); width > 0 {
			return format.Cut(text(), width-1) // a line that wraps could not be cleared
		}
		return text()
	})
	return line, func() {
		stop()
		a.Faults = before
	}
}

// Progress shows text in a live line on standard error until end is called. If standard output is a
// terminal, it shows no line unless silent is true, which means that the command prints no results.
func (a *App) Progress(silent bool, text func() string) (end func()) {
	if !silent && term.IsTerminal(int(a.Stdout.Fd())) {
		return func() {}
	}
	_, end = a.Live(200*time.Millisecond, text)
	return end
}
