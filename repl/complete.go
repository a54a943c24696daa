package repl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/format"
)

// A Candidate is a word that could stand where the cursor is.
type Candidate struct {
	Text string
	Help string // what it is, in a few words; may be empty
	Open bool   // it could go on: no space follows
	Flag bool   // it begins with a minus that is not quoted
}

// A Completer returns candidates for a word of a line from the words before it and
// from what there is of it.
type Completer func(before []Word, part Word) []Candidate

// under splits a line that ends at the cursor into the words before the one under
// the cursor and that one, which begins at a byte of the line. Within a comment,
// or behind what is wrong, there is nothing to complete.
func under(line string) (before []Word, part Word, start int, ok bool) {
	// The line may be of several; what comes before its last is done with.
	base := 0
	for {
		end := lineEnd(line[base:])
		if end < 0 {
			break
		}
		base += end
	}
	text := line[base:]
	var s splitter
	lines := strings.SplitAfter(text, "\n")
	for _, l := range lines[:len(lines)-1] {
		s.line(l)
	}
	start = -1
	last := lines[len(lines)-1]
	for i := 0; i < len(last); i++ {
		if !s.open && last[i] == '#' {
			return nil, Word{}, 0, false
		}
		was := s.open
		s.byte(last[i], s.pos+i)
		if !was && s.open {
			start = s.pos + i
		}
	}
	if s.err != nil {
		return nil, Word{}, 0, false
	}
	if !s.open {
		return s.words, Word{}, len(line), true
	}
	if start < 0 { // it began in a line before
		return nil, Word{}, 0, false
	}
	part = Word{Text: string(s.word), Quoted: s.quoted}
	if s.quote == '"' {
		head, tail := s.word[:s.part], string(s.word[s.part:])
		if s.escape {
			return nil, Word{}, 0, false
		}
		tail, err := format.Unquote(tail + `"`)
		if err != nil {
			return nil, Word{}, 0, false
		}
		part.Text = string(head) + tail
	}
	return s.words, part, base + start, true
}

// lineEnd returns where the line behind the first logical one begins, or -1.
func lineEnd(text string) int {
	var s splitter
	n := 0
	for {
		i := strings.IndexByte(text[n:], '\n')
		if i < 0 {
			return -1
		}
		s.line(text[n : n+i+1])
		n += i + 1
		if s.quote == 0 {
			return n
		}
	}
}

// complete returns what to write in place of the line from start on, and the
// candidates to show if that is no more than there was.
func complete(line string, candidates Completer) (start int, text string, show []Candidate) {
	before, part, start, ok := under(line)
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

// word is a candidate as one would type it. A flag is not quoted: quoted it would be
// an operand.
func (c Candidate) word() string {
	if c.Flag {
		return c.Text
	}
	return format.Word(c.Text)
}

// openWord is a word that goes on: its quote is not closed.
func openWord(c Candidate) string {
	word := c.word()
	if strings.HasPrefix(word, `"`) {
		return strings.TrimSuffix(word, `"`)
	}
	return word
}

// commonPrefix ends with a whole character.
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

// listed is the candidates as rows of a terminal: those with help one a row, the
// others in columns.
func listed(candidates []Candidate, width int) string {
	const most = 100
	more := ""
	if len(candidates) > most {
		more = fmt.Sprintf("... and %d more\r\n", len(candidates)-most)
		candidates = candidates[:most]
	}
	widest, help := 0, false
	words := make([]string, len(candidates))
	widths := make([]int, len(candidates))
	for i, c := range candidates {
		words[i] = c.word()
		for _, r := range words[i] {
			widths[i] += Width(r)
		}
		widest = max(widest, widths[i])
		help = help || c.Help != ""
	}
	var b strings.Builder
	if help {
		for i, c := range candidates {
			b.WriteString(words[i])
			if room := width - widest - 3; c.Help != "" && room > 8 {
				b.WriteString(strings.Repeat(" ", widest-widths[i]+2))
				b.WriteString(cutTo(format.Escape(c.Help), room))
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
				b.WriteString(strings.Repeat(" ", widest-widths[i]+2))
			}
		}
		b.WriteString("\r\n")
	}
	return b.String() + more
}

// cutTo shortens a text to columns.
func cutTo(text string, columns int) string {
	n := 0
	for i, r := range text {
		if n += Width(r); n > columns {
			return text[:i]
		}
	}
	return text
}
