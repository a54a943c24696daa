package cli

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
)

// progressInterval is the time between two updates of the line.
const progressInterval = 200 * time.Millisecond

// Progress shows what text returns, time and again, at the bottom of standard error until end
// is called. It does so only on a terminal to which nothing else is written: no trace, and no
// results unless silent says that there are none meanwhile. Errors and warnings appear above
// the line.
func Progress(a *App, silent bool, text func() string) (end func()) {
	_, end = ProgressLine(a, silent, text)
	return end
}

// ProgressLine is Progress for a caller that writes to standard error itself. It returns where
// to write meanwhile.
func ProgressLine(a *App, silent bool, text func() string) (stderr io.Writer, end func()) {
	name, _ := a.Env("TERM")
	shown := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	if a.Settings.Quiet || a.Settings.Trace || name == "dumb" || !shown(a.Stderr) || shown(a.Stdout) && !silent {
		return a.Stderr, func() {}
	}
	line := &terminal.Line{W: a.Stderr}
	above, err := a.Above(line)
	if err != nil {
		return a.Stderr, func() {} // cannot happen: the form of output worked before
	}
	stop := line.Animate(progressInterval, text)
	return line, func() {
		stop()
		above()
	}
}
