package format

import (
	"encoding/base64"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

// A text is a string of a result on its way to a terminal. However a template
// prints it, with printf and any verb too, it comes out escaped, whereas the
// functions that encode see it as it is.
type text string

func (t text) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), Escape(t))
}

// templateName stands in the package's messages before the line.
const templateName = "template"

// A templateError is what is wrong with a template, said once: the package says
// before each message that it is of a template, and then its name, twice.
type templateError struct{ err error }

func (e *templateError) Error() string {
	where := strings.TrimPrefix(e.err.Error(), "template: "+templateName+":")
	return "output template, line " + strings.Replace(where, `executing "`+templateName+`" `, "", 1)
}

func (e *templateError) Unwrap() error { return e.err }

func parseTemplate(source string) (*template.Template, error) {
	t, err := template.New(templateName).Funcs(template.FuncMap{
		"json":   func(v any) string { return string(appendJSON(nil, v)) },
		"quote":  func(v any) string { return Quote(plain(v)) },
		"base64": func(v any) string { return base64.StdEncoding.EncodeToString([]byte(plain(v))) },
		"blank":  blank,
	}).Parse(source)
	if err != nil {
		return nil, err
	}
	for _, defined := range t.Templates() {
		if defined.Tree != nil {
			printBlank(defined.Root)
		}
	}
	return t, nil
}

func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case text:
		return string(v)
	}
	return fmt.Sprint(v)
}

func blank(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// printBlank lets every action end in the function blank: a field that a result
// does not have would be printed as <no value>.
func printBlank(node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, child := range n.Nodes {
			printBlank(child)
		}
	case *parse.IfNode:
		printBlank(n.List)
		printBlank(n.ElseList)
	case *parse.RangeNode:
		printBlank(n.List)
		printBlank(n.ElseList)
	case *parse.WithNode:
		printBlank(n.List)
		printBlank(n.ElseList)
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			call := parse.NewIdentifier("blank").SetPos(n.Pos)
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{call}})
		}
	}
}

// templateData is the object of the json output, as maps.
func (p *Printer) templateData(value any) any {
	switch v := value.(type) {
	case object:
		m := make(map[string]any, len(v))
		for _, f := range v {
			if s, ok := f.value.(string); ok {
				name, encoded := member(f.name, s)
				m[name] = p.templateData(encoded)
			} else if f.value != nil {
				m[f.name] = p.templateData(f.value)
			}
		}
		return m
	case list:
		items := make(list, len(v))
		for i, item := range v {
			items[i] = p.templateData(item)
		}
		return items
	case null:
		return nil
	case string:
		if p.terminal {
			return text(v)
		}
	}
	return value
}
