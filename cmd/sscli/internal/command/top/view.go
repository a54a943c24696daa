package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// A line is a row of the screen. Its text is printable and fits.
type line struct {
	text  string
	style style
}

// A style is how a line is drawn.
type style int

const (
	plain style = iota
	bold
	faint
	inverse
	alert
)

// smallest is the size below which there is nothing but a note.
const (
	smallestWidth  = 20
	smallestHeight = 4
)

// view returns the lines of a screen: at most height, each at most width columns wide.
func (m *model) view(width, height int, now time.Time) []line {
	if width < smallestWidth || height < smallestHeight {
		return cut([]line{{text: "too small"}}, width, height)
	}
	head := m.head(width, now)
	body := height - len(head) - 1
	var lines []line
	switch {
	case m.help:
		lines = helpLines()
	case m.opened:
		lines = m.viewOpen(width, body, now)
	default:
		lines = m.viewTable(width, body, now)
	}
	lines = append(head, lines[:min(len(lines), body)]...)
	for len(lines) < height-1 {
		lines = append(lines, line{})
	}
	return cut(append(lines, m.foot()), width, height)
}

func cut(lines []line, width, height int) []line {
	lines = lines[:min(len(lines), max(height, 0))]
	for i := range lines {
		lines[i].text = format.Cut(lines[i].text, max(width, 0))
	}
	return lines
}

