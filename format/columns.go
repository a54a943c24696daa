package format

import (
	"reflect"
	"slices"
	"strings"

	"github.com/fatih/color"
)

// A Row is a result that the human form prints as a row of a table: cells in columns, two
// spaces apart.
type Row interface {
	Result
	// cells returns the row, or nil if this result is not a row.
	cells(s *style) []cell
}

// A cell is the content of one column in a row. Its text is printable.
type cell struct {
	text  string
	paint *color.Color // nil = none
	right bool         // aligned to the right; ignored for the last cell
	least int          // the minimum width of the column, to leave room for longer cells in later rows
	whole bool         // never cut: for errors, and for keys that people copy
	keep  bool         // an identifier, never cut: a row that is too long continues on another line instead
}

// columns lays out rows that arrive one by one. A column grows to the width of its widest cell so
// far and never shrinks. All rows are aligned only if they were measured in advance.
type columns struct {
	kind   reflect.Type // the type of the rows
	widths []int
	titles []string // still to be printed
	titled bool     // the table has titles, and all rows are measured before the first is printed
	keeps  bool     // a row has a cell with keep set
}

// gap is the number of spaces between two columns.
const gap = 2

// begin starts a new table, unless the previous rows have the same type as r.
func (c *columns) begin(r Row, s *style) {
	kind := reflect.TypeOf(r)
	if c.kind == kind {
		return
	}
	*c = columns{kind: kind}
	if t, ok := r.(interface{ titles(s *style) []string }); ok {
		c.titles, c.titled = t.titles(s), true
		for i, title := range c.titles {
			c.widen(i, Columns(title))
		}
	}
}

// measure makes the columns wide enough for a row. In a table without titles, measure ignores a row
// that takes several lines. Columns widened for such a row could make later rows take several lines
// too.
func (c *columns) measure(cells []cell, terminal int) {
	c.keeps = c.keeps || slices.ContainsFunc(cells, func(x cell) bool { return x.keep })
	if !c.titled && slices.Contains(lineBreaks(cells, nil, terminal), true) {
		return
	}
	for i, x := range cells {
		if width := max(Columns(x.text), x.least); !x.keep && !c.keeps || terminal == 0 || width <= x.maxWidth(terminal) {
			c.widen(i, width)
		}
	}
}

func (c *columns) widen(i, width int) {
	for len(c.widths) <= i {
		c.widths = append(c.widths, 0)
	}
	c.widths[i] = max(c.widths[i], width)
}

// maxColumn returns the maximum width of a column. A wider cell only shifts the rest of its row.
// terminal is the terminal's width, or 0 if there is no terminal.
func maxColumn(terminal int) int {
	if terminal == 0 {
		return 60
	}
	return terminal / 2
}

// maxWidth returns the maximum width of x's column. The column of an identifier can be wider than
// maxColumn, because its row can continue on another line.
func (x cell) maxWidth(terminal int) int {
	if x.keep && terminal > 0 {
		return terminal * 3 / 4
	}
	return maxColumn(terminal)
}

// continuation is the indentation of the second and later lines of a row, in columns.
const continuation = 4

// leastValue is the minimum width to which the last cell of a row with an identifier is cut. If there
// is less room, the cell begins a new line instead.
const leastValue = 16

// lineBreaks reports which cells of a row begin a new line because they do not fit on the terminal.
// It returns nil if terminal is 0, and if no cell has keep set: such a row never takes several
// lines. widths are the minimum widths of the columns.
func lineBreaks(cells []cell, widths []int, terminal int) []bool {
	if terminal == 0 || !slices.ContainsFunc(cells, func(x cell) bool { return x.keep }) {
		return nil
	}
	breaks := make([]bool, len(cells))
	column := 0
	for i, x := range cells {
		width := max(Columns(x.text), x.least)
		switch {
		case i == len(cells)-1 && !x.whole && !x.keep:
			width = min(width, leastValue)
		case i < len(widths):
			width = max(width, min(widths[i], x.maxWidth(terminal)))
		}
		if i > 0 && x.text != "" && column+width > terminal {
			breaks[i], column = true, continuation
		}
		column += width + gap
	}
	return breaks
}

// appendTitles appends the row of titles. cells is the first row below it; each title is aligned like
// its cell.
func (c *columns) appendTitles(dst []byte, cells []cell, terminal int) []byte {
	above := make([]cell, len(c.titles))
	for i, title := range c.titles {
		above[i] = cell{text: title, keep: c.keeps}
		if i < len(cells) {
			above[i].right = cells[i].right
		}
	}
	c.titles = nil
	return c.appendRow(dst, above, terminal)
}

// appendRow appends a row. terminal is the terminal's width, or 0 if there is no terminal. On a
// terminal, appendRow cuts the last cell so that the row does not wrap, unless the cell has whole
// or keep set.
func (c *columns) appendRow(dst []byte, cells []cell, terminal int) []byte {
	c.measure(cells, terminal)
	if c.titles != nil {
		dst = c.appendTitles(dst, cells, terminal)
	}
	breaks := lineBreaks(cells, c.widths, terminal)
	column, pad := 0, 0
	for i, x := range cells {
		if breaks != nil && breaks[i] {
			dst = append(dst, '\n')
			column, pad = 0, continuation
		}
		if i == len(cells)-1 && terminal > 0 && !x.whole && !x.keep {
			if used := (column + pad) % terminal; used > 0 {
				x.text = Cut(x.text, terminal-used)
			} else {
				x.text = Cut(x.text, terminal)
			}
		}
		width, fill := Columns(x.text), 0
		if i < len(c.widths) {
			fill = max(min(c.widths[i], x.maxWidth(terminal))-width, 0)
		}
		if x.right {
			pad += fill
		}
		if x.text != "" {
			dst = append(dst, strings.Repeat(" ", pad)...)
			dst = appendPainted(dst, x.paint, x.text)
			column, pad = column+pad+width, 0
		}
		if !x.right {
			pad += fill
		}
		pad += gap
	}
	return append(dst, '\n')
}

func appendPainted(dst []byte, paint *color.Color, text string) []byte {
	if paint != nil {
		text = paint.Sprint(text)
	}
	return append(dst, text...)
}

// Measure sets the widths of the columns, before any row is printed. Only the human form has columns.
// If the rows are not known yet, pass an example that is at least as wide as any of them, such as a
// row with the longest key.
func (p *Printer) Measure(rows ...Row) {
	s := &p.text.style
	s.columns = columns{}
	width, _ := s.size()
	for _, r := range rows {
		s.columns.begin(r, s)
		s.columns.measure(r.cells(s), width)
	}
}

func (w *writer) row(r Row) {
	width, _ := w.size()
	w.columns.begin(r, &w.style)
	w.out = w.columns.appendRow(w.out, r.cells(&w.style), width)
}

// The minimum widths of version columns and of age columns. They leave room for the versions and
// ages of later rows.
const (
	versionColumns = len("1696374425000:1:StateStore")
	ageColumns     = len("23h59m ago")
)
