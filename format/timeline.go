package format

import (
	"strings"
	"time"
)

// Timeline is the chart at the end of `lock trace --timeline`: who held which lock when.
type Timeline struct {
	From, To time.Time
	Locks    []LockLanes
	Guards   []GuardLane
}

// LockLanes are a lock and a lane for each of its holders, in the order in which they came.
type LockLanes struct {
	Name    string
	Holders []HolderLane
	Gaps    []Interval // when it was not watched
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
	Open     bool   // it began earlier
	End      string // released, expired, deleted, changed_hands, gap or lost; empty: still held
	Renewals []time.Time
}

// Interval is a time from one moment to another.
type Interval struct{ From, To time.Time }

// GuardLane is a key that is no lock, and its writes.
type GuardLane struct {
	Key             string
	Writes, Removed []time.Time
	Gaps            []Interval
}

func (t Timeline) fields() object {
	times := func(all []time.Time) list {
		l := make(list, len(all))
		for i, at := range all {
			l[i] = rfc3339(at)
		}
		return l
	}
	intervals := func(all []Interval) list {
		l := make(list, len(all))
		for i, g := range all {
			l[i] = object{{"from", rfc3339(g.From)}, {"to", rfc3339(g.To)}}
		}
		return l
	}
	locks, guards := list{}, list{}
	for _, k := range t.Locks {
		holders := list{}
		for _, h := range k.Holders {
			holds := list{}
			for _, d := range h.Holds {
				holds = append(holds, object{
					{"from", rfc3339(d.From)}, {"to", rfc3339(d.To)}, {"open", when(d.Open, true)}, {"end", nonEmpty(d.End)}, {"renewals", times(d.Renewals)},
				})
			}
			holders = append(holders, object{{"holder", when(!h.Unknown, h.Holder)}, {"holds", holds}})
		}
		locks = append(locks, object{{"name", k.Name}, {"holders", holders}, {"gaps", intervals(k.Gaps)}})
	}
	for _, g := range t.Guards {
		guards = append(guards, object{{"key", g.Key}, {"writes", times(g.Writes)}, {"removed", times(g.Removed)}, {"gaps", intervals(g.Gaps)}})
	}
	return object{{"op", "lock_timeline"}, {"from", rfc3339(t.From)}, {"to", rfc3339(t.To)}, {"locks", locks}, {"guards", guards}}
}

// raw writes a line for each hold, gap and write: `hold`, the lock, the holder, from, to, how
// it ended, and the number of renewals; `gap`, the lock or key, from, to; `write` or
// `removal`, the key, and when.
func (t Timeline) raw(dst []byte) []byte {
	line := func(words ...string) { dst = append(append(dst, strings.Join(words, "\t")...), '\n') }
	gaps := func(name string, all []Interval) {
		for _, g := range all {
			line("gap", Escape(name), rfc3339(g.From), rfc3339(g.To))
		}
	}
	for _, k := range t.Locks {
		for _, h := range k.Holders {
			holder := Escape(h.Holder)
			if h.Unknown {
				holder = "-"
			}
			for _, d := range h.Holds {
				end := d.End
				if end == "" {
					end = "-"
				}
				line("hold", Escape(k.Name), holder, rfc3339(d.From), rfc3339(d.To), end, string(appendJSON(nil, len(d.Renewals))))
			}
		}
		gaps(k.Name, k.Gaps)
	}
	for _, g := range t.Guards {
		for _, at := range g.Writes {
			line("write", Escape(g.Key), rfc3339(at))
		}
		for _, at := range g.Removed {
			line("removal", Escape(g.Key), rfc3339(at))
		}
		gaps(g.Key, g.Gaps)
	}
	return dst
}

// A mark is a character of the chart and what it means.
type mark struct {
	char    rune
	meaning string
}

// marks are in the order of the legend.
var marks = [...]mark{
	{'├', "acquired"}, {'─', "held"}, {'┼', "renewed"}, {'┤', "released"}, {'╳', "expired"},
	{'?', "deleted"}, {'▶', "changed hands"}, {'░', "not watched"}, {'▲', "written"}, {'△', "removed"},
}

const (
	markAcquired = iota
	markHeld
	markRenewed
	markReleased
	markExpired
	markDeleted
	markChanged
	markGap
	markWritten
	markRemoved
)

