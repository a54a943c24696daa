package screenshot

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Dimensions of the picture, in SVG units. A monospaced font of another width changes only the right margin.
const (
	columns    = 92
	cellWidth  = 845 // in hundredths of a unit
	lineHeight = 19
	margin     = 18
	bar        = 34 // height of the title bar
)

// The colors of a dark terminal.
const (
	background = "#16181d"
	frame      = "#2a2e37"
	foreground = "#d7dae0"
	prompt     = "#7fd1b9"
)

// A style is the effect of the terminal's escape sequences so far (ECMA-48, 8.3.117 SGR).
type style struct {
	bold, faint bool
	color       string
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// apply applies the parameters of one SGR sequence. A parameter that sscli does not use is an
// error, so that the picture is never wrong.
func (s *style) apply(parameters string) error {
	for p := range strings.SplitSeq(parameters, ";") {
		switch p {
		case "", "0":
			*s = style{}
		case "1":
			s.bold = true
		case "2":
			s.faint = true
		case "22":
			s.bold, s.faint = false, false
		case "31":
			s.color = "#f07178"
		case "32":
			s.color = "#a5d6a7"
		case "33":
			s.color = "#ffcb6b"
		case "36":
			s.color = "#89ddff"
		case "39":
			s.color = ""
		default:
			return fmt.Errorf("unknown style: SGR %s", p)
		}
	}
	return nil
}

func (s style) attributes() string {
	var a string
	if s.color != "" {
		a += fmt.Sprintf(` fill="%s"`, s.color)
	}
	if s.bold {
		a += ` font-weight="bold"`
	}
	if s.faint {
		a += ` fill-opacity="0.6"`
	}
	return a
}

// A turn is a command and its output in a terminal.
type turn struct{ command, output string }

// draw returns the picture of a terminal with these commands and their output.
func draw(turns []turn) (string, error) {
	var body strings.Builder
	lines := 0
	y := func() int { return bar + margin + lines*lineHeight }
	for _, t := range turns {
		fmt.Fprintf(&body, `<text x="%d" y="%d"><tspan fill="%s">$ </tspan><tspan font-weight="bold">%s</tspan></text>`+"\n",
			margin, y(), prompt, html.EscapeString(t.command))
		lines++
		var s style
		for line := range strings.Lines(strings.ReplaceAll(t.output, "\r\n", "\n")) {
			for _, part := range wrap(strings.TrimSuffix(line, "\n")) {
				spans, err := s.draw(part)
				if err != nil {
					return "", fmt.Errorf("%s: %w", t.command, err)
				}
				fmt.Fprintf(&body, `<text x="%d" y="%d">%s</text>`+"\n", margin, y(), spans)
				lines++
			}
		}
	}
	width := columns*cellWidth/100 + 2*margin
	height := y() - lineHeight + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="sscli in a terminal">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n", width, height, background, frame)
	for i, c := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="17" r="5.5" fill="%s"/>`+"\n", margin+4+i*19, c)
	}
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="%s" xml:space="preserve">`+"\n", foreground)
	b.WriteString(body.String())
	b.WriteString("</g>\n</svg>\n")
	return b.String(), nil
}

// draw returns a line as SVG. The styles carry over to the next line.
func (s *style) draw(line string) (string, error) {
	var b strings.Builder
	span := func(text string) {
		if text == "" {
			return
		}
		if a := s.attributes(); a != "" {
			fmt.Fprintf(&b, "<tspan%s>%s</tspan>", a, html.EscapeString(text))
			return
		}
		b.WriteString(html.EscapeString(text))
	}
	rest := line
	for {
		at := sgr.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		span(rest[:at[0]])
		if err := s.apply(rest[at[2]:at[3]]); err != nil {
			return "", err
		}
		rest = rest[at[1]:]
	}
	span(rest)
	if strings.ContainsRune(b.String(), '\x1b') {
		return "", fmt.Errorf("escape sequence other than SGR in %q", line)
	}
	return b.String(), nil
}

// wrap breaks a line where a terminal would.
func wrap(line string) []string {
	var parts []string
	start, column := 0, 0
	for i := 0; i < len(line); {
		if at := sgr.FindStringIndex(line[i:]); at != nil && at[0] == 0 {
			i += at[1]
			continue
		}
		if column == columns {
			parts = append(parts, line[start:i])
			start, column = i, 0
		}
		_, size := utf8.DecodeRuneInString(line[i:])
		i += size
		column++
	}
	return append(parts, line[start:])
}
