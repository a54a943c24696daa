package help

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Fill rewraps the paragraphs and tables of a help text that are wider than width. It does not wrap other lines, which
// are examples for the user to copy.
func Fill(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !slices.ContainsFunc(strings.Split(p, "\n"), func(line string) bool { return utf8.RuneCountInString(line) > width }) {
			continue
		}
		var filled []string
		for _, b := range Blocks(p) {
			switch {
			case b.Rows != nil:
				filled = append(filled, strings.TrimSuffix(Rows(b.Rows, width), "\n"))
			case b.Literal != nil:
				filled = append(filled, "  "+strings.Join(b.Literal, "\n  "))
			default:
				filled = append(filled, fillWords("", []string{b.Prose}, width))
			}
		}
		paragraphs[i] = strings.Join(filled, "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}

// fillWords returns a term followed by the words of lines, wrapped to width. The lines after the
// first are indented by the width of the term.
func fillWords(term string, lines []string, width int) string {
	begin := utf8.RuneCountInString(term)
	var b strings.Builder
	b.WriteString(term)
	at, first := begin, true
	for word := range strings.FieldsSeq(strings.Join(lines, " ")) {
		n := utf8.RuneCountInString(word)
		switch {
		case first:
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", begin))
			at = begin
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at, first = at+n, false
	}
	return b.String()
}
