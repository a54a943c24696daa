package format

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// The measures of the picture, in pixels.
const (
	svgWidth   = 1000
	svgLabels  = 210 // from the left to where the time begins
	svgRight   = 20
	svgTop     = 74
	svgLane    = 26
	svgBar     = 14 // the height of a hold
	svgMark    = 8  // from the top of a lane to a cross or a triangle
	svgText    = 17 // from the top of a lane to the foot of its text
	svgBottom  = 44
	svgLegends = 8
)

// SVG draws the timeline as a picture that stands alone: it loads nothing.
func (t Timeline) SVG() []byte {
	lanes := t.lanes()
	p := &picture{Timeline: t, bottom: svgTop + len(lanes)*svgLane, used: make(map[rune]bool)}
	height := p.bottom + svgBottom
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
	p.ticks()
	for i, l := range lanes {
		p.lane(svgTop+i*svgLane, l)
	}
	p.legend(height - 16)
	p.printf(`</svg>`)
	return p.out.Bytes()
}

// palette are the colors of holders; a lane has a label too.
var palette = [...]string{"#0969da", "#1a7f37", "#8250df", "#bf8700", "#bc4c00", "#3192aa"}

// A picture is a timeline that is drawn as SVG.
type picture struct {
	Timeline
	bottom int
	out    bytes.Buffer
	used   map[rune]bool // marks
}

func (p *picture) printf(text string, args ...any) {
	fmt.Fprintf(&p.out, text, args...)
	p.out.WriteByte('\n')
}

// x returns where a time is.
func (p *picture) x(at time.Time) float64 {
	const columns = svgWidth - svgLabels - svgRight
	return svgLabels + columns*min(max(float64(at.Sub(p.From))/float64(p.duration()), 0), 1)
}

// lane draws a lane with its top at y.
func (p *picture) lane(y int, l lane) {
	if l.IsName {
		p.printf(`<text x="16" y="%d" font-weight="600">%s</text>`, y+svgText, markup(l.Label))
	} else {
		p.printf(`<text x="28" y="%d">%s</text>`, y+svgText, markup(l.Label))
	}
	for _, d := range l.Holds {
		p.hold(y, d, palette[l.Color%len(palette)])
	}
	bottom := y + svgLane
	for _, g := range l.Gaps[:len(l.Gaps)*min(l.Shared, 1)] {
		from, height := p.x(g.From), l.Shared*svgLane
		p.printf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="url(#gap)" fill-opacity="0.6"/>`, from, bottom-height, max(p.x(g.To)-from, 2), height)
		p.used['░'] = true
	}
	for _, at := range l.Writes {
		p.mark('▲', p.x(at), y, 1)
	}
	for _, at := range l.Removed {
		p.mark('△', p.x(at), y, 1)
	}
	if l.IsLast {
		p.printf(`<path d="M16 %dH%d" stroke="#d1d9e0"/>`, bottom, svgWidth-svgRight)
	}
}

func (p *picture) hold(y int, d Hold, color string) {
	top := y + (svgLane-svgBar)/2
	from, to := p.x(d.From), p.x(d.To)
	p.printf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="2" fill="%s" fill-opacity="0.75"/>`, from, top, max(to-from, 2), svgBar, color)
	p.used['─'] = true
	for _, at := range d.Renewals {
		p.printf(`<path d="M%.1f %dv%d" stroke="#fff" stroke-width="1.5"/>`, p.x(at), top, svgBar)
		p.used['┼'] = true
	}
	switch mark := d.mark(); mark {
	case 0:
	case '┤':
		p.printf(`<path d="M%.1f %dv%d" stroke="%s" stroke-width="3"/>`, to, top-3, svgBar+6, color)
		p.used[mark] = true
	default:
		p.mark(mark, to, y, 1)
	}
}

// mark draws a mark at x, in a lane with its top at y. x is written with this many decimals.
func (p *picture) mark(mark rune, x float64, y, decimals int) {
	p.used[mark] = true
	switch fill := "#1f2328"; mark {
	case '╳':
		p.printf(`<path d="M%.1f %dl10 10m-10 0l10 -10" stroke="#d1242f" stroke-width="2.5"/>`, x-5, y+svgMark)
	case '△':
		fill = "none"
		fallthrough
	case '▲':
		p.printf(`<path d="M%.*f %dl5 9h-10z" fill="%s" stroke="#1f2328"/>`, decimals, x, y+svgMark, fill)
	default:
		p.printf(`<text x="%.*f" y="%d" fill="#d1242f" font-weight="700">%c</text>`, decimals, x+2, y+svgText, mark)
	}
}

// ticks draws the axis: at most ten round times.
func (p *picture) ticks() {
	step := tickStep(p.duration())
	for at := p.From.Truncate(step).Add(step); at.Before(p.To); at = at.Add(step) {
		form := "15:04:05"
		if step < time.Second {
			form = "15:04:05.000"
		}
		x := p.x(at)
		p.printf(`<path d="M%.1f %dV%d" stroke="#eaeef2"/>`, x, svgTop-6, p.bottom)
		if x < svgWidth-svgRight-30 && x > svgLabels+20 {
			p.printf(`<text x="%.1f" y="%d" text-anchor="middle" font-size="10" fill="#59636e">%s</text>`, x, svgTop-10, at.UTC().Format(form))
		}
	}
}

// tickStep returns the time between the ticks of an axis: the shortest of a list of round
// times of which at most ten fit.
func tickStep(whole time.Duration) time.Duration {
	const ms, day = time.Millisecond, 24 * time.Hour
	for _, d := range []time.Duration{
		ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
		time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	} {
		if whole/d < 10 {
			return d
		}
	}
	return (whole/(10*day) + 1) * day
}

// legend explains the marks that are in the picture.
func (p *picture) legend(y int) {
	x := 16
	for _, m := range marks {
		if !p.used[m.char] {
			continue
		}
		switch m.char {
		case '─', '┼':
			p.printf(`<rect x="%d" y="%d" width="20" height="10" rx="2" fill="#59636e" fill-opacity="0.75"/>`, x, y-9)
			if m.char == '┼' {
				p.printf(`<path d="M%d %dv10" stroke="#fff" stroke-width="1.5"/>`, x+10, y-9)
			}
		case '┤':
			p.printf(`<path d="M%d %dv14" stroke="#59636e" stroke-width="3"/>`, x+16, y-11)
		case '░':
			p.printf(`<rect x="%d" y="%d" width="20" height="12" fill="url(#gap)"/>`, x, y-10)
		case '╳', '▲', '△':
			p.mark(m.char, float64(x+12), y-svgText, 0)
		default:
			p.mark(m.char, float64(x+6), y-svgText, 0)
		}
		p.printf(`<text x="%d" y="%d" font-size="11" fill="#59636e">%s</text>`, x+26, y, m.meaning)
		x += 26 + svgLegends*len(m.meaning) + 18
	}
}

// markup escapes a text for XML, which cannot have control characters at all.
func markup(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}
