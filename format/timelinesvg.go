package format

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// The dimensions of the picture, in pixels.
const (
	svgWidth  = 1000
	svgLabels = 210 // the width of the labels, to the left of the time axis
	svgRight  = 20
	svgTop    = 74
	svgRow    = 26
	svgBar    = 14 // the height of the bar for a hold
	svgText   = 17 // from the top of a row to the baseline of its text
	svgBottom = 44 // the height of the legend
	svgLetter = 8  // the width of a letter in the legend
)

// SVG returns the timeline as an SVG picture that loads no other files.
func (t Timeline) SVG() []byte {
	rows := t.rows()
	bottom := svgTop + len(rows)*svgRow
	p, height := &picture{Timeline: t}, bottom+svgBottom
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="12" fill="#1f2328">`, svgWidth, height, svgWidth, height)
	var names []string
	for _, k := range t.Locks {
		names = append(names, label(k.Name))
	}
	title := "Locks " + strings.Join(names, ", ")
	if len(names) == 1 {
		title = "Lock " + names[0]
	}
	p.printf(`<title>%s</title>`, markup(title))
	p.printf(`<defs><pattern id="gap" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff" fill-opacity="0.7"/><rect width="2" height="6" fill="#9a6700"/></pattern></defs>`)
	p.printf(`<rect width="%d" height="%d" fill="#fff"/>`, svgWidth, height)
	p.printf(`<text x="16" y="26" font-size="16" font-weight="600">%s</text>`, markup(Cut(title, maxLabel)))
	p.printf(`<text x="16" y="44" fill="#59636e">%s to %s UTC, %s</text>`, t.From.UTC().Format("2006-01-02 15:04:05"), t.To.UTC().Format("15:04:05"), Span(t.To.Sub(t.From)))
	p.ticks(bottom)
	for i, r := range rows {
		p.row(svgTop+i*svgRow, r)
	}
	p.legend(rows, height-16-svgText)
	p.printf(`</svg>`)
	return p.out.Bytes()
}

// palette holds the colors of holders. Holders that have the same color still differ in their labels.
var palette = [...]string{"#0969da", "#1a7f37", "#8250df", "#bf8700", "#bc4c00", "#3192aa"}

// A picture draws a timeline as SVG.
type picture struct {
	Timeline
	out bytes.Buffer
}

func (p *picture) printf(text string, args ...any) {
	fmt.Fprintf(&p.out, text, args...)
	p.out.WriteByte('\n')
}

func (p *picture) x(at time.Time) float64 {
	const columns = svgWidth - svgLabels - svgRight
	return svgLabels + columns*min(max(float64(at.Sub(p.From))/float64(p.duration()), 0), 1)
}

func (p *picture) row(y int, r row) {
	if !r.holder && y > svgTop {
		p.printf(`<path d="M16 %dH%d" stroke="#d1d9e0"/>`, y, svgWidth-svgRight)
	}
	if r.holder {
		p.printf(`<text x="28" y="%d">%s</text>`, y+svgText, markup(r.label))
	} else {
		p.printf(`<text x="16" y="%d" font-weight="600">%s</text>`, y+svgText, markup(r.label))
	}
	for _, m := range r.marks {
		p.mark(m.char, p.x(m.From), p.x(m.To), y, palette[r.color%len(palette)])
	}
}

// mark draws a mark between the x coordinates from and to. y is the top of the row.
func (p *picture) mark(char rune, from, to float64, y int, color string) {
	bar, width := y+(svgRow-svgBar)/2, max(to-from, 2)
	switch char {
	case '├': // not drawn: the bar begins here
	case '─':
		p.printf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="2" fill="%s" fill-opacity="0.75"/>`, from, bar, width, svgBar, color)
	case '┼':
		p.printf(`<path d="M%.1f %dv%d" stroke="#fff" stroke-width="1.5"/>`, from, bar, svgBar)
	case '┤':
		p.printf(`<path d="M%.1f %dv%d" stroke="%s" stroke-width="3"/>`, from, bar-3, svgBar+6, color)
	case '░':
		p.printf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="url(#gap)" fill-opacity="0.6"/>`, from, y, width, svgRow)
	case '╳':
		p.printf(`<path d="M%.1f %dl10 10m-10 0l10 -10" stroke="#d1242f" stroke-width="2.5"/>`, from-5, y+svgText-9)
	case '▲', '△':
		fill := map[rune]string{'▲': "#1f2328", '△': "none"}[char]
		p.printf(`<path d="M%.1f %dl5 9h-10z" fill="%s" stroke="#1f2328"/>`, from, y+svgText-9, fill)
	default:
		p.printf(`<text x="%.1f" y="%d" text-anchor="middle" fill="#d1242f" font-weight="700">%c</text>`, from, y+svgText, char)
	}
}

// ticks draws the time axis, with at most ten round times, and a line from each of them down to bottom.
func (p *picture) ticks(bottom int) {
	step := tickStep(p.duration())
	form := "15:04:05"
	if step < time.Second {
		form = "15:04:05.000"
	}
	for at := p.From.Truncate(step).Add(step); at.Before(p.To); at = at.Add(step) {
		x := p.x(at)
		p.printf(`<path d="M%.1f %dV%d" stroke="#eaeef2"/>`, x, svgTop-6, bottom)
		if x < svgWidth-svgRight-30 && x > svgLabels+20 {
			p.printf(`<text x="%.1f" y="%d" text-anchor="middle" font-size="10" fill="#59636e">%s</text>`, x, svgTop-10, at.UTC().Format(form))
		}
	}
}

// tickStep returns the time between two ticks of the axis: the shortest round time that splits
// the axis into at most ten parts. whole is the length of the timeline.
func tickStep(whole time.Duration) time.Duration {
	const ms, s, m, h = time.Millisecond, time.Second, time.Minute, time.Hour
	for _, step := range []time.Duration{
		ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
		s, 2 * s, 5 * s, 15 * s, 30 * s, m, 2 * m, 5 * m, 15 * m, 30 * m, h, 3 * h, 6 * h, 12 * h,
	} {
		if whole/step < 10 {
			return step
		}
	}
	const day = 24 * h
	return (whole/(10*day) + 1) * day
}

// legend draws a legend that explains the marks in the rows. y is the top of the legend.
func (p *picture) legend(rows []row, y int) {
	x := 16
	for _, m := range legend[1:] { // the picture does not draw the first, ├
		if !hasMark(rows, m.char) {
			continue
		}
		from, to := float64(x), float64(x+20)
		switch m.char {
		case '┼': // white, so it needs a bar behind it
			p.mark('─', from, to, y, "#59636e")
			fallthrough
		case '┤', '╳', '?', '▶', '▲', '△':
			from, to = from+10, from+10
		}
		p.mark(m.char, from, to, y, "#59636e")
		p.printf(`<text x="%d" y="%d" font-size="11" fill="#59636e">%s</text>`, x+26, y+svgText, m.meaning)
		x += 26 + svgLetter*len(m.meaning) + 18
	}
}

// markup escapes text for XML. The text must not contain control characters. markup avoids package
// encoding/xml, which builds a table of entities each time sscli starts.
func markup(text string) string { return template.HTMLEscapeString(text) }
