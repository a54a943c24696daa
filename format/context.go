package format

import (
	"fmt"
	"strings"
)

// Context is a named connection, as printed by `context list`, `set`, `use` and `rm`.
type Context struct {
	Op        string // "list", "set", "use" or "rm"
	Name      string // empty after `context use none`
	Chosen    bool
	Protected bool
	Broker    string // URL, or "embedded"; empty if the context sets none
	Width     int    // of the longest name, for the human form
}

func (c Context) fields() object {
	return object{
		{"op", "context_" + c.Op},
		{"name", nonEmpty(c.Name)},
		{"chosen", c.Chosen},
		{"protected", c.Protected},
		{"broker", nonEmpty(valid(c.Broker))},
	}
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
	mark, protected := "-", "-"
	if c.Chosen {
		mark = "chosen"
	}
	if c.Protected {
		protected = "protected"
	}
	return fmt.Appendf(dst, "%s\t%s\t%s\t%s\n", orDash(c.Name), mark, protected, orDash(c.Broker))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return Escape(text)
}

// Setting is a setting in effect and where its value comes from: a line of
// `context show`.
type Setting struct {
	Name, Value string
	Source      string // a flag, a variable, "context NAME" or "default"
	File        string // the file with Source; empty: none
	Width       int    // of the longest name, for the human form
	ValueWidth  int    // of the longest value, for the human form
}

func (v Setting) fields() object {
	return object{
		{"op", "setting"},
		{"name", v.Name},
		{"value", v.Value},
		{"source", v.Source},
		{"file", nonEmpty(v.File)},
	}
}

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
	return fmt.Appendf(dst, "%s\t%s\t%s\t%s\n", Escape(v.Name), Escape(v.Value), Escape(v.Source), orDash(v.File))
}
