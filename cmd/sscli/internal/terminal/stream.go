package terminal

import (
	"errors"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/sscli/sscli/format"
)

// A Stream is standard output or standard error, as results and messages are printed to it.
type Stream struct {
	File  *os.File
	Color string                      // --color: always, never, or anything else for auto
	Env   func(string) (string, bool) // as os.LookupEnv
}

// IsTerminal reports whether the stream is a terminal.
func (s Stream) IsTerminal() bool { return term.IsTerminal(int(s.File.Fd())) }

// Printer returns a printer for a form of output. The printer writes to w, which must be s.File or
// write to it: s determines the colors and the size.
func (s Stream) Printer(form string, w io.Writer) (*format.Printer, error) {
	o := format.Options{Output: form, Terminal: s.IsTerminal(), Color: s.UsesColor()}
	if o.Terminal {
		o.Size = s.Size
	}
	return format.New(w, o)
}

// Size returns the columns and rows of a terminal, which may change; 0, 0 if they are not
// known.
func (s Stream) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.File.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// UsesColor reports whether to use colors. With --color=auto, NO_COLOR (no-color.org) and
// CLICOLOR_FORCE decide, unless they are empty or 0, and then CLICOLOR, TERM and whether the stream
// is a terminal.
func (s Stream) UsesColor() bool {
	set := func(name string) bool {
		v, ok := s.Env(name)
		return ok && v != "" && v != "0"
	}
	switch {
	case s.Color == "always":
		return true
	case s.Color == "never", set("NO_COLOR"):
		return false
	case set("CLICOLOR_FORCE"):
		return true
	}
	clicolor, _ := s.Env("CLICOLOR")
	kind, _ := s.Env("TERM")
	return s.IsTerminal() && kind != "dumb" && clicolor != "0"
}

// ErrClosed is the cause with which the context of UntilClosed ends.
var ErrClosed = errors.New("standard output was closed")
