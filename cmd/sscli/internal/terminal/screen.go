package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/sscli/sscli/format"
)

// A ScreenLine is a row of the screen. Its text must be printable and no wider than the screen.
type ScreenLine struct {
	Text  string
	Style Style
}

// A Style is the appearance of a line.
type Style int

// The styles.
const (
	Plain Style = iota
	Bold
	Faint
	Inverse
	Alert
)

// A Screen is the alternate screen of a terminal. While it is open, keys do not echo and do not
// send signals, and nothing else may print on the terminal.
type Screen struct {
	*Keys
	out   *Output
	color bool

	drawn         []ScreenLine // the lines that the terminal shows; nil = unknown
	width, height int
}

// Control sequences (ECMA-48, xterm).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the alternate screen, no cursor, no wrapping
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[H\x1b[2J"
	eraseLine   = "\x1b[K"
	eraseBelow  = "\x1b[J" // from the cursor to the end of the screen
	resetStyle  = "\x1b[m"
)

// OpenScreen opens the terminal that sscli was started from, to read keys, and draws on out. If OpenScreen returns
// a Screen, the caller must close it, even if OpenScreen also returns an error.
func OpenScreen(out *Output, color bool) (*Screen, error) {
	keys, err := OpenKeys()
	if err != nil {
		return nil, err
	}
	s := &Screen{Keys: keys, out: out, color: color}
	return s, s.Enter()
}

// Enter puts the terminal in raw mode, and switches to the alternate screen and clears it.
func (s *Screen) Enter() error {
	s.drawn = nil
	if err := s.Raw(); err != nil {
		return err
	}
	_, err := io.WriteString(s.out, enterScreen+clearScreen)
	return err
}

// leave undoes Enter.
func (s *Screen) leave() error {
	_, err := io.WriteString(s.out, resetStyle+leaveScreen)
	return errors.Join(err, s.Restore())
}

// Close undoes Enter and closes the terminal.
func (s *Screen) Close() error { return errors.Join(s.leave(), s.Keys.Close()) }

// Suspend restores the terminal and stops the process group, as Ctrl-Z does. When the process
// continues, Suspend returns to the alternate screen.
func (s *Screen) Suspend() error {
	if err := s.leave(); err != nil {
		return err
	}
	Stop()
	return s.Enter()
}

// Redraw makes the next Draw write all lines, not only the changed ones.
func (s *Screen) Redraw() { s.drawn = nil }

// Draw calls view with the size of the terminal and shows the lines that view returns. It writes only
// the lines that have changed.
func (s *Screen) Draw(view func(width, height int) []ScreenLine) error {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
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
		// Erase the line before writing the text. After a text as wide as the screen, the cursor stays
		// on the last character, so that erasing the rest of the line would erase that character.
		fmt.Fprintf(&b, "\x1b[%d;1H"+eraseLine+"%s", i+1, s.styled(l))
	}
	if len(lines) < len(s.drawn) {
		fmt.Fprintf(&b, "\x1b[%d;1H"+eraseBelow, len(lines)+1)
	}
	s.drawn = append([]ScreenLine{}, lines...)
	if b.Len() == 0 {
		return nil
	}
	_, err = s.out.Write(b.Bytes())
	return err
}

// styled returns the text of a line with the control sequences of its style.
func (s *Screen) styled(l ScreenLine) string {
	style := [...]string{Plain: "", Bold: "\x1b[1m", Faint: "\x1b[2m", Inverse: "\x1b[7m", Alert: "\x1b[1m"}[l.Style]
	if l.Style == Alert && s.color {
		style = "\x1b[33m"
	}
	if style == "" {
		return l.Text
	}
	return style + l.Text + resetStyle
}

// Wrap breaks a text into lines of at most width columns. All lines after the first are indented by 4
// columns, unless width is too small for this.
func Wrap(text string, width int) []ScreenLine {
	indent := strings.Repeat(" ", 4)
	if width < 2*len(indent) {
		indent = ""
	}
	var lines []ScreenLine
	for text != "" || lines == nil {
		end, columns := len(text), 0
		for i, c := range text {
			if columns += format.Width(c); columns > width && i > 0 {
				end = i
				break
			}
		}
		lines = append(lines, ScreenLine{Text: text[:end]})
		if text = text[end:]; text != "" {
			text = indent + strings.TrimLeft(text, " ")
		}
	}
	return lines
}

// Pad cuts a text to width columns, or fills it with spaces on the right.
func Pad(text string, width int) string {
	text = format.Cut(text, width)
	return text + strings.Repeat(" ", max(width-format.Columns(text), 0))
}

// PadLeft fills a text with spaces on the left to width columns. It does not cut a longer text.
func PadLeft(text string, width int) string {
	return strings.Repeat(" ", max(width-format.Columns(text), 0)) + text
}
