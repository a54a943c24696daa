package repl

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// A screen draws the line that is edited, with its prompt, where the terminal's
// cursor is. It relies on what every terminal does: a line goes on in the next row,
// a cursor can be moved by rows and columns, and what is below can be erased.
type screen struct {
	w    io.Writer
	size func() (width, height int)

	width, height int // when it was drawn
	above, below  int // rows of what is drawn above and below the cursor
	prompt        string
	line          []rune
	cursor        int
}

// A row is one row of the terminal.
type row struct {
	text []byte
	hard bool // a line ends here; else the terminal itself goes on in the next row
}

// layout is a line in rows, with the cursor's place.
type layout struct {
	rows        []row
	row, column int
}

// arrange lays a line out. Behind each line end within it stands another prompt,
// under the first.
func arrange(prompt string, line []rune, cursor, width int) layout {
	a := arranger{width: max(width, 2)}
	for _, r := range prompt {
		a.put(string(r), Width(r))
	}
	further := continuation(a.column)
	for i, r := range line {
		if c, ok := byteOf(r); ok && c == '\n' {
			if i == cursor {
				a.layout.row, a.layout.column = len(a.rows), min(a.column, a.width-1)
			}
			a.end(true)
			for _, r := range further {
				a.put(string(r), 1)
			}
			continue
		}
		before := rune(0)
		if i > 0 {
			before = line[i-1]
		}
		text, columns := appearance(r, before)
		if i == cursor && strings.HasPrefix(text, inverse) {
			a.mark(1)
		} else if i == cursor {
			a.mark(columns)
		}
		a.put(text, columns)
	}
	if cursor >= len(line) {
		a.mark(1)
	}
	a.put(" ", 1) // the cursor is always on something, which it moves with
	a.end(true)
	return a.layout
}

// continuation is the prompt of the further rows of an entry, as wide as the first.
func continuation(width int) string {
	const dots = "...> "
	if width < len(dots) {
		return "> "[:min(width, 2)]
	}
	return strings.Repeat(" ", width-len(dots)) + dots
}

type arranger struct {
	layout
	width, column int // of the row that is being filled
	text          []byte
	last          int // columns of its last character
}

func (a *arranger) put(text string, width int) {
	if spelled, ok := strings.CutPrefix(text, inverse); ok {
		// Of several characters, between which a row may end.
		a.text = append(a.text, inverse...)
		for _, r := range strings.TrimSuffix(spelled, upright) {
			a.put(string(r), 1)
		}
		a.text = append(a.text, upright...)
		return
	}
	if a.column+width > a.width {
		a.end(false)
	}
	a.text = append(a.text, text...)
	a.column += width
	if width > 0 {
		a.last = width
	}
}

func (a *arranger) end(hard bool) {
	a.rows = append(a.rows, row{a.text, hard})
	a.text, a.column = nil, 0
}

// mark puts the cursor on a character that comes next, or, if it takes no column, on
// the one that it belongs to.
func (a *arranger) mark(columns int) {
	a.layout.row, a.layout.column = len(a.rows), a.column
	switch {
	case columns == 0:
		a.layout.column -= a.last
	case a.column+columns > a.width:
		a.layout.row, a.layout.column = a.layout.row+1, 0
	}
}

const (
	inverse = "\x1b[7m"
	upright = "\x1b[27m"
)

// appearance is how a character is shown, and in how many columns. What a terminal
// does not draw, or draws elsewhere, is spelled out. What merges with the character
// before it in some terminals and not in others is left out.
func appearance(r, before rune) (string, int) {
	if c, ok := byteOf(r); ok {
		switch {
		case c < ' ' || c == 0x7f:
			return inverse + "^" + string(rune(c^0x40)) + upright, 2
		default:
			text := fmt.Sprintf(`\x%02x`, c)
			return inverse + text + upright, len(text)
		}
	}
	switch {
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0x1f3fb && r <= 0x1f3ff && Width(before) == 2:
		return "", 0
	case !unicode.IsPrint(r):
		text := fmt.Sprintf("<%04X>", r)
		return inverse + text + upright, len(text)
	}
	return string(r), Width(r)
}

// draw puts the line in place of the one that was drawn before.
func (s *screen) draw(prompt string, line []rune, cursor int) {
	s.fit()
	l := arrange(prompt, line, cursor, s.width)
	first, last := s.window(l)
	var b bytes.Buffer
	s.erase(&b)
	for i := first; i <= last; i++ {
		b.Write(l.rows[i].text)
		if l.rows[i].hard && i < last {
			b.WriteString("\r\n")
		}
	}
	b.WriteByte('\r')
	if up := last - l.row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	if l.column > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", l.column)
	}
	s.above, s.below = l.row-first, last-l.row
	s.prompt, s.line, s.cursor = prompt, line, cursor
	s.write(b.Bytes())
}

// window chooses the rows around the cursor if there are more than the terminal has.
func (s *screen) window(l layout) (first, last int) {
	last = len(l.rows) - 1
	if s.height <= 0 || len(l.rows) <= s.height {
		return 0, last
	}
	first = min(max(l.row-s.height/2, 0), len(l.rows)-s.height)
	return first, first + s.height - 1
}

// erase leaves the cursor where the drawn line began.
func (s *screen) erase(b *bytes.Buffer) {
	b.WriteByte('\r')
	if s.above > 0 {
		fmt.Fprintf(b, "\x1b[%dA", s.above)
	}
	b.WriteString("\x1b[J")
	s.forget()
}

// remove takes the drawn line away.
func (s *screen) remove() {
	s.fit()
	var b bytes.Buffer
	s.erase(&b)
	s.write(b.Bytes())
}

// leave goes to the row below the drawn line, writing mark behind it.
func (s *screen) leave(prompt string, line []rune, mark string) {
	s.draw(prompt, line, len(line))
	s.write([]byte(mark + "\r\n"))
	s.forget()
}

// clear empties the terminal.
func (s *screen) clear() {
	s.forget()
	s.write([]byte("\x1b[H\x1b[2J"))
}

// fit takes note of another size of the terminal. Terminals keep lines whole when
// that changes, so what is drawn has the rows that it would have with that width.
func (s *screen) fit() {
	width, height := s.size()
	if width == s.width && height == s.height {
		return
	}
	s.width, s.height = width, height
	l := arrange(s.prompt, s.line, s.cursor, width)
	first, last := s.window(l)
	s.above, s.below = l.row-first, last-l.row
}

// forget says that nothing is drawn.
func (s *screen) forget() { s.above, s.below, s.prompt, s.line, s.cursor = 0, 0, "", nil, 0 }

// write is for a terminal: if it is gone there is nobody to tell.
func (s *screen) write(b []byte) { _, _ = s.w.Write(b) }
