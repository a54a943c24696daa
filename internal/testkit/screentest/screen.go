// Package screentest provides a terminal in memory, for tests of what a user sees. It
// prints, wraps, scrolls, obeys the escape sequences that sscli writes, and rewraps long
// lines when its size changes, as most terminals do. [Screen.Fault] returns an error about the
// first output that a Screen rejects.
package screentest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// A Screen is a terminal and its scrollback. Its methods may be called by several
// goroutines at once.
type Screen struct {
	mu            sync.Mutex
	width, height int
	before        struct{ width, height int } // the size before the last Resize; what was written for it may come late
	lines         []line                      // scrollback and visible rows
	top           int                         // index of the first visible row
	row, column   int                         // cursor position; column is width after the last cell was filled
	rest          []byte                      // an incomplete character or sequence
	pasting       bool                        // bracketed paste is on
	noWrap        bool                        // a full line does not wrap
	hidden        bool                        // the cursor is hidden
	covered       *covered                    // the main screen while the alternate screen is shown; nil = the main screen is shown
	escapes       bool                        // an escape sequence has been written
	fault         error
	changed       chan struct{} // closed and replaced at each change
}

// covered is the state of the main screen while the alternate screen is shown.
type covered struct {
	lines            []line
	top, row, column int
}

// A line is a row; if it is wrapped, the next row continues it.
type line struct {
	cells   []cell
	wrapped bool
}

// A cell is a character and its combining characters. An empty cell follows a wide character.
type cell string

// New returns an empty screen.
func New(width, height int) *Screen {
	return &Screen{width: width, height: height, lines: make([]line, 1), changed: make(chan struct{})}
}

// Write displays bytes as a terminal does. A line feed moves down and keeps the column.
// The error is always nil.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, b...)
	for len(s.rest) > 0 {
		n := s.step(s.rest)
		if n == 0 {
			break
		}
		s.rest = s.rest[n:]
	}
	s.notify()
	return len(b), nil
}

func (s *Screen) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// step displays the character or sequence at the beginning of b and returns its length,
// or 0 if it is incomplete.
func (s *Screen) step(b []byte) int {
	switch c := b[0]; {
	case c == 0x1b:
		s.escapes = true
		return s.sequence(b)
	case c == '\r':
		s.column = 0
	case c == '\n':
		s.down()
	case c == '\b':
		s.column = max(min(s.column, s.width-1)-1, 0)
	case c == '\t':
		s.column = min((s.column/8+1)*8, s.width-1)
	case c == '\a':
	case c < ' ' || c == 0x7f:
		s.fail("control character %#x", c)
	case !utf8.FullRune(b):
		return 0
	default:
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError {
			s.fail("not UTF-8: %x", b[:n])
		}
		s.put(r)
		return n
	}
	return 1
}

func (s *Screen) fail(format string, args ...any) {
	if s.fault == nil {
		s.fault = fmt.Errorf(format, args...)
	}
}

func (s *Screen) down() {
	s.row++
	for s.row >= len(s.lines) {
		s.lines = append(s.lines, line{})
	}
	s.top = max(s.top, s.row-s.height+1)
}

func columns(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff:
		return 0
	case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

func (s *Screen) put(r rune) {
	n := columns(r)
	if n == 0 {
		if l := s.lines[s.row].cells; s.column > 0 && s.column <= len(l) {
			i := s.column - 1
			if l[i] == "" && i > 0 {
				i--
			}
			l[i] += cell(r)
		}
		return
	}
	if s.column+n > s.width && s.noWrap {
		s.column = s.width - n
	}
	if s.column+n > s.width {
		s.lines[s.row].wrapped = true
		s.down()
		s.column = 0
	}
	l := &s.lines[s.row]
	for len(l.cells) < s.column+n {
		l.cells = append(l.cells, " ")
	}
	l.cells[s.column] = cell(r)
	if n == 2 {
		l.cells[s.column+1] = ""
	}
	s.column += n
}

// sequence executes an escape sequence and returns its length, or 0 if it is incomplete.
func (s *Screen) sequence(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != '[' {
		s.fail("sequence ESC %q", b[1])
		return 2
	}
	end := 2
	for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
		end++
	}
	if end == len(b) {
		return 0
	}
	parameters := string(b[2:end])
	n, err := strconv.Atoi(parameters)
	if parameters == "" {
		n, err = 0, nil
	}
	final := b[end]
	if final == 'm' {
		return end + 1 // colors and other attributes are ignored
	}
	column := min(s.column, s.width-1)
	switch {
	case parameters == "?2004" && (final == 'h' || final == 'l'):
		s.pasting = final == 'h'
	case parameters == "?7" && (final == 'h' || final == 'l'):
		s.noWrap = final == 'l'
	case parameters == "?25" && (final == 'h' || final == 'l'):
		s.hidden = final == 'l'
	case parameters == "?1049" && (final == 'h' || final == 'l'):
		s.alternate(final == 'h')
	case final == 'H' && strings.Contains(parameters, ";"):
		s.position(parameters)
	case err != nil:
		s.fail("sequence %q", b[:end+1])
	case final == 'A':
		s.row = max(s.row-max(n, 1), s.top)
	case final == 'B':
		s.row = min(s.row+max(n, 1), s.top+s.height-1)
	case final == 'C':
		s.column = min(column+max(n, 1), s.width-1)
	case final == 'D':
		s.column = max(column-max(n, 1), 0)
	case final == 'H' && n == 0:
		s.row, s.column = s.top, 0
	case final == 'K' && n == 0 && s.noWrap:
		s.cut(column)
	case final == 'K' && (n == 0 || n == 2):
		s.cut(s.column * (2 - n) / 2)
	case final == 'J' && n == 0:
		s.cut(s.column)
		s.lines = s.lines[:s.row+1]
	case final == 'J' && n == 2:
		s.lines = append(s.lines[:s.top], make([]line, s.row-s.top+1)...)
	default:
		s.fail("sequence %q", b[:end+1])
	}
	for s.row >= len(s.lines) {
		s.lines = append(s.lines, line{})
	}
	return end + 1
}

