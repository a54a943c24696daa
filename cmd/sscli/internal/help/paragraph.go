package help

import (
	"strings"
	"unicode/utf8"
)

// continued is the minimum indentation of a line that continues the second column of a table. An
// indented line with fewer spaces is an example, unless it has a second column.
const continued = 6

// Fill rewraps paragraphs, and the second column of tables, if they are wider than width. It does not
// change other indented lines: they are examples for the user to copy.
func Fill(text string, width int) string {
	blocks := strings.Split(text, "\n\n")
	for i, block := range blocks {
		blocks[i] = fillBlock(block, width)
	}
	return strings.Join(blocks, "\n\n")
}

func fillBlock(block string, width int) string {
	lines := strings.Split(block, "\n")
	if !isTooWide(lines, width) {
		return block
	}
	isParagraph := true
	for _, line := range lines {
		isParagraph = isParagraph && line != "" && column(line) == 0
	}
	if isParagraph {
		return fillWords("", lines, width)
	}
	var filled []string
	for len(lines) > 0 {
		at, n := column(lines[0]), 1
		for at > 0 && n < len(lines) && indentation(lines[n]) == at && column(lines[n]) == at {
			n++
		}
		item := lines[:n]
		lines = lines[n:]
		isExample := at > 0 && at < continued && indentation(item[0]) == at
		if isExample || !isTooWide(item, width) {
			filled = append(filled, item...)
			continue
		}
		term := strings.TrimSuffix(item[0], cell(item[0]))
		filled = append(filled, fillWords(term, append([]string{cell(item[0])}, item[1:]...), width))
	}
	return strings.Join(filled, "\n")
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

func isTooWide(lines []string, width int) bool {
	for _, line := range lines {
		if utf8.RuneCountInString(line) > width {
			return true
		}
	}
	return false
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// cell returns the second column of a table row. Two or more spaces separate it from the first column.
// If the line has only one column, cell returns the line without its indentation.
func cell(line string) string {
	from := indentation(line)
	if gap := strings.Index(line[from:], "  "); gap >= 0 {
		return strings.TrimLeft(line[from+gap:], " ")
	}
	return line[from:]
}

// column returns the offset, in characters, at which the text that cell returns begins in the line.
func column(line string) int {
	return utf8.RuneCountInString(line) - utf8.RuneCountInString(cell(line))
}
