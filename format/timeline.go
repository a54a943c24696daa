package format

import (
	"strings"
	"time"
)

// Timeline is the chart at the end of `lock trace --timeline`: who held which lock when.
type Timeline struct {
	From   time.Time   `json:"from"`
	To     time.Time   `json:"to"`
	Locks  []LockLanes `json:"locks"`
	Guards []GuardLane `json:"guards"`
}

// LockLanes are a lock and a lane for each of its holders, in the order in which they came.
type LockLanes struct {
	Name    string       `json:"name"`
	Holders []HolderLane `json:"holders"`
	Gaps    []Interval   `json:"gaps"` // when the lock was not watched
}

// HolderLane is when a holder had a lock.
type HolderLane struct {
	Holder  string
	Unknown bool // Holder is not known
	Holds   []Hold
}

// Hold is an interval in which a lock was held.
type Hold struct {
	Interval
	Open     bool        `json:"open,omitzero"` // it began earlier
	End      string      `json:"end,omitzero"`  // released, expired, deleted, changed_hands, gap or lost; empty: still held
	Renewals []time.Time `json:"renewals"`
}

// Interval is a time from one moment to another.
type Interval struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// GuardLane is a key that is no lock, and its writes.
type GuardLane struct {
	Key     string      `json:"key"`
	Writes  []time.Time `json:"writes"`
	Removed []time.Time `json:"removed"`
	Gaps    []Interval  `json:"gaps"` // when the key was not watched
}

func (t Timeline) fields(o *objectWriter) { o.result("lock_timeline", t) }

func (h HolderLane) fields(o *objectWriter) {
	o.add("holder", when(!h.Unknown, h.Holder))
	o.add("holds", h.Holds)
}

// raw writes a line for each hold, gap and write: `hold`, the lock, the holder, from, to, how
// it ended, and the number of renewals; `gap`, the lock or key, from, to; `write` or
// `removal`, the key, and when.
func (t Timeline) raw(dst []byte) []byte {
	gaps := func(name string, all []Interval) {
		for _, g := range all {
			dst = appendRecord(dst, "gap", name, g.From, g.To)
		}
	}
	for _, k := range t.Locks {
		for _, h := range k.Holders {
			for _, d := range h.Holds {
				dst = appendRecord(dst, "hold", k.Name, when(!h.Unknown, h.Holder), d.From, d.To, textOr(d.End), len(d.Renewals))
			}
		}
		gaps(k.Name, k.Gaps)
	}
	for _, g := range t.Guards {
		for _, at := range g.Writes {
			dst = appendRecord(dst, "write", g.Key, at)
		}
		for _, at := range g.Removed {
			dst = appendRecord(dst, "removal", g.Key, at)
		}
		gaps(g.Key, g.Gaps)
	}
	return dst
}

// A lane is a row of the chart, drawn as text or as SVG: holds, then gaps, then writes.
type lane struct {
	Label  string
	IsName bool // Label is the name of a lock or a key; otherwise a holder
	Color  int  // of the holds
	Holds  []Hold
	Gaps   []Interval
	Shared int  // lanes up to this one that have the same gaps; 0: a later lane counts them
	IsLast bool // the last lane of a lock

	Writes, Removed []time.Time
}

// lanes returns the rows of the chart from top to bottom.
func (t Timeline) lanes() []lane {
	var lanes []lane
	for i, k := range t.Locks {
		lanes = append(lanes, lane{Label: label(k.Name), IsName: true})
		for j, h := range k.Holders {
			l := lane{Label: "(unknown)", Color: i + j, Holds: h.Holds, Gaps: k.Gaps}
			if !h.Unknown {
				l.Label = label(h.Holder)
			}
			lanes = append(lanes, l)
		}
		last := &lanes[len(lanes)-1]
		last.Gaps, last.Shared, last.IsLast = k.Gaps, max(len(k.Holders), 1), true
	}
	for _, g := range t.Guards {
		lanes = append(lanes, lane{Label: label(g.Key), IsName: true, Gaps: g.Gaps, Shared: 1, Writes: g.Writes, Removed: g.Removed})
	}
	return lanes
}

