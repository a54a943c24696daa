package help

import "strings"

// A Block is a part of a help text. Exactly one of its fields is set.
type Block struct {
	Prose   string      // a paragraph, as one line
	Rows    [][2]string // a table of terms and their meanings
	Literal []string    // preformatted lines
}

// Blocks splits a help text. Lines that begin at the left margin and have no two blanks in a row are
// prose. Other lines are a table if tableRows can parse them, and otherwise literal.
func Blocks(text string) []Block {
	var list []Block
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(strings.Trim(text, "\n"), "\t", "    "), "\n\n") {
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		for len(lines) > 0 {
			laidOut := isLaidOut(lines, 0)
			end := 1
			for end < len(lines) && isLaidOut(lines, end) == laidOut {
				end++
			}
			run := lines[:end]
			lines = lines[end:]
			if !laidOut {
				// The help of cobra's own command completion has Markdown headings.
				list = append(list, Block{Prose: strings.TrimPrefix(strings.Join(run, " "), "#### ")})
				continue
			}
			run = strings.Split(Outdent(strings.Join(run, "\n")), "\n")
			if rows := tableRows(run); rows != nil {
				list = append(list, Block{Rows: rows})
			} else {
				list = append(list, Block{Literal: run})
			}
		}
	}
	return list
}

// isLaidOut reports whether the i-th line belongs to a table or is preformatted.
func isLaidOut(lines []string, i int) bool {
	line := lines[i]
	if strings.HasPrefix(line, " ") || strings.Contains(strings.ReplaceAll(line, ".  ", ". "), "  ") {
		return true
	}
	// A term may be alone on its line, with its meaning indented on the next line.
	return !strings.Contains(line, " ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  ")
}

// tableRows parses lines that each have a term, two or more blanks, and a meaning. The meaning may
// begin or continue on indented lines. tableRows returns nil if the lines are not a table.
func tableRows(lines []string) (rows [][2]string) {
	for i, line := range lines {
		// Help indents a flag that has no short form.
		term, meaning, ok := strings.Cut(strings.TrimLeft(line, " "), "  ")
		switch {
		case strings.HasPrefix(line, " ") && !strings.HasPrefix(strings.TrimSpace(line), "--"):
			if len(rows) == 0 {
				return nil
			}
			last := &rows[len(rows)-1]
			last[1] = strings.TrimSpace(last[1] + " " + strings.TrimSpace(line))
		case ok:
			rows = append(rows, [2]string{term, strings.TrimSpace(meaning)})
		case i+1 < len(lines) && strings.HasPrefix(lines[i+1], " "):
			rows = append(rows, [2]string{term, ""})
		default:
			return nil
		}
	}
	return rows
}

// Outdent removes the common indentation of lines, and blanks at their ends.
func Outdent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	indent := len(text)
	for _, line := range lines {
		if bare := strings.TrimLeft(line, " "); bare != "" {
			indent = min(indent, len(line)-len(bare))
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(indent, len(line)):], " ")
	}
	return strings.Join(lines, "\n")
}
