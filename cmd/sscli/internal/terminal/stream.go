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

// UsesColor reports whether to use colors. With --color=auto, any NO_COLOR that is not empty turns
// them off (no-color.org), and any CLICOLOR_FORCE but an empty one and 0 turns them on. Otherwise
// CLICOLOR, TERM and whether the stream is a terminal decide.
func (s Stream) UsesColor() bool {
	none, _ := s.Env("NO_COLOR")
	force, _ := s.Env("CLICOLOR_FORCE")
	switch {
	case s.Color == "always":
		return true
	case s.Color == "never", none != "":
		return false
	case force != "" && force != "0":
		return true
	}
	clicolor, _ := s.Env("CLICOLOR")
	kind, _ := s.Env("TERM")
	return s.IsTerminal() && kind != "dumb" && clicolor != "0"
}

// ErrClosed is the cause with which the context of UntilClosed ends.
var ErrClosed = errors.New("standard output was closed")