// alternate shows an empty alternate screen if show is true, and otherwise the main screen again.
func (s *Screen) alternate(show bool) {
	switch {
	case show && s.covered == nil:
		s.covered = &covered{s.lines, s.top, s.row, s.column}
		s.lines, s.top, s.row, s.column = make([]line, 1), 0, 0, 0
	case !show && s.covered != nil:
		c := s.covered
		s.lines, s.top, s.row, s.column, s.covered = c.lines, c.top, c.row, c.column, nil
		s.rewrap()
	}
}

// position moves the cursor to row;column, counted from 1.
func (s *Screen) position(parameters string) {
	first, second, _ := strings.Cut(parameters, ";")
	row, err := strconv.Atoi(first)
	column, err2 := strconv.Atoi(second)
	if err != nil || err2 != nil || row < 1 || row > max(s.height, s.before.height) || column < 1 || column > max(s.width, s.before.width) {
		s.fail("cursor position %q on a screen of %d rows and %d columns", parameters, s.height, s.width)
		return
	}
	s.row, s.column = s.top+min(row, s.height)-1, min(column, s.width)-1
}

func (s *Screen) cut(column int) {
	l := &s.lines[s.row]
	l.cells, l.wrapped = l.cells[:min(column, len(l.cells))], false
}

// Resize changes the size. It rewraps long lines if the main screen is shown, and cuts long lines if the
// alternate screen is shown.
func (s *Screen) Resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before.width, s.before.height = s.width, s.height
	s.width, s.height = width, height
	if s.covered == nil {
		s.rewrap()
	} else {
		s.lines = s.lines[:min(len(s.lines), height)]
		for i := range s.lines {
			s.lines[i].cells = s.lines[i].cells[:min(len(s.lines[i].cells), width)]
		}
		s.row, s.column = min(s.row, len(s.lines)-1), min(s.column, width)
	}
	s.notify()
}

// rewrap splits all lines into rows of the current width again.
func (s *Screen) rewrap() {
	old, oldRow, oldColumn := s.lines, s.row, s.column
	s.lines = nil
	for i := 0; i < len(old); {
		var whole []cell
		cursor := -1
		for {
			if i == oldRow {
				cursor = len(whole) + oldColumn
			}
			whole = append(whole, old[i].cells...)
			i++
			if i == len(old) || !old[i-1].wrapped {
				break
			}
		}
		s.wrap(whole, cursor)
	}
	s.top = max(len(s.lines)-s.height, 0)
}

// wrap appends a line, split into rows. cursor is the index of the cell under the cursor, or negative
// if the cursor is on another line.
func (s *Screen) wrap(whole []cell, cursor int) {
	var l line
	for i, c := range whole {
		n := 1
		if i+1 < len(whole) && whole[i+1] == "" {
			n = 2
		}
		if c != "" && len(l.cells)+n > s.width {
			l.wrapped = true
			s.lines = append(s.lines, l)
			l = line{}
		}
		if i == cursor {
			s.row, s.column = len(s.lines), len(l.cells)
		}
		l.cells = append(l.cells, c)
	}
	if cursor >= len(whole) {
		s.row, s.column = len(s.lines), min(len(l.cells)+cursor-len(whole), s.width)
	}
	s.lines = append(s.lines, l)
}

// String returns all lines, including the scrollback, without trailing spaces. Wrapped
// lines are joined.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text(0, true)
}

// Rows returns the visible rows, without trailing spaces.
func (s *Screen) Rows() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(s.text(s.top, false), "\n")
}

func (s *Screen) text(from int, whole bool) string {
	var b, l strings.Builder
	for i, line := range s.lines[from:] {
		for _, c := range line.cells {
			l.WriteString(string(c))
		}
		if line.wrapped && whole && from+i+1 < len(s.lines) {
			continue
		}
		b.WriteString(strings.TrimRight(l.String(), " "))
		b.WriteByte('\n')
		l.Reset()
	}
	return strings.TrimRight(b.String(), "\n")
}

// Cursor returns the cursor's position among the visible rows, counted from 0.
func (s *Screen) Cursor() (column, row int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(s.column, s.width-1), s.row - s.top
}

// Pasting reports whether bracketed paste is on.
func (s *Screen) Pasting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pasting
}

// Alternate reports whether the alternate screen is shown.
func (s *Screen) Alternate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.covered != nil
}

// Plain reports whether the terminal is in its normal state: it shows the main screen and
// the cursor, and wraps long lines.
func (s *Screen) Plain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.covered == nil && !s.hidden && !s.noWrap
}

// Fault returns an error about the first output that the Screen rejected: an unknown sequence or
// control character, invalid UTF-8, or a cursor position off the screen, also off the screen before the last
// Resize.
func (s *Screen) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// Await waits until holds returns true. It calls holds immediately and after each change. If ctx
// is done first, Await returns context.Cause(ctx).
func (s *Screen) Await(ctx context.Context, holds func(*Screen) bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if holds(s) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Escapes reports whether any escape sequence was written.
func (s *Screen) Escapes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.escapes
}
