package man

import (
	"bytes"
	"fmt"
	"strings"
)

// literal adds lines that stay as they are.
func (r *roff) literal(lines []string) {
	if !bytes.HasSuffix(r.b, []byte("\n.SH \"EXAMPLES\"\n")) {
		r.macro("PP")
	}
	r.b = append(r.b, ".RS 4\n.nf\n"...)
	for _, line := range lines {
		r.b = append(r.b, EscapeRoff(line)+"\n"...)
	}
	r.b = append(r.b, ".fi\n.RE\n"...)
}

// macro adds a macro with its arguments.
func (r *roff) macro(name string, args ...string) {
	r.b = append(r.b, "."+name...)
	for _, arg := range args {
		r.b = append(r.b, ` "`+EscapeRoff(arg)+`"`...)
	}
	r.b = append(r.b, '\n')
}

// text adds prose. Formatters fill the lines again; here they are filled for readers of the source.
func (r *roff) text(prose string) {
	const width = 72
	var line string
	for word := range strings.FieldsSeq(prose) {
		word = EscapeRoff(word)
		if line != "" && len(line)+len(word) >= width {
			r.b = append(r.b, line+"\n"...)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	r.b = append(r.b, line+"\n"...)
}

// EscapeRoff returns a text in which nothing has a special meaning to a formatter. It escapes the
// ASCII characters too that formatters would replace by typographic ones.
func EscapeRoff(text string) string {
	var b strings.Builder
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		b.WriteString(`\&`) // or the line would be a request
	}
	for _, c := range text {
		switch c {
		case '\\':
			b.WriteString(`\e`)
		case '-':
			b.WriteString(`\-`)
		case '"':
			b.WriteString(`\(dq`)
		case '\'':
			b.WriteString(`\(aq`)
		case '`':
			b.WriteString(`\(ga`)
		case '^':
			b.WriteString(`\(ha`)
		case '~':
			b.WriteString(`\(ti`)
		default:
			if c > '~' {
				fmt.Fprintf(&b, `\[u%04X]`, c)
			} else {
				b.WriteRune(c)
			}
		}
	}
	return b.String()
}

// A roff is a page in the man macros, see man(7).
type roff struct{ b []byte }
