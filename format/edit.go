package format

import "bytes"

// EditConflict is a message for standard error: it shows how the user's text differs from the value
// that another client wrote during the edit.
type EditConflict struct {
	Key    string        `json:"key"`
	Theirs []byte        `json:"old"`              // the value now in the store
	Ours   []byte        `json:"new"`              // the value that was not written
	Fields []FieldChange `json:"fields,omitempty"` // from Theirs to Ours if both are JSON; otherwise empty
}

func (EditConflict) diagnostic() {}

func (c EditConflict) fields(o *objectWriter) { o.result("edit_conflict", c) }

func (c EditConflict) human(w *writer) {
	w.program("from the value of %s as it is now to your text:\n", BriefWord(c.Key))
	for _, f := range c.Fields {
		w.printf("    %s  %s\n", f.path(), f.arrow())
	}
	if len(c.Fields) == 0 {
		theirs, ours := differingLines(c.Theirs, c.Ours)
		w.marked("  - ", theirs)
		w.marked("  + ", ours)
	}
}

// differingLines splits two texts into lines. It omits the lines that both texts begin with or end with.
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

// maxMarked is the maximum number of lines that a conflict shows from each side.
const maxMarked = 20

// marked writes at most maxMarked lines, with mark before each of them.
func (w *writer) marked(mark string, lines [][]byte) {
	for i, line := range lines {
		if i == maxMarked {
			w.printf("%s… (%d more lines)\n", mark, len(lines)-i)
			return
		}
		w.print(mark, Escape(line), "\n")
	}
}
