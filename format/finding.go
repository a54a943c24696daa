package format

import "strings"

// Finding is a mistake that `dataset check`, `policy check` or `check --lint` found in a file.
type Finding struct {
	By           string // dataset, policy or check
	ID           string // of its kind, such as SS014; empty = kinds have none
	File         string
	Line, Column int    // 0 = not known
	Severity     string // info, warning or error; empty = findings have none
	Message      string
	Hint         string // how to fix it; empty = no suggestion
}

func (f Finding) fields(o *objectWriter) {
	isCheck := f.By == "check"
	o.add("op", f.By+"_finding")
	o.add("id", nonEmpty(f.ID))
	o.add("file", f.File)
	o.add("line", when(!isCheck || f.Line > 0, f.Line))
	o.add("column", when(f.Column > 0, f.Column))
	o.add("severity", nonEmpty(f.Severity))
	o.add("message", f.Message)
	o.add("hint", when(!isCheck, f.Hint))
}

func (f Finding) human(w *writer) {
	parts := []string{Location(f.File, f.Line, f.Column)}
	switch {
	case f.Severity == "error":
		parts = append(parts, w.fail.Sprint(f.Severity), f.ID)
	case f.Severity != "":
		parts = append(parts, f.Severity, f.ID)
	}
	w.print(strings.Join(append(parts, printable(f.Message)), ": "))
	if f.Hint != "" {
		w.printf("; %s", printable(f.Hint))
	}
	w.print("\n")
}
