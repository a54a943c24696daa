package app

import (
	"io"
	"time"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// Live shows a line at the bottom of the terminal and redraws it once per interval. Call end to
// remove the line. text returns the line, without control characters. Live calls text in another
// goroutine, and cuts the line to the terminal's width. Errors and warnings appear above the line.
// Write all other output for standard error to above. If standard output is a terminal too, print
// nothing on it until end is called.
//
// Live shows no line with --quiet or --trace, or if standard error is not a terminal or cannot redraw a
// line. In these cases above is standard error.
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

// Progress shows text in a live line on standard error until end is called. silent is true if the
// command prints no results. If silent is false and standard output is a terminal, Progress shows no
// line.
func (a *App) Progress(silent bool, text func() string) (end func()) {
	if !silent && term.IsTerminal(int(a.Stdout.Fd())) {
		return func() {}
	}
	_, end = a.Live(200*time.Millisecond, text)
	return end
}
