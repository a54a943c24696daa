package app

import (
	"io"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// Live shows what text returns in one line at the bottom of the terminal, and again after each
// interval, until end is called, which clears the line. Errors and warnings appear above it;
// above is for everything else that is written to standard error. text returns one line
// without control characters, which is cut at the terminal's width; it is called by another
// goroutine. Until end, nothing may be printed on standard output if that is a terminal too.
//
// There is no line if standard error is not a terminal that can redraw one, with --quiet, and
// with --trace on standard error: then above is standard error.
func (a *App) Live(interval time.Duration, text func() string) (above io.Writer, end func()) {
	kind, _ := a.Env("TERM")
	if a.Settings.Quiet || a.Settings.Trace || kind == "dumb" || !a.stream(a.Stderr).IsTerminal() {
		return a.Stderr, func() {}
	}
	line := &terminal.Line{W: a.Stderr}
	stderr := a.stream(a.Stderr)
	faults, err := stderr.Printer(a.Output, line)
	if err != nil { // cannot happen: the form of output worked before
		return a.Stderr, func() {}
	}
	before := a.Faults
	a.Faults = faults
	stop := line.Animate(interval, func() string {
		if width, _ := stderr.Size(); width > 0 {
			return format.Cut(text(), width-1) // clearing a line clears one row
		}
		return text()
	})
	return line, func() {
		stop()
		a.Faults = before
	}
}
