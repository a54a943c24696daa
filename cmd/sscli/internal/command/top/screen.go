package top

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
)

// A screen is a terminal that lines are drawn on. Whoever opens it closes it, whatever
// happens: until then, keys do not act and nothing else may be printed.
type screen struct {
	out   *os.File
	keys  *terminal.Keys
	color bool

	drawn         []line // what is on the screen
	width, height int
}

// Control sequences (ECMA-48, xterm).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the alternate screen, no cursor, no wrapping
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[H\x1b[2J"
	eraseRest   = "\x1b[K"
	resetStyle  = "\x1b[m"
)

// openScreen takes the terminal.
func openScreen(out *os.File, color bool) (*screen, error) {
	s := &screen{out: out, color: color}
	var err error
	if s.keys, err = terminal.OpenKeys(); err != nil {
		return nil, err
	}
	return s, s.enter()
}

func (s *screen) enter() error {
	s.drawn = nil
	if err := s.keys.Raw(); err != nil {
		return err
	}
	_, err := io.WriteString(s.out, enterScreen+clearScreen)
	return err
}

// leave gives the terminal back as it was.
func (s *screen) leave() error {
	_, err := io.WriteString(s.out, resetStyle+leaveScreen)
	return errors.Join(err, s.keys.Restore())
}

func (s *screen) close() error { return errors.Join(s.leave(), s.keys.Close()) }

// size returns the columns and rows of the terminal.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// suspend gives the terminal back, stops the process and its group as the terminal does at
// Ctrl-Z, and goes on when it is continued.
func (s *screen) suspend() error {
	if err := s.leave(); err != nil {
		return err
	}
	terminal.Stop()
	return s.enter()
}

// draw shows what view returns for the size of the terminal. It writes only the lines that
// differ from those on the screen.
func (s *screen) draw(view func(width, height int) []line) error {
	width, height := s.size()
	lines := view(width, height)
	var b bytes.Buffer
	if width != s.width || height != s.height || s.drawn == nil {
		s.width, s.height, s.drawn = width, height, nil
		b.WriteString(clearScreen)
	}
	for i, l := range lines {
		if i < len(s.drawn) && s.drawn[i] == l {
			continue
		}
		// Erased first: after a text as wide as the screen, the cursor stands on its end.
		fmt.Fprintf(&b, "\x1b[%d;1H"+eraseRest, i+1)
		style := s.style(l.style)
		b.WriteString(style)
		b.WriteString(l.text)
		if style != "" {
			b.WriteString(resetStyle)
		}
	}
	s.drawn = append(s.drawn[:0:0], lines...)
	if b.Len() == 0 {
		return nil
	}
	_, err := s.out.Write(b.Bytes())
	return err
}

func (s *screen) style(st style) string {
	switch st {
	case bold:
		return "\x1b[1m"
	case faint:
		return "\x1b[2m"
	case inverse:
		return "\x1b[7m"
	case alert:
		if s.color {
			return "\x1b[33m"
		}
		return "\x1b[1m"
	}
	return ""
}
