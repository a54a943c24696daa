package format

import (
	"bytes"
	"fmt"
)

// EditConflict says, on standard error, how an edited text differs from the value that another
// client wrote meanwhile.
type EditConflict struct {
	Key    string        `json:"key"`
	Theirs []byte        `json:"old"`              // the present value
	Ours   []byte        `json:"new"`              // the value that was not written
	Fields []FieldChange `json:"fields,omitempty"` // from Theirs to Ours if both are JSON; otherwise empty
}

func (EditConflict) diagnostic() {}

func (c EditConflict) fields(o *objectWriter) { o.result("edit_conflict", c) }

func (c EditConflict) human(dst []byte, s *style) []byte {
	dst = fmt.Appendf(s.program(dst), "from the value of %s as it is now to your text:\n", BriefWord(c.Key))
	for _, f := range c.Fields {
		dst = fmt.Appendf(dst, "    %s  %s\n", f.path(), f.arrow())
	}
	if len(c.Fields) > 0 {
		return dst
	}
	theirs, ours := differingLines(c.Theirs, c.Ours)
	dst = appendMarked(dst, "  - ", theirs)
	return appendMarked(dst, "  + ", ours)
}

// differingLines returns the lines of two texts without their common first and last lines.
func differingLines(a, b []byte) (inA, inB [][]byte) {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for len(x) > 0 && len(y) > 0 && bytes.Equal(x[0], y[0]) {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && bytes.Equal(x[len(x)-1], y[len(y)-1]) {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return x, y
}

// maxMarked is the maximum number of lines that a conflict shows of each side.
const maxMarked = 20

func appendMarked(dst []byte, mark string, lines [][]byte) []byte {
	for i, line := range lines {
		if i == maxMarked {
			return fmt.Appendf(dst, "%s… (%d more lines)\n", mark, len(lines)-i)
		}
		dst = append(append(append(dst, mark...), Escape(line)...), '\n')
	}
	return dst
}