// maxLabel is how many columns a name or a holder has in the chart.
const maxLabel = 24

func label(name string) string { return Cut(Word(name), maxLabel) }

// A mark is a character of the chart and what it means.
type mark struct {
	char    rune
	meaning string
}

// marks are in the order of the legend. The ends of a Hold that have a mark are meanings.
var marks = [...]mark{
	{'├', "acquired"}, {'─', "held"}, {'┼', "renewed"}, {'┤', "released"}, {'╳', "expired"},
	{'?', "deleted"}, {'▶', "changed hands"}, {'░', "not watched"}, {'▲', "written"}, {'△', "removed"},
}

// mark returns the mark for how the hold ended, or 0.
func (d Hold) mark() rune {
	for _, m := range marks {
		if m.meaning == strings.ReplaceAll(d.End, "_", " ") {
			return m.char
		}
	}
	return 0
}

// duration returns how long the timeline is, for a scale: it is not 0.
func (t Timeline) duration() time.Duration { return max(t.To.Sub(t.From), time.Millisecond) }

// human draws the lanes as text, with the time across.
func (t Timeline) human(dst []byte, s *style) []byte {
	lanes, labels := t.lanes(), len("  ")
	for i := range lanes {
		if !lanes[i].IsName {
			lanes[i].Label = "  " + lanes[i].Label
		}
		labels = max(labels, Columns(lanes[i].Label))
	}
	width, _ := s.size()
	if width == 0 {
		width = 80
	}
	c := textChart{Timeline: t, columns: max(width-labels-3, 10), used: make(map[rune]bool)}
	line := func(label string, row []rune) {
		text := label + strings.Repeat(" ", labels-Columns(label)+2) + string(row)
		dst = append(append(dst, strings.TrimRight(text, " ")...), '\n')
	}
	line("", c.axis())
	for _, l := range lanes {
		line(l.Label, c.row(l))
	}
	var legend []string
	for _, m := range marks {
		if c.used[m.char] {
			legend = append(legend, string(m.char)+" "+m.meaning)
		}
	}
	if len(legend) == 0 {
		return dst
	}
	return append(append(dst, s.faint.Sprint(strings.Join(legend, "  "))...), '\n')
}

// A textChart is a timeline that is drawn as text.
type textChart struct {
	Timeline
	columns int
	used    map[rune]bool // marks
}

func (c *textChart) blank() []rune { return []rune(strings.Repeat(" ", c.columns)) }

// column returns where a time is.
func (c *textChart) column(at time.Time) int {
	column := int64(c.columns-1) * int64(at.Sub(c.From)) / int64(c.duration())
	return min(max(int(column), 0), c.columns-1)
}

func (c *textChart) row(l lane) []rune {
	row := c.blank()
	put := func(mark rune, from, to time.Time) {
		for i := c.column(from); i <= c.column(to); i++ {
			row[i], c.used[mark] = mark, true
		}
	}
	for _, d := range l.Holds {
		put('─', d.From, d.To)
		for _, at := range d.Renewals {
			put('┼', at, at)
		}
		if !d.Open {
			put('├', d.From, d.From)
		}
		if mark := d.mark(); mark != 0 {
			put(mark, d.To, d.To)
		}
	}
	for _, g := range l.Gaps {
		put('░', g.From, g.To)
	}
	for _, at := range l.Writes {
		put('▲', at, at)
	}
	for _, at := range l.Removed {
		put('△', at, at)
	}
	return row
}

// axis has the first and the last time, and how long it is between them.
func (c *textChart) axis() []rune {
	const clock = "15:04:05"
	row := c.blank()
	first := c.From.UTC().Format(clock)
	last := Span(c.To.Sub(c.From)) + " to " + c.To.UTC().Format(clock)
	copy(row, []rune(first))
	if len(first)+len(last)+2 <= c.columns {
		copy(row[c.columns-len(last):], []rune(last))
	}
	return row
}
