package bulkread

import (
	"time"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// Refuse prints the error of a key that could not be read. It stores the first such error in *first,
// for the exit code.
func Refuse(a *app.App, first *error, err error) {
	code := a.Fault(err)
	if *first == nil {
		*first = &fault.ExitError{Code: code, Err: err}
	}
}

// Progress shows text in a live line on standard error until end is called. It shows no line if
// standard output is a terminal, unless silent says that the command prints no results there.
func Progress(a *app.App, silent bool, text func() string) (end func()) {
	if !silent && term.IsTerminal(int(a.Stdout.Fd())) {
		return func() {}
	}
	_, end = a.Live(200*time.Millisecond, text)
	return end
}
