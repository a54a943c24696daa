package format

import (
	"slices"
	"strings"
	"time"
)

// Timeline is the chart at the end of `lock trace --timeline`. It shows who held which lock when.
type Timeline struct {
	From, To time.Time
	Locks    []Lane
	Guards   []Lane // guarded keys
}

// A Lane holds the history of a lock, of a guarded key, or of one holder of a lock.
type Lane struct {
	Name    string      // of the lock, the key or the holder
	Unknown bool        // the holder is not known
	Holders []Lane      // of a lock: its holders, in the order in which they first held it
	Holds   []Hold      // of a holder: the intervals in which it held the lock
	Writes  []time.Time // of a guarded key
	Removed []time.Time // of a guarded key: when it was deleted or expired
	Gaps    []Interval  // when the lock or the key was not watched
}

// Hold is an interval in which a lock was held.
type Hold struct {
	Interval
	Open     bool        `json:"open,omitzero"` // the hold began before Interval.From
	End      string      `json:"end,omitzero"`  // released, expired, deleted, changed_hands, gap or lost; empty = still held
	Renewals []time.Time `json:"renewals"`
}

// An Interval is the time between two moments.
type Interval struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

func (t Timeline) fields(o *objectWriter) {
	locks, guards := list{}, list{}
	for _, k := range t.Locks {
		holders := list{}
		for _, h := range k.Holders {
			holders = append(holders, object{{"holder", h.holder()}, {"holds", treeOf(h.Holds)}})
		}
		locks = append(locks, object{{"name", k.Name}, {"holders", holders}, {"gaps", treeOf(k.Gaps)}})
	}
	for _, g := range t.Guards {
		guards = append(guards, object{{"key", g.Name}, {"writes", treeOf(g.Writes)}, {"removed", treeOf(g.Removed)}, {"gaps", treeOf(g.Gaps)}})
	}
	object{{"op", "lock_timeline"}, {"from", t.From}, {"to", t.To}, {"locks", locks}, {"guards", guards}}.fields(o)
}

// holder returns the name of a holder, or nil if it is not known.
func (l Lane) holder() any { return when(!l.Unknown, l.Name) }

// raw writes a line for each of these:
//   - a hold: `hold`, the lock, the holder, when it began and ended, how it ended, and the number of renewals
//   - a write or removal: `write` or `removal`, the key, and the time
//   - a gap: `gap`, the lock or key, and when the gap began and ended
func (t Timeline) raw(w *writer) {
	for _, l := range slices.Concat(t.Locks, t.Guards) {
		for _, h := range l.Holders {
			for _, d := range h.Holds {
				w.record("hold", l.Name, h.holder(), d.From, d.To, nonEmpty(d.End), len(d.Renewals))
			}
		}
		for _, at := range l.Writes {
			w.record("write", l.Name, at)
		}
		for _, at := range l.Removed {
			w.record("removal", l.Name, at)
		}
		for _, g := range l.Gaps {
			w.record("gap", l.Name, g.From, g.To)
		}
	}
}

// A row is one line of the chart. It is drawn as text or as SVG.
type row struct {
	label  string
	holder bool // label is a holder, not the name of a lock or key
	color  int
	marks  []mark // a later mark covers an earlier one
}

// A mark is a character in a row. It shows what happened at a time or during an interval.
type mark struct {
	Interval
	char rune
}

// legend holds the characters of marks and their meanings. The chart draws the end of a Hold only if
// legend has a character for Hold.End.
var legend = [...]struct {
	char    rune
	meaning string
}{
	{'├', "acquired"}, {'─', "held"}, {'┼', "renewed"}, {'┤', "released or deleted"}, {'╳', "expired"},
	{'?', "deleted"}, {'▶', "changed hands"}, {'░', "not watched"}, {'▲', "written"}, {'△', "removed"},
}

