package format

import "strings"

// Context is a named connection, as printed by `context list`, `set`, `use` and `rm`.
type Context struct {
	Op        string // "list", "set", "use" or "rm"
	Name      string `json:"name,omitzero"` // empty after `context use none`
	Chosen    bool   `json:"chosen"`
	Protected bool   `json:"protected"`
	Broker    string `json:"broker,omitzero"` // URL, or "embedded"; empty if the context sets none
	Width     int    // of the longest name, for the human form
}

func (c Context) fields(o *objectWriter) {
	c.Broker = valid(c.Broker)
	o.result("context_"+c.Op, c)
}

func (c Context) human(dst []byte, s *style) []byte {
	mark := " "
	if c.Chosen {
		mark = "*"
	}
	if c.Name == "" {
		return append(dst, "no context is chosen\n"...)
	}
	line := mark + " " + s.key.Sprint(c.Name)
	if c.Op == "rm" {
		return append(append(dst, line...), "  removed\n"...)
	}
	line += strings.Repeat(" ", max(c.Width-len(c.Name), 0))
	broker := c.Broker
	if broker == "" {
		broker = "-"
	}
	dst = appendText(append(append(dst, line...), "  "...), broker)
	if c.Protected {
		dst = append(append(dst, "  "...), s.warning.Sprint("protected")...)
	}
	return append(dst, '\n')
}

// raw writes the name first, so that `cut -f 1` lists names.
func (c Context) raw(dst []byte) []byte {
	return appendRecord(dst, textOr(c.Name), when(c.Chosen, "chosen"), when(c.Protected, "protected"), textOr(c.Broker))
}

// Setting is a setting in effect and where its value comes from: a line of
// `context show`.
type Setting struct {
	Name       string `json:"name"`
	Value      string `json:"value"`
	Source     string `json:"source"`        // a flag, a variable, "context NAME" or "default"
	File       string `json:"file,omitzero"` // the file that Source is in; empty: none
	Width      int    // of the longest name, for the human form
	ValueWidth int    // of the longest value, for the human form
}

func (v Setting) fields(o *objectWriter) { o.result("setting", v) }

func (v Setting) human(dst []byte, s *style) []byte {
	value := string(appendText(nil, v.Value))
	dst = append(append(dst, s.key.Sprint(v.Name)...), strings.Repeat(" ", max(v.Width-len(v.Name), 0)+2)...)
	dst = append(append(dst, value...), strings.Repeat(" ", max(v.ValueWidth-len(value), 0)+2)...)
	source := string(appendText(nil, v.Source))
	if v.File != "" {
		source += " in " + string(appendText(nil, v.File))
	}
	return append(append(dst, s.faint.Sprint(source)...), '\n')
}

func (v Setting) raw(dst []byte) []byte {
	return appendRecord(dst, v.Name, v.Value, v.Source, textOr(v.File))
}
