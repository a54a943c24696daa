package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A node is a value in a YAML or JSON document.
type node struct {
	line    int
	kind    kind
	text    string // of a scalar
	members []member
	items   []*node
}

type member struct {
	name  string
	line  int
	value *node
}

type kind int

const (
	null    kind = iota // also a missing value
	text                // a string
	literal             // a number or a boolean
	mapping
	sequence
)

// A SyntaxError reports a file that is not YAML, or that has no authorization.
type SyntaxError struct {
	File, Message string
	Line          int
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }

const (
	maxFile  = 4 << 20 // bytes
	maxDepth = 100
	maxNodes = 1 << 20
)

// documents parses the YAML or JSON documents of a file. Nothing else in this package knows the YAML
// library.
func documents(name string, source []byte) (docs []*node, err error) {
	wrong := func(line int, message string) error { return &SyntaxError{name, message, line} }
	source = bytes.TrimPrefix(source, []byte("\ufeff"))
	switch {
	case len(source) > maxFile:
		return nil, wrong(1, "larger than 4 MiB")
	case !utf8.Valid(source):
		return nil, wrong(1, "not YAML: expected UTF-8")
	case json.Valid(source): // JSON may be indented with tabs, but YAML may not
		source = bytes.ReplaceAll(source, []byte("\t"), []byte(" "))
	}
	if line := deep(source); line > 0 {
		return nil, wrong(line, fmt.Sprintf("nested more than %d times", maxDepth))
	}
	parsed, err := parser.ParseBytes(source, 0)
	if err != nil {
		line, message := 1, err.Error()
		if at, ok := errors.AsType[yaml.Error](err); ok {
			message = at.GetMessage()
			if token := at.GetToken(); token != nil {
				line = token.Position.Line
			}
		}
		message, _, _ = strings.Cut(message, "\n")
		return nil, wrong(line, "not YAML: "+message)
	}
	for _, d := range parsed.Docs {
		if d.Body == nil {
			continue
		}
		c := converter{anchors: make(map[string]*node), left: maxNodes}
		docs = append(docs, c.convert(d.Body))
		if c.left <= 0 {
			return nil, wrong(1, "too many values")
		}
	}
	return docs, nil
}

// deep returns the first line that is nested too deeply to parse, or 0.
func deep(source []byte) int {
	depth, n := 0, 0
	for line := range bytes.Lines(source) {
		n++
		indent := len(line) - len(bytes.TrimLeft(line, " -?:"))
		for _, c := range line {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			if depth > maxDepth || indent/2 > maxDepth {
				return n
			}
		}
	}
	return 0
}

type converter struct {
	anchors map[string]*node
	left    int // number of nodes that may still be made
}

func (c *converter) convert(from ast.Node) *node {
	n := &node{line: 1}
	if from == nil {
		return n
	}
	if token := from.GetToken(); token != nil {
		n.line = token.Position.Line
	}
	if c.left--; c.left <= 0 {
		return n
	}
	pair := func(m *ast.MappingValueNode) {
		key := m.Key.GetToken()
		n.line = min(n.line, key.Position.Line)
		n.members = append(n.members, member{key.Value, key.Position.Line, c.convert(m.Value)})
	}
	switch from := from.(type) {
	case *ast.AnchorNode:
		n = c.convert(from.Value)
		c.anchors[from.Name.GetToken().Value] = n
	case *ast.AliasNode:
		if known := c.anchors[from.Value.GetToken().Value]; known != nil {
			return c.copy(known, n.line)
		}
	case *ast.TagNode:
		return c.convert(from.Value)
	case *ast.MappingNode:
		n.kind = mapping
		for i, m := range from.Values {
			if i == 0 {
				n.line = m.Key.GetToken().Position.Line
			}
			pair(m)
		}
	case *ast.MappingValueNode:
		n.kind, n.line = mapping, from.Key.GetToken().Position.Line
		pair(from)
	case *ast.SequenceNode:
		n.kind = sequence
		for _, item := range from.Values {
			n.items = append(n.items, c.convert(item))
		}
	case *ast.StringNode:
		n.kind, n.text = text, from.Value
	case *ast.LiteralNode:
		n.kind, n.text = text, from.Value.Value
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = literal, from.GetToken().Value
	}
	return n
}

// copy copies a node for an alias on a line, so that aliases cannot make a tree larger than allowed.
func (c *converter) copy(n *node, line int) *node {
	if c.left--; c.left <= 0 {
		return &node{line: line}
	}
	to := *n
	to.line, to.members, to.items = line, nil, nil
	for _, m := range n.members {
		to.members = append(to.members, member{m.name, line, c.copy(m.value, line)})
	}
	for _, item := range n.items {
		to.items = append(to.items, c.copy(item, line))
	}
	return &to
}

// get returns the value of a member, or nil if there is none or if it is null.
func (n *node) get(path ...string) *node {
	for _, name := range path {
		if n == nil {
			return nil
		}
		var found *node
		for _, m := range n.members {
			if m.name == name && m.value.kind != null {
				found = m.value
			}
		}
		n = found
	}
	return n
}