// rows returns the rows of the chart from top to bottom.
func (t Timeline) rows() []row {
	var rows []row
	for i, k := range t.Locks {
		rows = append(rows, row{label: label(k.Name)})
		for j, h := range k.Holders {
			r := row{label: "(unknown)", holder: true, color: i + j}
			if !h.Unknown {
				r.label = label(h.Name)
			}
			h.Gaps = k.Gaps
			r.marks = h.marks()
			rows = append(rows, r)
		}
		if len(k.Holders) == 0 {
			rows[len(rows)-1].marks = k.marks()
		}
	}
	for _, g := range t.Guards {
		rows = append(rows, row{label: label(g.Name), marks: g.marks()})
	}
	return rows
}

// maxLabel is the maximum width of a label in the chart, in columns.
const maxLabel = 24

func label(name string) string { return Cut(Word(name), maxLabel) }

func (l Lane) marks() []mark {
	var marks []mark
	at := func(char rune, times ...time.Time) {
		for _, at := range times {
			marks = append(marks, mark{Interval{at, at}, char})
		}
	}
	for _, d := range l.Holds {
		marks = append(marks, mark{d.Interval, '─'})
		at('┼', d.Renewals...)
		if !d.Open {
			at('├', d.From)
		}
		for _, m := range legend {
			if m.meaning == whatText(d.End) {
				at(m.char, d.To)
			}
		}
	}
	for _, g := range l.Gaps {
		marks = append(marks, mark{g, '░'})
	}
	at('▲', l.Writes...)
	at('△', l.Removed...)
	return marks
}

func hasMark(rows []row, char rune) bool {
	return slices.ContainsFunc(rows, func(r row) bool {
		return slices.ContainsFunc(r.marks, func(m mark) bool { return m.char == char })
	})
}

// duration returns the length of the timeline. It returns at least a millisecond, because the chart
// divides by it.
func (t Timeline) duration() time.Duration { return max(t.To.Sub(t.From), time.Millisecond) }

// human draws the rows as text. Time runs from left to right.
func (t Timeline) human(w *writer) {
	rows, labels := t.rows(), len("  ")
	for i := range rows {
		if rows[i].holder {
			rows[i].label = "  " + rows[i].label
		}
		labels = max(labels, Columns(rows[i].label))
	}
	width, _ := w.size()
	if width == 0 {
		width = 80
	}
	columns := max(width-labels-3, 10)
	line := func(label, text string) {
		text = label + strings.Repeat(" ", labels-Columns(label)+2) + text
		w.print(strings.TrimRight(text, " "), "\n")
	}
	line("", t.axis(columns))
	for _, r := range rows {
		line(r.label, t.text(r, columns))
	}
	var meanings []string
	for _, m := range legend {
		if hasMark(rows, m.char) {
			meanings = append(meanings, string(m.char)+" "+m.meaning)
		}
	}
	if len(meanings) > 0 {
		w.print(w.faint.Sprint(strings.Join(meanings, "  ")), "\n")
	}
}

// axis returns the line above the chart: the first time on the left, and the length of the timeline and
// the last time on the right. If that does not fit, it returns only the first time.
func (t Timeline) axis(columns int) string {
	const clock = "15:04:05Z"
	first, last := t.From.UTC().Format(clock), Span(t.To.Sub(t.From))+" to "+t.To.UTC().Format(clock)
	if space := columns - len(first) - len(last); space >= 2 {
		return first + strings.Repeat(" ", space) + last
	}
	return first
}

// text returns a line with the marks of a row. columns is the width of the line.
func (t Timeline) text(r row, columns int) string {
	column := func(at time.Time) int {
		column := int64(columns-1) * int64(at.Sub(t.From)) / int64(t.duration())
		return min(max(int(column), 0), columns-1)
	}
	text := []rune(strings.Repeat(" ", columns))
	for _, m := range r.marks {
		for i := column(m.From); i <= column(m.To); i++ {
			text[i] = m.char
		}
	}
	return string(text)
}
