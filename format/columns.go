package format

import (
	"reflect"
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

// A cell is a cell of a row. Its text is printable.
type cell struct {
	text  string
	paint *color.Color // nil: none
	right bool         // aligned to the right; ignored for the last cell
	least int          // the minimum width, for longer cells below it
	whole bool         // never cut: for errors, and for keys that people copy
	cut   bool         // cut to the room that the other columns leave; in all rows or none
}

// columns lays out rows that arrive one by one. A column becomes as wide as its widest cell
// so far, and never narrower: only rows that were measured in advance are always aligned.
type columns struct {
	kind   reflect.Type // of the rows
	widths []int
	titles []string // still to be printed
}

// gap separates two columns.
const gap = 2

// begin starts a table, unless rows of this kind are being printed already.
func (c *columns) begin(r Row, s *style) {
	kind := reflect.TypeOf(r)
	if c.kind == kind {
		return
	}
	*c = columns{kind: kind}
	if t, ok := r.(interface{ titles(s *style) []string }); ok {
		c.titles = t.titles(s)
		for i, title := range c.titles {
			c.widen(i, Columns(title))
		}
	}
}

// measure makes the columns wide enough for rows.
func (c *columns) measure(cells []cell) {
	for i, x := range cells {
		c.widen(i, max(Columns(x.text), x.least))
	}
}

func (c *columns) widen(i, width int) {
	for len(c.widths) <= i {
		c.widths = append(c.widths, 0)
	}
	c.widths[i] = max(c.widths[i], width)
}

// maxColumn returns the maximum width of a column. A wider cell only shifts the rest of its row.
func maxColumn(terminal int) int {
	if terminal == 0 {
		return 60
	}
	return terminal / 2
}

// leastRoom is the minimum width to which a cell is cut. On a narrower terminal the row wraps.
const leastRoom = 24

// room returns how wide column i can be, so that all columns fit on the terminal.
func (c *columns) room(i, terminal int) int {
	room := terminal
	for j, width := range c.widths {
		if j != i {
			room -= min(width, maxColumn(terminal)) + gap
		}
	}
	return max(room, leastRoom)
}

// appendRow appends a row. On a terminal of the given width, if that is not 0, it cuts the
// last cell rather than let it wrap.
func (c *columns) appendRow(dst []byte, cells []cell, terminal int) []byte {
	c.measure(cells)
	if titles := c.titles; titles != nil {
		c.titles = nil
		above := make([]cell, len(titles))
		for i, title := range titles {
			above[i] = cell{text: title}
			if i < len(cells) {
				above[i].right, above[i].cut = cells[i].right, cells[i].cut
			}
		}
		dst = c.appendRow(dst, above, terminal)
	}
	column, pad := 0, 0
	for i, x := range cells {
		if i == len(cells)-1 && terminal > 0 && !x.whole {
			if used := (column + pad) % terminal; used > 0 {
				x.text = Cut(x.text, terminal-used)
			} else {
				x.text = Cut(x.text, terminal)
			}
		}
		room := maxColumn(terminal)
		if x.cut && terminal > 0 {
			room = c.room(i, terminal)
			x.text = Cut(x.text, room)
		}
		width := Columns(x.text)
		fill := max(min(c.widths[i], room)-width, 0)
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
// If the rows are not known yet, pass an example of the widest, such as a row with the longest key.
func (p *Printer) Measure(rows ...Row) {
	s := &p.text.style
	s.columns = columns{}
	for _, r := range rows {
		s.columns.begin(r, s)
		s.columns.measure(r.cells(s))
	}
}

// row writes a row of a table.
func (w *writer) row(r Row) {
	width, _ := w.size()
	w.columns.begin(r, &w.style)
	w.out = w.columns.appendRow(w.out, r.cells(&w.style), width)
}

// The usual widths of a version and an age, for rows without them that precede rows with them.
const (
	versionColumns = len("1696374425000:1:StateStore")
	ageColumns     = len("23h59m ago")
)

// isWide reports whether a row has room for a version besides a key and a value.
func (s *style) isWide() bool {
	width, _ := s.size()
	return width == 0 || width >= 100
}
