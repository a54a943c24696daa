package config

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A document is the content of a context file:
//
//	current: lab
//	contexts:
//	  lab:
//	    url: mqtts://lab.example
//	    ca-file: /etc/lab/ca.crt
//	    protected: true
type document struct {
	Current  value                       `yaml:"current"`
	Contexts map[string]map[string]value `yaml:"contexts"`
}

// A value is a scalar in a document. The zero value is null.
type value struct {
	text   string // as written in the file, because a number may be meant as text
	isBool bool
	line   int
}

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (v *value) UnmarshalYAML(n ast.Node) error {
	v.line = n.GetToken().Position.Line
	var ok bool
	if v.text, ok = Scalar(n); !ok {
		return &FileError{Line: v.line, Key: pathOf(n), Why: "expected plain text"}
	}
	_, v.isBool = n.(*ast.BoolNode)
	return nil
}

// Scalar returns the text of a scalar in a YAML document. It returns a number as written in the
// document, because a number may be meant as text. ok is false for null and for nodes that are not
// scalars.
func Scalar(n ast.Node) (text string, ok bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.BoolNode:
		return strings.ToLower(n.Token.Value), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// parse parses the text of a context file. The error is a *FileError that contains no value from the
// file, because a value may be a secret that was put there by mistake.
func parse(text []byte, file string) (Contexts, error) {
	d, err := decode(bytes.TrimPrefix(text, []byte("\ufeff")))
	c := Contexts{Chosen: d.Current.text}
	for _, name := range slices.Sorted(maps.Keys(d.Contexts)) {
		if err != nil {
			break
		}
		if c.Named == nil {
			c.Named = make(map[string]Context)
		}
		c.Named[name], err = newContext(name, d.Contexts[name])
	}
	if e, ok := errors.AsType[*FileError](err); ok {
		e.File = file
		if e.Line == 0 && e.path != "" { // UnmarshalYAML is not called for null or for the name of a context
			e.Line, _ = locate(text, func(n ast.Node) bool { return pathOf(n) == e.path })
		}
	}
	return c, err
}

// locate returns the line and the path of the first node that matches. If there is none, it returns
// 0 and "".
func locate(text []byte, match func(ast.Node) bool) (line int, path string) {
	f, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return 0, ""
	}
	for _, d := range f.Docs {
		if d.Body == nil { // an empty document
			continue
		}
		ast.Walk(visitor(func(n ast.Node) {
			if line == 0 && match(n) {
				line, path = n.GetToken().Position.Line, pathOf(n)
			}
		}), d.Body)
	}
	return line, path
}

// A visitor is called for each node that [ast.Walk] visits, except nodes without a token.
type visitor func(ast.Node)

// Visit implements [ast.Visitor].
func (v visitor) Visit(n ast.Node) ast.Visitor {
	if n.GetToken() != nil {
		v(n)
	}
	return v
}

// pathOf returns the keys that lead to a node, such as contexts.lab.url; empty for the root.
func pathOf(n ast.Node) string {
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(n.GetPath(), "$"), "."), "'", "")
}

// decode parses a text that has at most one document.
func decode(text []byte) (d document, err error) {
	if err := checkLimits(text); err != nil {
		return d, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	if err = decoder.Decode(&d); err == io.EOF {
		return d, nil
	} else if err != nil {
		return d, syntaxError(text, err)
	}
	if err := decoder.Decode(new(any)); err != io.EOF {
		return d, &FileError{Why: "there is more than one document"}
	}
	return d, nil
}

// syntaxError converts an error of the YAML library to a *FileError.
func syntaxError(text []byte, err error) error {
	if e, ok := errors.AsType[*FileError](err); ok {
		return e
	}
	at, ok := errors.AsType[yaml.Error](err)
	if !ok || at.GetToken() == nil {
		return &FileError{Why: "not YAML"}
	}
	token := at.GetToken()
	line, key := token.Position.Line, quoted(token.Value)
	_, path := locate(text, func(n ast.Node) bool { return n.GetToken().Position.Offset == token.Position.Offset })
	if !storable(path) { // not found, or not printable
		path = ""
	}
	// The message quotes text from the file, which may be part of a secret: cut the quote off.
	message, _, _ := strings.Cut(at.GetMessage(), `"`)
	if before, _, found := strings.Cut(message, "character '"); found {
		message = before + "character"
	}
	switch at.(type) {
	case *yaml.UnknownFieldError:
		return &FileError{Line: line, Key: key, Why: "unknown key: expected current or contexts"}
	case *yaml.UnexpectedNodeTypeError:
		return &FileError{Line: line, Key: path, Why: "expected keys with values"}
	}
	switch {
	case strings.HasPrefix(message, "mapping key "):
		if parent, found := strings.CutSuffix(path, token.Value); found {
			key = parent + key
		}
		return &FileError{Line: line, Key: key, Why: "occurs twice"}
	case strings.ContainsFunc(message, unicode.IsControl):
		return &FileError{Line: line, Why: "not YAML"}
	}
	return &FileError{Line: line, Why: "not YAML: " + strings.TrimSpace(message)}
}

// render returns contexts as the text of a context file.
func render(c Contexts) ([]byte, error) {
	type file struct {
		Current  string                    `yaml:"current,omitempty"`
		Contexts map[string]map[string]any `yaml:"contexts,omitempty"`
	}
	f := file{c.Chosen, make(map[string]map[string]any)}
	for name, context := range c.Named {
		values := make(map[string]any)
		for key, text := range context.Values {
			values[key] = text
			if s, _ := findSetting(key); s.isSwitch() {
				values[key] = text == "true"
			} else if n, err := strconv.Atoi(text); key == "port" && err == nil && strconv.Itoa(n) == text {
				values[key] = n
			}
		}
		if context.Protected {
			values["protected"] = true
		}
		f.Contexts[name] = values
	}
	return yaml.Marshal(f)
}
