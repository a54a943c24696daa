package terminal

import (
	"errors"
	"io"
	"os"
	"slices"

	"golang.org/x/term"

	"github.com/sscli/sscli/format"
)

// A Stream is standard output or standard error, with the settings for printing to it.
type Stream struct {
	File  *os.File
	Color string                      // --color: always, never, or anything else for auto
	Env   func(string) (string, bool) // like os.LookupEnv
}

// IsTerminal reports whether the stream is a terminal.
func (s Stream) IsTerminal() bool { return term.IsTerminal(int(s.File.Fd())) }

// Printer returns a printer for a form of output. The printer writes to w, with the colors and the
// size of s. w must be s.File or must write to it.
func (s Stream) Printer(form string, w io.Writer) (*format.Printer, error) {
	o := format.Options{Output: form, Terminal: s.IsTerminal(), Color: s.UsesColor()}
	if o.Terminal {
		o.Size = s.Size
	}
	return format.New(w, o)
}

// Size returns the current number of columns and rows of the terminal, or 0 and 0 if they are not
// known.
func (s Stream) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.File.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// UsesColor reports whether to use colors. With --color=auto, a NO_COLOR that is not empty turns colors
// off (no-color.org). A CLICOLOR_FORCE that is neither empty nor 0 turns them on. Otherwise colors are
// on for a terminal, unless CLICOLOR is 0, TERM is dumb, or the Windows console is too old.
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
	return s.IsTerminal() && kind != "dumb" && clicolor != "0" && enableColor(s.File)
}

// ErrClosed is the cause of a context that [UntilClosed] ended.
var ErrClosed = errors.New("its reader is gone")

// IsReaderGone reports whether an error means that nobody reads the pipe that was written to.
func IsReaderGone(err error) bool {
	return errors.Is(err, ErrClosed) || slices.ContainsFunc(brokenPipes(), func(broken error) bool { return errors.Is(err, broken) })
}
