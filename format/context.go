package format

import (
	"cmp"
	"strings"
)

// Context is a named connection, as printed by `context list`, `set`, `use` and `rm`.
type Context struct {
	Op        string // "list", "set", "use" or "rm"
	Name      string `json:"name,omitzero"` // empty after `context use none`
	Chosen    bool   `json:"chosen"`
	Protected bool   `json:"protected"`
	Broker    string `json:"broker,omitzero"` // URL, or "embedded"; empty if the context sets none
	Width     int    // width of the longest name, for the human form
}

func (c Context) fields(o *objectWriter) {
	c.Broker = valid(c.Broker)
	o.result("context_"+c.Op, c)
}

func (c Context) human(w *writer) {
	mark := "  "
	if c.Chosen {
		mark = "* "
	}
	switch {
	case c.Name == "":
		w.print("no context is chosen\n")
		return
	case c.Op == "rm":
		w.print(mark, w.key.Sprint(c.Name), "  removed\n")
		return
	}
	w.print(mark, w.key.Sprint(c.Name), strings.Repeat(" ", max(c.Width-len(c.Name), 0)), "  ", printable(cmp.Or(c.Broker, "-")))
	if c.Protected {
		w.print("  ", w.warning.Sprint("protected"))
	}
	w.print("\n")
}

// raw writes the name first, so that `cut -f 1` lists names.
func (c Context) raw(w *writer) {
	w.record(nonEmpty(c.Name), when(c.Chosen, "chosen"), when(c.Protected, "protected"), nonEmpty(c.Broker))
}

// Setting is a line of `context show`: a setting in effect, and the source of its value.
type Setting struct {
	Name       string `json:"name"`
	Value      string `json:"value"`
	Source     string `json:"source"`        // for example "--host", "SSCLI_URL", "context lab" or "default"
	File       string `json:"file,omitzero"` // the context file if the value comes from a context; otherwise empty
	Width      int    // width of the column Name, for the human form
	ValueWidth int    // width of the column Value, for the human form
}

func (v Setting) fields(o *objectWriter) { o.result("setting", v) }

func (v Setting) human(w *writer) {
	value, source := printable(v.Value), printable(v.Source)
	if v.File != "" {
		source += " in " + printable(v.File)
	}
	w.print(w.key.Sprint(v.Name), strings.Repeat(" ", max(v.Width-len(v.Name), 0)+2),
		value, strings.Repeat(" ", max(v.ValueWidth-len(value), 0)+2), w.faint.Sprint(source), "\n")
}

func (v Setting) raw(w *writer) { w.record(v.Name, v.Value, v.Source, nonEmpty(v.File)) }
