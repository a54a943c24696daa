package repl

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/sscli/sscli/format"
)

// A screen draws the prompt and the line at the terminal's cursor. It relies only on what
// every terminal can do: wrap a long line, move the cursor by rows and columns, and erase
// everything below the cursor.
type screen struct {
	w    io.Writer
	size func() (width, height int)

	// What is drawn: the terminal's size when it was drawn, the number of rows above the cursor,
	// the prompt, the line, and the cursor's position in the line.
	width, height int
	above         int
	prompt        string
	line          []rune
	cursor        int
}

// A layout is a line split into terminal rows, and the cursor's position.
type layout struct {
	rows        [][]byte // a row before a line end ends with CR LF; the terminal wraps the other rows
	row, column int      // of the cursor

	width int    // of the terminal
	text  []byte // the unfinished row
	next  int    // the column of the next character
	last  int    // the width of the last character that is not a combining character
}

// arrange lays out line after prompt. It puts a continuation prompt after each newline in line.
func arrange(prompt string, line []rune, cursor, width int) layout {
	l := layout{width: max(width, 2)}
	for _, r := range prompt {
		l.put(string(r), format.Width(r))
	}
	further := continuation(l.next)
	for i, r := range line {
		if c, ok := byteOf(r); ok && c == '\n' {
			if i == cursor {
				l.row, l.column = len(l.rows), min(l.next, l.width-1)
			}
			l.endRow("\r\n")
			for _, r := range further {
				l.put(string(r), 1)
			}
			continue
		}
		before := rune(0)
		if i > 0 {
			before = line[i-1]
		}
		text, columns := appearance(r, before)
		if i == cursor && strings.HasPrefix(text, inverse) {
			l.placeCursor(1)
		} else if i == cursor {
			l.placeCursor(columns)
		}
		l.put(text, columns)
	}
	if cursor >= len(line) {
		l.placeCursor(1)
	}
	l.put(" ", 1) // room for the cursor after the last character
	l.endRow("")
	return l
}

// continuation returns the prompt for the second and later lines of an entry. width is the width of
// the first prompt; the continuation prompt is not wider.
func continuation(width int) string {
	const dots = "...> "
	if width < len(dots) {
		return "> "[:min(width, 2)]
	}
	return strings.Repeat(" ", width-len(dots)) + dots
}

// put appends text. columns is the width of text.
func (l *layout) put(text string, columns int) {
	if spelled, ok := strings.CutPrefix(text, inverse); ok {
		// A character that is spelled out takes several columns, and may be split between rows.
		l.text = append(l.text, inverse...)
		for _, r := range strings.TrimSuffix(spelled, upright) {
			l.put(string(r), 1)
		}
		l.text = append(l.text, upright...)
		return
	}
	if l.next+columns > l.width {
		l.endRow("")
	}
	l.text = append(l.text, text...)
	l.next += columns
	if columns > 0 {
		l.last = columns
	}
}

func (l *layout) endRow(lineEnd string) {
	l.rows = append(l.rows, append(l.text, lineEnd...))
	l.text, l.next = nil, 0
}

// placeCursor puts the cursor on the next character, whose width is columns. If the next character is a
// combining character, columns is 0, and the cursor is put on the character before it.
func (l *layout) placeCursor(columns int) {
	l.row, l.column = len(l.rows), l.next
	switch {
	case columns == 0:
		l.column -= l.last
	case l.next+columns > l.width:
		l.row, l.column = l.row+1, 0
	}
}

const (
	inverse = "\x1b[7m"
	upright = "\x1b[27m"
)

// appearance returns the text that shows the character r, and the width of this text. before is the
// character that precedes r. A character that terminals do not print, or that changes the order of
// other characters, is spelled out. Variation selectors, and skin tones after a wide character, are
// omitted, because only some terminals merge them with the preceding character.
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
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0x1f3fb && r <= 0x1f3ff && format.Width(before) == 2:
		return "", 0
	case !unicode.IsPrint(r):
		text := fmt.Sprintf("<%04X>", r)
		return inverse + text + upright, len(text)
	}
	return string(r), format.Width(r)
}

// draw erases the drawn line, and draws this prompt and line in its place.
func (s *screen) draw(prompt string, line []rune, cursor int) {
	s.fit()
	l := arrange(prompt, line, cursor, s.width)
	first, last := s.visibleRows(l)
	var b bytes.Buffer
	s.erase(&b)
	rows := bytes.Join(l.rows[first:last+1], nil)
	b.Write(bytes.TrimSuffix(rows, []byte("\r\n")))
	b.WriteByte('\r')
	if up := last - l.row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	if l.column > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", l.column)
	}
	s.above = l.row - first
	s.prompt, s.line, s.cursor = prompt, line, cursor
	s.write(b.Bytes())
}

// visibleRows returns the indexes of the first and the last row to draw. If the terminal has too few
// rows for all of them, visibleRows chooses the rows around the cursor.
func (s *screen) visibleRows(l layout) (first, last int) {
	last = len(l.rows) - 1
	if s.height <= 0 || len(l.rows) <= s.height {
		return 0, last
	}
	first = min(max(l.row-s.height/2, 0), len(l.rows)-s.height)
	return first, first + s.height - 1
}

// erase appends to b the sequences that erase the drawn line, and forgets the line.
func (s *screen) erase(b *bytes.Buffer) {
	b.WriteByte('\r')
	if s.above > 0 {
		fmt.Fprintf(b, "\x1b[%dA", s.above)
	}
	b.WriteString("\x1b[J")
	s.forget()
}

func (s *screen) remove() {
	s.fit()
	var b bytes.Buffer
	s.erase(&b)
	s.write(b.Bytes())
}

// leave draws the line for the last time, writes mark after it and moves to the next row.
func (s *screen) leave(prompt string, line []rune, mark string) {
	s.draw(prompt, line, len(line))
	s.write([]byte(mark + "\r\n"))
	s.forget()
}

func (s *screen) clear() {
	s.forget()
	s.write([]byte("\x1b[H\x1b[2J"))
}

// fit reads the terminal's size. If it has changed, the terminal has rewrapped the drawn
// line, and fit counts the rows that the line takes now.
func (s *screen) fit() {
	width, height := s.size()
	if width == s.width && height == s.height {
		return
	}
	s.width, s.height = width, height
	l := arrange(s.prompt, s.line, s.cursor, width)
	first, _ := s.visibleRows(l)
	s.above = l.row - first
}

func (s *screen) forget() { s.above, s.prompt, s.line, s.cursor = 0, "", nil, 0 }

// write ignores errors: if the terminal is gone, they cannot be reported.
func (s *screen) write(b []byte) { _, _ = s.w.Write(b) }