// endMark returns the mark for how a hold ended, and whether there is one.
func endMark(end string) (int, bool) {
	switch end {
	case "released":
		return markReleased, true
	case "expired":
		return markExpired, true
	case "deleted":
		return markDeleted, true
	case "changed_hands":
		return markChanged, true
	}
	return 0, false
}

// mostLabel is how many columns a name or a holder has in the chart.
const mostLabel = 24

func label(text string) string { return Cut(text, mostLabel) }

func (h HolderLane) label() string {
	if h.Unknown {
		return "(unknown)"
	}
	return label(Word(h.Holder))
}

// human draws a lane for each holder and key, with the time across.
func (t Timeline) human(dst []byte, s *style) []byte {
	labels := len("  ")
	for _, k := range t.Locks {
		labels = max(labels, Columns(label(Word(k.Name))))
		for _, h := range k.Holders {
			labels = max(labels, 2+Columns(h.label()))
		}
	}
	for _, g := range t.Guards {
		labels = max(labels, Columns(label(Word(g.Key))))
	}
	width, _ := s.size()
	if width == 0 {
		width = 80
	}
	c := chart{from: t.From, whole: max(t.To.Sub(t.From), time.Millisecond), columns: width - labels - 3}
	c.columns = max(c.columns, 10)
	line := func(name string, lane []rune) {
		row := name + strings.Repeat(" ", labels-Columns(name)+2) + string(lane)
		dst = append(append(dst, strings.TrimRight(row, " ")...), '\n')
	}
	line("", c.axis(t))
	for _, k := range t.Locks {
		blank := c.lane()
		c.gaps(blank, k.Gaps)
		if len(k.Holders) == 0 {
			line(label(Word(k.Name)), blank)
			continue
		}
		line(label(Word(k.Name)), nil)
		for _, h := range k.Holders {
			lane := c.lane()
			for _, d := range h.Holds {
				c.hold(lane, d)
			}
			c.gaps(lane, k.Gaps)
			line("  "+h.label(), lane)
		}
	}
	for _, g := range t.Guards {
		lane := c.lane()
		c.gaps(lane, g.Gaps)
		for _, at := range g.Writes {
			c.put(lane, at, markWritten)
		}
		for _, at := range g.Removed {
			c.put(lane, at, markRemoved)
		}
		line(label(Word(g.Key)), lane)
	}
	var legend []string
	for i, m := range marks {
		if c.used[i] {
			legend = append(legend, string(m.char)+" "+m.meaning)
		}
	}
	if len(legend) == 0 {
		return dst
	}
	return append(append(dst, s.faint.Sprint(strings.Join(legend, "  "))...), '\n')
}

// A chart has a time across and a number of columns.
type chart struct {
	from    time.Time
	whole   time.Duration
	columns int
	used    [len(marks)]bool
}

func (c *chart) lane() []rune { return []rune(strings.Repeat(" ", c.columns)) }

// column returns where a time is.
func (c *chart) column(at time.Time) int {
	return min(max(int(int64(c.columns-1)*int64(at.Sub(c.from))/int64(c.whole)), 0), c.columns-1)
}

func (c *chart) put(lane []rune, at time.Time, m int) {
	lane[c.column(at)] = marks[m].char
	c.used[m] = true
}

func (c *chart) hold(lane []rune, d Hold) {
	for i := c.column(d.From); i <= c.column(d.To); i++ {
		lane[i] = marks[markHeld].char
		c.used[markHeld] = true
	}
	for _, at := range d.Renewals {
		c.put(lane, at, markRenewed)
	}
	if !d.Open {
		c.put(lane, d.From, markAcquired)
	}
	if m, ok := endMark(d.End); ok {
		c.put(lane, d.To, m)
	}
}

func (c *chart) gaps(lane []rune, all []Interval) {
	for _, g := range all {
		for i := c.column(g.From); i <= c.column(g.To); i++ {
			lane[i] = marks[markGap].char
			c.used[markGap] = true
		}
	}
}

// axis writes the first and the last time above the lanes, and how long it is.
func (c *chart) axis(t Timeline) []rune {
	clock := func(at time.Time) string { return at.UTC().Format("15:04:05") }
	first, last := clock(t.From), Span(t.To.Sub(t.From))+" to "+clock(t.To)
	lane := c.lane()
	if len(first)+len(last)+2 > c.columns {
		copy(lane, []rune(first))
		return lane
	}
	copy(lane, []rune(first))
	copy(lane[c.columns-len(last):], []rune(last))
	return lane
}