// head says what is shown, and what is wrong.
func (m *model) head(width int, now time.Time) []line {
	text := format.Count(len(m.rows), "key")
	if m.filter != "" {
		text = fmt.Sprintf("%d of %s", len(m.shown(now)), text)
	}
	brief := text
	if m.interval > 0 && !m.noScan {
		brief += ", new by scan every " + short(m.interval)
		text += ", new keys by a scan every " + short(m.interval)
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
	lines := []line{{text: brief, style: bold}}
	switch {
	case m.away != "":
		lines = append(lines, line{text: "away since " + m.gone.UTC().Format("15:04:05") + ", connecting again: " + format.Escape(m.away), style: alert})
	case m.noScan:
		lines = append(lines, line{text: "no SCAN here: only named keys are shown", style: alert})
	case m.scanErr != "":
		lines = append(lines, line{text: "scan: " + format.Escape(m.scanErr), style: alert})
	case m.left > 0:
		lines = append(lines, line{text: fmt.Sprintf("%d more keys: name a pattern or --limit", m.left), style: alert})
	}
	return lines
}

func (m *model) foot() line {
	switch {
	case m.typing:
		return line{text: "filter: " + format.Escape(m.filter) + "_   Enter keeps it, Esc clears it", style: plain}
	case m.help:
		return line{text: "press any key to go back", style: faint}
	case m.opened:
		return line{text: "q Esc back  arrows scroll  ? help", style: faint}
	case m.filter != "":
		return line{text: "filter: " + format.Escape(m.filter) + "   Esc clears it  ? help  q quit", style: faint}
	default:
		return line{text: "q quit  / filter  s sort  Enter  ? help", style: faint}
	}
}

func helpLines() []line {
	var lines []line
	for _, text := range []string{
		"",
		"arrows, j k  select a key",
		"Page Home End  move further",
		"Enter   open it: value, history, packets",
		"/       filter by a part of the key",
		"s       sort by key, age or writes",
		"r       reverse the order",
		"Ctrl-Z  suspend; fg resumes",
		"Ctrl-L  draw again",
		"q       go back, or quit",
		"",
		"W/S     writes per second, of 10 seconds",
		"LEASE   A value that is written again is",
		"  taken for a lock. The bar is empty",
		"  after 3 of its longest pauses.",
		"  The lease itself cannot be read.",
	} {
		lines = append(lines, line{text: text})
	}
	return lines
}

// Columns of the table. The value has the rest.
const (
	ageWidth  = 7
	rateWidth = 5
	barWidth  = 10
	gap       = 2
)

// layout is how wide the columns are; lease is 0 where there is no room for it.
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

// row joins cells. The numbers are aligned to the right.
func (l layout) row(key, value, age, rate, lease string) string {
	spaces := strings.Repeat(" ", gap)
	text := pad(key, l.key) + spaces + pad(value, l.value) + spaces + padLeft(age, ageWidth) + spaces + padLeft(rate, rateWidth)
	if l.lease > 0 {
		text += spaces + lease
	}
	return strings.TrimRight(text, " ")
}

// pad cuts or fills a text to a width.
func pad(text string, width int) string {
	text = format.Cut(text, width)
	return text + strings.Repeat(" ", max(width-format.Columns(text), 0))
}

func padLeft(text string, width int) string {
	return strings.Repeat(" ", max(width-format.Columns(text), 0)) + text
}

// viewTable draws the rows around the selected one.
func (m *model) viewTable(width, height int, now time.Time) []line {
	rows := m.shown(now)
	m.page = max(height-1, 1)
	if len(rows) == 0 {
		switch {
		case len(m.rows) > 0:
			return []line{{}, {text: "no key has that in its name"}}
		case m.interval > 0 && m.scanned.IsZero() && m.scanErr == "":
			return []line{{}, {text: "looking for keys"}}
		default:
			return []line{{}, {text: "no keys yet"}}
		}
	}
	at := m.place(rows)
	m.selected = rows[at].key
	m.first = min(max(m.first, at-m.page+1, 0), at, max(len(rows)-m.page, 0))
	visible := rows[m.first:min(m.first+m.page, len(rows))]
	l := newLayout(width, visible)
	mark := func(o order, title string) string {
		if m.order != o {
			return title
		}
		if m.reversed {
			return title + "^"
		}
		return title + "v"
	}
	lines := []line{{text: l.row(mark(byKey, "KEY"), "VALUE", mark(byAge, "AGE"), mark(byRate, "W/S"), "LEASE"), style: faint}}
	for i, r := range visible {
		drawn := line{text: l.row(format.Word(r.key), r.shownValue(), r.age(now), r.rate(now), r.bar(now))}
		switch {
		case m.first+i == at:
			drawn.text, drawn.style = pad(drawn.text, width), inverse
		case r.err != "":
			drawn.style = alert
		case r.read && !r.found:
			drawn.style = faint
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
	return format.ValueLine(beginning(r.value), "")
}

// age is how long ago the key was written, by the version that the store gave it.
func (r *row) age(now time.Time) string {
	at := r.version.Time()
	if !r.found { // the version of a deletion is that of what was deleted
		at = r.changed
	}
	if !r.read || at.IsZero() || r.found && r.version.IsZero() {
		return ""
	}
	return short(max(now.Sub(at), 0))
}

func (r *row) rate(now time.Time) string {
	n := r.writes.perSecond(now)
	switch {
	case n == 0:
		return ""
	case n < 10:
		return strconv.FormatFloat(n, 'f', 1, 64)
	case n < 10000:
		return strconv.FormatFloat(n, 'f', 0, 64)
	default:
		return strconv.FormatFloat(n/1000, 'f', 0, 64) + "k"
	}
}

// bar is the lease of a lock as far as it was seen.
func (r *row) bar(now time.Time) string {
	every, left, isLock := r.lease(now)
	if !isLock {
		return ""
	}
	full := int(left*barWidth + 0.5)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "] " + short(every)
}

// short is a duration in few characters.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second && d%time.Second != 0:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64) + "s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// viewOpen draws everything that is known of one key.
func (m *model) viewOpen(width, height int, now time.Time) []line {
	r := m.rows[m.open]
	if r == nil {
		return []line{{text: "the key is no longer shown"}}
	}
	lines := r.details(width, now)
	m.page = max(height-1, 1)
	m.scroll = min(m.scroll, max(len(lines)-height, 0))
	return lines[m.scroll:]
}

// mostShown is how many bytes a value may have that is shown whole: it is laid out again for
// each screen.
const mostShown = 256 << 10

func (r *row) details(width int, now time.Time) []line {
	lines := []line{{text: format.Word(r.key), style: bold}}
	add := func(text string) { lines = append(lines, wrap(text, width)...) }
	title := func(text string) { lines = append(lines, line{}, line{text: text, style: faint}) }
	switch {
	case r.err != "":
		for _, l := range wrap(format.Escape(r.err), width) {
			lines = append(lines, line{l.text, alert})
		}
	case !r.read:
		add("not read yet")
	case !r.found:
		add(r.shownValue())
	default:
		add(versionLine(r.version) + "  " + format.Age(now.Sub(r.version.Time())) + ", " + format.Size(int64(len(r.value))))
		if every, left, isLock := r.lease(now); isLock {
			add(fmt.Sprintf("the same value again, at most %s apart: a lock, held by what the value names", short(every)))
			if left == 0 {
				add("not seen to be renewed for " + short(now.Sub(r.renewed)))
			}
		}
		title("VALUE")
		if len(r.value) > mostShown {
			add(r.shownValue())
			add("only the beginning is shown: sscli get " + format.BriefWord(r.key) + " prints it")
			break
		}
		for text := range strings.Lines(string(format.AppendValue(nil, r.value, "", format.Options{}))) {
			lines = append(lines, line{text: strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\t", "    ")})
		}
	}
	title("HISTORY since top began, the latest first")
	for i := len(r.history) - 1; i >= 0; i-- {
		add(r.history[i].text())
	}
	if r.tapped {
		title("PACKETS of this connection, by seconds since top began, the latest first")
	}
	for i := len(r.packets) - 1; i >= 0; i-- {
		add(r.packets[i])
	}
	return lines
}

// wrap breaks a long text into lines.
func wrap(text string, width int) []line {
	var lines []line
	for text != "" || lines == nil {
		end, columns := len(text), 0
		for i, c := range text {
			if columns += format.Width(c); columns > width && i > 0 {
				end = i
				break
			}
		}
		lines = append(lines, line{text: text[:end]})
		if text = text[end:]; text != "" {
			text = "    " + strings.TrimLeft(text, " ")
		}
	}
	return lines
}

func (c change) text() string {
	text := clock(c.time) + "  " + c.op
	if c.note != "" {
		text += "  " + format.Escape(c.note)
	}
	switch {
	case c.found:
		text += "  " + format.ValueLine(c.value, "")
	case c.op == string(client.EventInitial), c.op == string(client.EventResync):
		text += "  (missing)"
	}
	if !c.version.IsZero() {
		text += "  " + format.Escape(c.version.String())
	}
	return text
}

func versionLine(v client.Version) string {
	if v.IsZero() {
		return "version unknown"
	}
	return "version " + format.Escape(v.String())
}
