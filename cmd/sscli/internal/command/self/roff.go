package self

import (
	"fmt"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/help"
)

// A roff is a page, written with the macros of man(7).
type roff struct{ strings.Builder }

// macro adds a macro and its arguments, which it escapes.
func (r *roff) macro(name string, args ...string) {
	r.WriteString("." + name)
	for _, arg := range args {
		r.WriteString(` "` + escape(arg) + `"`)
	}
	r.WriteByte('\n')
}

func (r *roff) text(lines ...string) {
	for _, line := range lines {
		r.WriteString(escape(line) + "\n")
	}
}

// item adds a term and its meaning. The caller must have escaped the term; item escapes the meaning.
func (r *roff) item(term, meaning string) {
	r.macro("TP")
	r.WriteString(term + "\n")
	r.text(meaning)
}

func (r *roff) literal(lines []string) {
	r.WriteString(".RS 4\n.nf\n")
	r.text(lines...)
	r.WriteString(".fi\n.RE\n")
}

func (r *roff) blocks(list []help.Block) {
	for i, b := range list {
		if b.Rows == nil && i > 0 {
			r.macro("PP")
		}
		for _, row := range b.Rows {
			r.item(bold(row[0]), row[1])
		}
		if b.Literal != nil {
			r.literal(b.Literal)
		}
		if b.Prose != "" {
			r.text(b.Prose)
		}
	}
}

func bold(text string) string { return `\fB` + escape(text) + `\fR` }

func italic(text string) string { return `\fI` + escape(text) + `\fR` }

// escape escapes a text for a formatter of manual pages. It also escapes the ASCII characters that
// formatters replace with typographic ones.
func escape(text string) string {
	special := map[rune]string{'\\': `\e`, '-': `\-`, '"': `\(dq`, '\'': `\(aq`, '`': `\(ga`, '^': `\(ha`, '~': `\(ti`}
	var b strings.Builder
	if strings.HasPrefix(text, ".") {
		b.WriteString(`\&`) // a line that begins with a dot would be a request
	}
	for _, c := range text {
		switch with, ok := special[c]; {
		case ok:
			b.WriteString(with)
		case c > '~':
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
