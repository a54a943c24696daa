package format

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
)

// A text is a string in a result that a template prints on a terminal. Its method Format escapes it, so
// that even printf prints it escaped. The functions json, quote and base64 encode the unescaped string.
type text string

func (t text) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), Escape(t))
}

// templateName is the template's name in the errors of text/template.
const templateName = "template"

// templateError describes an error of text/template, without the template's name, which means nothing to users.
func templateError(err error) *FormError {
	where := strings.TrimPrefix(err.Error(), "template: "+templateName+":")
	return &FormError{"template, line " + strings.Replace(where, `executing "`+templateName+`" `, "", 1)}
}

func parseTemplate(source string) (*template.Template, error) {
	t, err := template.New(templateName).Funcs(template.FuncMap{
		"json":   func(v any) string { return string(appendJSON(nil, v)) },
		"quote":  func(v any) string { return Quote(unescaped(v)) },
		"base64": func(v any) string { return base64.StdEncoding.EncodeToString([]byte(unescaped(v))) },
		"blank":  blank,
	}).Parse(source)
	if err != nil {
		return nil, err
	}
	if err := checkFields(t.Tree, t.Root, true); err != nil {
		return nil, err
	}
	for _, defined := range t.Templates() {
		if defined.Tree != nil {
			printBlank(defined.Root)
		}
	}
	return t, nil
}

// checkFields returns an error if node names a field that no result has. dot is true if, at this node,
// . is the result. Fields of any other value are not checked, and neither are the bodies of {{define}}.
func checkFields(tree *parse.Tree, node parse.Node, dot bool) error {
	field := func(n parse.Node, path []string) error {
		if why := badField(path); why != "" {
			where, _ := tree.ErrorContext(n)
			return fmt.Errorf("template: %s: %s", where, why)
		}
		return nil
	}
	branch := func(n *parse.BranchNode, inner bool) error {
		if err := checkFields(tree, n.Pipe, dot); err != nil {
			return err
		}
		if err := checkFields(tree, n.List, inner); err != nil || n.ElseList == nil {
			return err
		}
		return checkFields(tree, n.ElseList, dot)
	}
	var below []parse.Node
	switch n := node.(type) {
	case *parse.FieldNode:
		if dot {
			return field(n, n.Ident)
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			return field(n, n.Ident[1:])
		}
	case *parse.IfNode:
		return branch(&n.BranchNode, dot)
	case *parse.RangeNode:
		return branch(&n.BranchNode, false)
	case *parse.WithNode:
		return branch(&n.BranchNode, false)
	case *parse.ListNode:
		below = n.Nodes
	case *parse.ActionNode:
		below = []parse.Node{n.Pipe}
	case *parse.TemplateNode:
		if n.Pipe != nil {
			below = []parse.Node{n.Pipe}
		}
	case *parse.ChainNode:
		below = []parse.Node{n.Node}
	case *parse.CommandNode:
		below = n.Args
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			below = append(below, c)
		}
	}
	for _, b := range below {
		if err := checkFields(tree, b, dot); err != nil {
			return err
		}
	}
	return nil
}

// badField returns an error message if no result has the field at path, and otherwise "". A path of
// several names is the path of a field in a nested object.
func badField(path []string) string {
	no := "no result has the field " + strings.Join(path, ".")
	if !hasField(path[0]) {
		return no
	}
	if len(path) == 1 {
		return ""
	}
	parts, ok := objectParts(path[0])
	names := strings.Fields(parts)
	switch {
	case !ok:
		return no + ": " + path[0] + " is no object"
	case len(names) > 0 && (len(path) > 2 || !slices.Contains(names, path[1])):
		return no + ": " + path[0] + " has " + strings.Join(names, ", ")
	}
	return ""
}

// unescaped converts the argument of a template function to a string, without escaping it.
func unescaped(v any) string {
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

// blank returns v, or "" for nil.
func blank(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// printBlank pipes every action that prints into the function blank. Otherwise text/template would
// print <no value> for a field that the result lacks.
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

// templateData converts a value of the tree that collect returns, for use in a template. Objects
// become maps. A string that is not UTF-8 stays unchanged, and a second field, whose name ends in _b64,
// contains it in base64.
func (p *Printer) templateData(value any) any {
	switch v := value.(type) {
	case object:
		m := make(map[string]any, len(v))
		for _, f := range v {
			if s, ok := f.value.(string); ok {
				m[f.name] = p.templateData(s)
				if name, encoded := member(f.name, s); name != f.name {
					m[name] = encoded
				}
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
	case time.Time:
		return p.templateData(string(appendTime(nil, v)))
	case Version:
		return p.templateData(collect(versionFields{v}))
	case jsonText:
		return p.templateData(string(appendJSONText(nil, string(v))))
	case string:
		if p.terminal {
			return text(v)
		}
	}
	return value
}
