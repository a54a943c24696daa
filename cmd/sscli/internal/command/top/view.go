package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// The minimum size of the screen, in columns and lines. On a smaller screen, top shows only "too
// small".
const (
	minWidth  = 20
	minHeight = 4
)

// view returns at most height lines for the screen, each at most width columns wide.
func (m *model) view(width, height int, now time.Time) []terminal.ScreenLine {
	if width < minWidth || height < minHeight {
		return cut([]terminal.ScreenLine{{Text: "too small"}}, width, height)
	}
	head := m.head(width, now)
	body := height - len(head) - 1
	var lines []terminal.ScreenLine
	switch {
	case m.help:
		lines = textLines(help)
	case m.isOpen:
		lines = m.viewOpen(width, body, now)
	default:
		lines = m.viewTable(width, body, now)
	}
	lines = append(head, lines[:min(len(lines), body)]...)
	for len(lines) < height-1 {
		lines = append(lines, terminal.ScreenLine{})
	}
	return cut(append(lines, m.foot()), width, height)
}

func cut(lines []terminal.ScreenLine, width, height int) []terminal.ScreenLine {
	lines = lines[:min(len(lines), max(height, 0))]
	for i := range lines {
		lines[i].Text = format.Cut(lines[i].Text, max(width, 0))
	}
	return lines
}

// head returns the first lines of the screen: the title, and a problem if there is one.
func (m *model) head(width int, now time.Time) []terminal.ScreenLine {
	text := format.Count(len(m.rows), "key")
	if m.filter != "" {
		text = fmt.Sprintf("%d of %s", len(m.shown(now)), text)
	}
	brief := text
	if m.interval > 0 && !m.noScan {
		brief += ", new by scan every " + format.Span(m.interval)
		text += ", new keys by a scan every " + format.Span(m.interval)
		if !m.scanned.IsZero() {
			text += " (" + format.Age(now.Sub(m.scanned).Truncate(time.Second)) + ")"
		}
	}
	for _, fits := range []string{m.title + "  " + text, text} {
		if format.Columns(fits) <= width {
			brief = fits
			break
		}
	}
	lines := []terminal.ScreenLine{{Text: brief, Style: terminal.Bold}}
	problem := ""
	switch {
	case m.outage != "":
		problem = "away since " + m.outageAt.UTC().Format("15:04:05Z") + ", connecting again: " + format.Escape(m.outage)
	case m.noScan:
		problem = "no SCAN here: only named keys are shown"
	case m.scanErr != "":
		problem = "scan: " + format.Escape(m.scanErr)
	case m.unwatched > 0:
		problem = format.Count(m.unwatched, "more key") + " not shown: name a pattern or raise --limit"
	}
	if problem != "" {
		lines = append(lines, terminal.ScreenLine{Text: problem, Style: terminal.Alert})
	}
	return lines
}

// foot returns the last line of the screen, which says what the user can press.
func (m *model) foot() terminal.ScreenLine {
	text := "q quit  / filter  s sort  Enter  ? help"
	switch {
	case m.filtering:
		return terminal.ScreenLine{Text: "filter: " + format.Escape(m.filter) + "_   Enter keeps it, Esc clears it"}
	case m.help:
		text = "press any key to go back"
	case m.isOpen:
		text = "q Esc back  arrows scroll  ? help"
	case m.filter != "":
		text = "filter: " + format.Escape(m.filter) + "   Esc clears it  ? help  q quit"
	}
	return terminal.ScreenLine{Text: text, Style: terminal.Faint}
}

const help = `
arrows, j k  select a key
Page Home End  move further
Enter   open it: value, history, packets
/       filter by a part of the key
s       sort by key, age or writes
r       reverse the order
Ctrl-Z  suspend; fg resumes
Ctrl-L  draw again
q       go back, or quit

W/S     writes per second, of 10 seconds
LEASE   A value that is written again is
  taken for a lock. The bar is empty
  after 3 of its longest pauses.
  The lease itself cannot be read.
`

