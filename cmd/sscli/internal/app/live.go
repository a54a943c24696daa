package app

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

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
func Live(a *App, interval time.Duration, text func() string) (above io.Writer, end func()) {
	kind, _ := a.Env("TERM")
	if a.Settings.Quiet || a.Settings.Trace || kind == "dumb" || !term.IsTerminal(int(a.Stderr.Fd())) {
		return a.Stderr, func() {}
	}
	line := &terminal.Line{W: a.Stderr}
	faults, err := stderrPrinter(a, a.Output, line)
	if err != nil { // cannot happen: the form of output worked before
		return a.Stderr, func() {}
	}
	before := a.Faults
	a.Faults = faults
	stop := line.Animate(interval, func() string { return oneRow(text(), a.Stderr) })
	return line, func() {
		stop()
		a.Faults = before
	}
}

// oneRow cuts a text so that the terminal does not wrap it: clearing a line clears one row.
func oneRow(text string, f *os.File) string {
	if width, _ := terminalSize(f); width > 0 {
		return format.Cut(text, width-1)
	}
	return text
}
