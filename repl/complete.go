package repl

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/format"
)

// A Candidate is a word that Tab can complete to.
type Candidate struct {
	Text string
	Help string // describes the word briefly; may be empty
	Open bool   // the word may continue, so no space follows it
	Flag bool   // a flag, whose leading minus is not quoted
}

// A Completer returns the candidates for the word under the cursor. before holds the words of the
// line that precede this word, and part is the beginning of the word, up to the cursor.
type Completer func(before []Word, part Word) []Candidate

// atCursor parses the text before the cursor. It returns the complete words of the last logical line,
// the beginning of the word under the cursor, and the offset of this word in the text. ok is
// false if nothing can be completed, for example in a comment or after a syntax error.
func atCursor(text string) (before []Word, part Word, start int, ok bool) {
	var s splitter
	base, rest := 0, text // base is the offset of the current logical line
	for {
		physical, after, more := strings.Cut(rest, "\n")
		if !more {
			break
		}
		s.line(physical + "\n")
		rest = after
		if s.quote == 0 {
			s, base = splitter{}, len(text)-len(rest)
		}
	}
	start = -1
	for i := 0; i < len(rest); i++ {
		if !s.open && rest[i] == '#' {
			return nil, Word{}, 0, false
		}
		wasOpen := s.open
		s.byte(rest[i], s.pos+i)
		if !wasOpen && s.open {
			start = base + s.pos + i
		}
	}
	switch {
	case s.err != nil || slices.ContainsFunc(s.words, isOperator):
		return nil, Word{}, 0, false
	case !s.open:
		return s.words, Word{}, len(text), true
	case start < 0: // the word began on an earlier physical line
		return nil, Word{}, 0, false
	}
	part = Word{Text: string(s.word), Quoted: s.quoted}
	if s.quote == '"' {
		if s.escape {
			return nil, Word{}, 0, false
		}
		text, err := format.Unquote(part.Text + `"`)
		if err != nil {
			return nil, Word{}, 0, false
		}
		part.Text = text
	}
	return s.words, part, start, true
}

// complete completes the last word of line. The line ends at the cursor. text is the replacement for
// line[start:]. If text is the same as line[start:], show holds the candidates to list.
func complete(line string, candidates Completer) (start int, text string, show []Candidate) {
	before, part, start, ok := atCursor(line)
	if !ok {
		return len(line), "", nil
	}
	found := candidates(before, part)
	typed := line[start:]
	switch len(found) {
	case 0:
		return start, typed, nil
	case 1:
		if found[0].Open {
			return start, openWord(found[0]), nil
		}
		return start, found[0].word() + " ", nil
	}
	common := found[0]
	for _, c := range found[1:] {
		common.Text, common.Flag = commonPrefix(common.Text, c.Text), common.Flag && c.Flag
	}
	if len(common.Text) > len(part.Text) {
		return start, openWord(common), nil
	}
	return start, typed, found
}

// word returns the candidate as the user would type it. Flags are not quoted, because a
// quoted word is an operand.
func (c Candidate) word() string {
	if c.Flag {
		return c.Text
	}
	return format.Word(c.Text)
}

// openWord returns the candidate as an unfinished word, without the closing quote if it
// needs quotes.
func openWord(c Candidate) string {
	word := c.word()
	if strings.HasPrefix(word, `"`) {
		return strings.TrimSuffix(word, `"`)
	}
	return word
}

// commonPrefix returns the longest common prefix of a and b that does not end within a character.
func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) {
		_, size := utf8.DecodeRuneInString(a[n:])
		if !strings.HasPrefix(b[n:], a[n:n+size]) {
			break
		}
		n += size
	}
	return a[:n]
}

// listing returns the candidates as rows for a terminal of the given width. If any candidate has help,
// each row has one candidate; otherwise, the candidates are in columns.
func listing(candidates []Candidate, width int) string {
	const maxListed = 100
	more := ""
	if len(candidates) > maxListed {
		more = fmt.Sprintf("... and %d more\r\n", len(candidates)-maxListed)
		candidates = candidates[:maxListed]
	}
	widest, help := 0, false
	words := make([]string, len(candidates))
	for i, c := range candidates {
		words[i] = c.word()
		widest = max(widest, format.Columns(words[i]))
		help = help || c.Help != ""
	}
	pad := func(word string) string { return strings.Repeat(" ", widest-format.Columns(word)+2) }
	var b strings.Builder
	if help {
		for i, c := range candidates {
			b.WriteString(words[i])
			if room := width - widest - 3; c.Help != "" && room > 8 {
				b.WriteString(pad(words[i]) + format.Cut(format.Escape(c.Help), room))
			}
			b.WriteString("\r\n")
		}
		return b.String() + more
	}
	columns := max((width-1)/(widest+2), 1)
	rows := (len(words) + columns - 1) / columns
	for r := range rows {
		for i := r; i < len(words); i += rows {
			b.WriteString(words[i])
			if i+rows < len(words) {
				b.WriteString(pad(words[i]))
			}
		}
		b.WriteString("\r\n")
	}
	return b.String() + more
}