// textLines splits a text into lines, and replaces tabs with spaces.
func textLines(text string) (lines []terminal.ScreenLine) {
	for line := range strings.Lines(text) {
		lines = append(lines, terminal.ScreenLine{Text: strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")})
	}
	return lines
}

// The widths of the columns for the age and the rate, of the bar in the column LEASE, and of the gap
// between two columns.
const (
	ageWidth  = 7
	rateWidth = 5
	barWidth  = 10
	gap       = 2
)

// A layout has the widths of the columns for key, value and lease. lease is 0 if the screen has no room
// for its column.
type layout struct{ key, value, lease int }

func newLayout(width int, rows []*row) layout {
	l := layout{key: len("KEYv")}
	for _, r := range rows {
		l.key = max(l.key, format.Columns(format.Word(r.key)))
	}
	l.key = min(l.key, width/3)
	rest := width - l.key - ageWidth - rateWidth - 3*gap
	if width >= 70 {
		l.lease = barWidth + 2 + 6
		rest -= l.lease + gap
	}
	l.value = max(rest, 1)
	return l
}

// row joins the cells of a line, and aligns the age and the rate to the right.
func (l layout) row(key, value, age, rate, lease string) string {
	spaces := strings.Repeat(" ", gap)
	text := terminal.Pad(format.CutMiddle(key, l.key), l.key) + spaces + terminal.Pad(value, l.value) + spaces + terminal.PadLeft(age, ageWidth) + spaces + terminal.PadLeft(rate, rateWidth)
	if l.lease > 0 {
		text += spaces + lease
	}
	return strings.TrimRight(text, " ")
}

// viewTable returns the titles, and the rows around the selected row that fit in height lines.
func (m *model) viewTable(width, height int, now time.Time) []terminal.ScreenLine {
	rows := m.shown(now)
	m.page = max(height-1, 1)
	if len(rows) == 0 {
		text := "no keys yet"
		switch {
		case len(m.rows) > 0:
			text = "no key matches the filter"
		case m.interval > 0 && m.scanned.IsZero() && m.scanErr == "":
			text = "looking for keys"
		}
		return []terminal.ScreenLine{{}, {Text: text}}
	}
	at := 0
	if m.follows {
		at = m.indexOfSelected(rows)
	}
	m.selected = rows[at].key
	m.first = min(max(m.first, at-m.page+1, 0), at, max(len(rows)-m.page, 0))
	visible := rows[m.first:min(m.first+m.page, len(rows))]
	l := newLayout(width, visible)
	titles := map[order]string{byKey: "KEY", byAge: "AGE", byRate: "W/S"}
	if m.reversed {
		titles[m.order] += "^"
	} else {
		titles[m.order] += "v"
	}
	lines := []terminal.ScreenLine{{Text: l.row(titles[byKey], "VALUE", titles[byAge], titles[byRate], "LEASE"), Style: terminal.Faint}}
	for i, r := range visible {
		drawn := terminal.ScreenLine{Text: l.row(format.Word(r.key), r.shownValue(), r.age(now), r.rate(now), r.bar(now))}
		switch {
		case m.first+i == at:
			drawn.Text, drawn.Style = terminal.Pad(drawn.Text, width), terminal.Inverse
		case r.err != "":
			drawn.Style = terminal.Alert
		case r.read && !r.found:
			drawn.Style = terminal.Faint
		}
		lines = append(lines, drawn)
	}
	return lines
}

func (r *row) shownValue() string {
	switch {
	case r.err != "":
		return format.Escape(r.err)
	case !r.read:
		return ""
	case !r.found && r.changed.IsZero():
		return "(missing)"
	case !r.found:
		return "(deleted)"
	}
	return format.ValueStart(beginning(r.value), len(r.value))
}

// age returns a text for the time since the key was written or deleted, or "" if the time is unknown.
func (r *row) age(now time.Time) string {
	at := r.version.Time()
	if !r.found { // the version may belong to the deleted value
		at = r.changed
	}
	if !r.read || at.IsZero() || r.found && r.version.IsZero() {
		return ""
	}
	return format.Coarse(max(now.Sub(at), 0))
}

func (r *row) rate(now time.Time) string {
	n := r.writes.perSecond(now)
	switch {
	case n == 0:
		return ""
	case n < 10:
		return fmt.Sprintf("%.1f", n)
	case n < 10000:
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.0fk", n/1000)
}

func (r *row) bar(now time.Time) string {
	every, left, isLock := r.lease(now)
	if !isLock {
		return ""
	}
	full := int(left*barWidth + 0.5)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "] " + format.Span(every)
}

func (m *model) viewOpen(width, height int, now time.Time) []terminal.ScreenLine {
	r := m.rows[m.open]
	if r == nil {
		return []terminal.ScreenLine{{Text: "the key is no longer shown"}}
	}
	lines := r.details(width, now)
	m.page = max(height-1, 1)
	m.scroll = min(m.scroll, max(len(lines)-height, 0))
	return lines[m.scroll:]
}

// maxValue is the maximum size, in bytes, of a value that is shown whole. Each redraw formats the
// value again, so larger values would be slow.
const maxValue = 256 << 10

func (r *row) details(width int, now time.Time) []terminal.ScreenLine {
	lines := []terminal.ScreenLine{{Text: format.Word(r.key), Style: terminal.Bold}}
	add := func(text string) { lines = append(lines, terminal.Wrap(text, width)...) }
	title := func(text string) {
		lines = append(lines, terminal.ScreenLine{}, terminal.ScreenLine{Text: text, Style: terminal.Faint})
	}
	switch {
	case r.err != "":
		add(r.shownValue())
		for i := range lines[1:] {
			lines[1+i].Style = terminal.Alert
		}
	case !r.read:
		add("not read yet")
	case !r.found:
		add(r.shownValue())
	default:
		version := "version unknown"
		if !r.version.IsZero() {
			version = "version " + format.Escape(r.version.String())
		}
		add(version + "  " + format.Age(now.Sub(r.version.Time())) + ", " + format.Size(int64(len(r.value))))
		if every, left, isLock := r.lease(now); isLock {
			add(fmt.Sprintf("probably a lock: the same value is written at most %s apart", format.Span(every)))
			if left == 0 {
				add("no renewal was seen for " + format.Span(now.Sub(r.renewed)))
			}
		}
		title("VALUE")
		if len(r.value) > maxValue {
			add(r.shownValue())
			add("only the beginning is shown: sscli get " + format.BriefShWord(r.key) + " prints it")
			break
		}
		lines = append(lines, textLines(string(format.AppendValue(nil, r.value, "", format.Options{})))...)
	}
	title("HISTORY since top began, the newest first")
	for i := len(r.history) - 1; i >= 0; i-- {
		add(r.history[i].text())
	}
	if r.trace {
		title("PACKETS of this connection, by seconds since top began, the newest first")
	}
	for i := len(r.packets) - 1; i >= 0; i-- {
		add(r.packets[i])
	}
	return lines
}

func (c change) text() string {
	text := c.time.UTC().Format("15:04:05.000Z") + "  " + c.op
	if c.note != "" {
		text += "  " + format.Escape(c.note)
	}
	switch {
	case c.found:
		text += "  " + format.ValueStart(c.value, c.size)
	case c.op == string(client.EventInitial), c.op == string(client.EventResync):
		text += "  (missing)"
	}
	if !c.version.IsZero() {
		text += "  " + format.Escape(c.version.String())
	}
	return text
}
