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
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	yaml "github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// parse reads a file of contexts:
//
//	current: lab
//	contexts:
//	  lab:
//	    url: mqtts://lab.example
//	    ca-file: /etc/lab/ca.crt
//	    protected: true
//
// The error is a *FileError. It repeats no value, because a value may be a secret that was put
// there by mistake.
func parse(text []byte, file string) (Contexts, error) {
	p := parser{file}
	var c Contexts
	root, err := p.document(text)
	if err != nil {
		return c, err
	}
	err = p.mapping(root, "", func(key, value node) error {
		switch key.text {
		case "current":
			name, err := p.text(value, "current")
			c.Chosen = name
			return err
		case "contexts":
			c.Named, err = p.contexts(value)
			return err
		}
		return p.bad(key, quoted(key.text), "unknown key: want current or contexts")
	})
	return c, err
}

type parser struct{ file string }

func (p parser) bad(n node, key, why string) error {
	return &FileError{File: p.file, Line: n.line, Key: key, Why: why}
}

// document returns the one document of a file, a null if there is none.
func (p parser) document(text []byte) (node, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		return node{}, &FileError{File: p.file, Why: "not YAML: want UTF-8"}
	}
	tokens, err := p.tokens(string(text))
	if err != nil {
		return node{}, err
	}
	// parser.mapping refuses duplicates, in the same words at each level.
	file, err := yaml.Parse(tokens, 0, yaml.AllowDuplicateMapKey())
	if err != nil {
		return node{}, p.syntax(err)
	}
	body := ast.Node(nil)
	documents := 0
	for _, d := range file.Docs {
		if _, ok := d.Body.(*ast.DirectiveNode); ok {
			continue
		}
		if documents++; documents > 1 {
			return node{}, &FileError{File: p.file, Why: "there is more than one document: want one"}
		}
		body = d.Body
	}
	return newNode(body, 1), nil
}

// What a file of contexts has at most. The library takes memory for each token, for the path
// to each node, and on the stack for each level, so a hostile file of 1 MiB could cost
// gigabytes.
const (
	maxTokens = 1 << 15
	maxFlow   = 16  // brackets and braces within each other
	maxIndent = 32  // columns
	maxKey    = 128 // bytes
)

// tokens splits a text into tokens, as long as they can occur in a file of contexts.
func (p parser) tokens(text string) (token.Tokens, error) {
	var s scanner.Scanner
	s.Init(text)
	var all token.Tokens
	flow := 0
	for {
		some, err := s.Scan()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		for _, t := range some {
			var start *token.Token // of an entry of a mapping or a sequence
			switch t.Type {
			case token.InvalidType:
				return nil, &FileError{File: p.file, Line: t.Position.Line, Why: notYAML(t.Error)}
			case token.MappingStartType, token.SequenceStartType:
				flow++
			case token.MappingEndType, token.SequenceEndType:
				flow = max(flow-1, 0)
			case token.MappingValueType:
				start = t
				if n := len(all); n > 0 {
					start = all[n-1] // the key
				}
				if len(start.Value) > maxKey {
					return nil, &FileError{File: p.file, Line: t.Position.Line, Why: "a key is too long"}
				}
			case token.SequenceEntryType, token.MappingKeyType:
				start = t
			}
			if flow > maxFlow || flow == 0 && start != nil && start.Position.Column > maxIndent {
				return nil, &FileError{File: p.file, Line: t.Position.Line, Why: "nested too deeply"}
			}
			if all.Add(t); len(all) > maxTokens {
				return nil, &FileError{File: p.file, Line: t.Position.Line, Why: "too long for a file of contexts"}
			}
		}
		if err != nil {
			return nil, &FileError{File: p.file, Why: "not YAML"}
		}
	}
}

func (p parser) syntax(err error) error {
	e := &FileError{File: p.file, Why: "not YAML"}
	var at interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &at) {
		e.Why = notYAML(at.GetMessage())
		if t := at.GetToken(); t != nil && t.Position != nil {
			e.Line = t.Position.Line
		}
	}
	return e
}

// notYAML returns what is wrong, by a message of the library. A message repeats a part of the
// file only in quotes. That part may belong to a secret, so the message is cut before it.
func notYAML(message string) string {
	message, _, _ = strings.Cut(message, "\"")
	if before, _, found := strings.Cut(message, "character '"); found { // it repeats one character
		message = before + "character"
	}
	if message = strings.TrimSpace(message); message == "" || strings.ContainsFunc(message, unicode.IsControl) {
		return "not YAML"
	}
	return "not YAML: " + message
}

// A node is a value of the file.
type node struct {
	line    int
	kind    kind
	text    string // of a scalar, as it is written
	tagged  bool   // a scalar with a tag of another type
	entries []*ast.MappingValueNode
}

type kind int

const (
	kindOther kind = iota // a sequence, an alias or a scalar with a tag of its own
	kindMapping
	kindNull
	kindBool
	kindText
)

// newNode returns the value at n, with its line if it has no token.
func newNode(n ast.Node, line int) node {
	v := node{line: line}
	if n == nil {
		v.kind = kindNull
		return v
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		v.line = t.Position.Line
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		v.kind, v.entries = kindMapping, n.Values
	case *ast.MappingValueNode:
		v.kind, v.entries = kindMapping, []*ast.MappingValueNode{n}
	case *ast.NullNode:
		v.kind = kindNull
	case *ast.BoolNode:
		v.kind, v.text = kindBool, n.Token.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode, *ast.MergeKeyNode:
		v.kind, v.text = kindText, n.GetToken().Value
	case *ast.StringNode:
		v.kind, v.text = kindText, n.Value
	case *ast.LiteralNode:
		v.kind, v.text = kindText, n.Value.Value
	case *ast.AnchorNode:
		return newNode(n.Value, v.line)
	case *ast.MappingKeyNode:
		return newNode(n.Value, v.line)
	case *ast.TagNode:
		return tagged(n.Start.Value, newNode(n.Value, v.line))
	}
	return v
}

// tagged returns a value with a tag.
func tagged(tag string, v node) node {
	switch {
	case v.kind == kindMapping || v.kind == kindOther:
	case tag == "!!null":
		v.kind = kindNull
	case tag == "!!bool":
		v.kind = kindBool
	case tag == "!!str", tag == "!!int", tag == "!!float", tag == "!!timestamp":
		v.kind = kindText
	default:
		v.kind, v.tagged = kindOther, true
	}
	return v
}

// mapping calls do for each key and its value, and refuses a key that occurs twice. A null is
// an empty mapping.
func (p parser) mapping(n node, name string, do func(key, value node) error) error {
	if n.kind == kindNull {
		return nil
	}
	if n.kind != kindMapping {
		return p.bad(n, name, "want keys with values")
	}
	seen := make(map[string]bool)
	for _, e := range n.entries {
		key := newNode(e.Key, n.line)
		value := newNode(e.Value, key.line)
		if key.kind != kindText && key.kind != kindBool {
			return p.bad(key, name, "want a name for a key")
		}
		if seen[key.text] {
			return p.bad(key, join(name, quoted(key.text)), "occurs twice")
		}
		seen[key.text] = true
		if err := do(key, value); err != nil {
			return err
		}
	}
	return nil
}

func join(name, key string) string {
	if name == "" {
		return key
	}
	return name + "." + key
}

// textOf reads a scalar as it is written; a null is empty.
func (p parser) text(n node, key string) (string, error) {
	switch {
	case n.kind == kindNull:
		return "", nil
	case n.kind == kindText || n.kind == kindBool:
		return n.text, nil
	case n.tagged:
		return "", p.bad(n, key, "want plain text, without a tag")
	}
	return "", p.bad(n, key, "want text")
}

func (p parser) contexts(n node) (map[string]Context, error) {
	named := make(map[string]Context)
	err := p.mapping(n, "contexts", func(key, value node) (err error) {
		if bad, ok := errors.AsType[*Error](CheckName(key.text)); ok {
			return p.bad(key, join("contexts", quoted(key.text)), bad.Why)
		}
		named[key.text], err = p.context(value, join("contexts", key.text))
		return err
	})
	return named, err
}

func (p parser) context(n node, name string) (Context, error) {
	c := Context{Values: make(map[string]string)}
	err := p.mapping(n, name, func(key, value node) error {
		full := join(name, key.text)
		s, known := findSetting(key.text)
		if key.text == "protected" {
			s, known = setting{flag: key.text}, true
		}
		if !known {
			return p.bad(key, join(name, quoted(key.text)), unknownKey(key.text))
		}
		text, err := p.text(value, full)
		switch {
		case err != nil:
			return err
		case s.isSwitch() && value.kind != kindBool:
			return p.bad(value, full, "want true or false")
		case !storable(text):
			return p.bad(value, full, "want one line of text")
		case s.isSwitch():
			text = strings.ToLower(text)
		}
		if key.text == "protected" {
			c.Protected = text == "true"
		} else {
			c.Values[s.flag] = text
		}
		return nil
	})
	return c, err
}

// unknownKey says what to write in place of an unknown key.
func unknownKey(key string) string {
	file := map[string]string{"password": "password-file", "key-password": "key-password-file", "sat": "sat-file", "token": "sat-file"}
	if instead, ok := file[strings.ToLower(strings.ReplaceAll(key, "_", "-"))]; ok {
		return "no secrets here: want " + instead + ": FILE"
	}
	for _, s := range settings() {
		if s.flag == key {
			return "not a connection setting, so it cannot be in a context: want --" + key
		}
	}
	return "unknown key: want the name of a connection flag, or protected" + didYouMean(key, keys())
}

// render writes contexts as parse reads them.
func render(c Contexts) []byte {
	var b []byte
	if c.Chosen != "" {
		b = append(b, "current: "+scalar(c.Chosen)+"\n"...)
	}
	if len(c.Named) > 0 {
		b = append(b, "contexts:\n"...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Named)) {
		values := make(map[string]string)
		for flag, value := range c.Named[name].Values {
			values[flag] = plain(flag, value)
		}
		if c.Named[name].Protected {
			values["protected"] = "true"
		}
		if len(values) == 0 {
			b = append(b, "  "+scalar(name)+": {}\n"...)
			continue
		}
		b = append(b, "  "+scalar(name)+":\n"...)
		for _, flag := range slices.Sorted(maps.Keys(values)) {
			b = append(b, "    "+flag+": "+values[flag]+"\n"...)
		}
	}
	if len(b) == 0 {
		b = append(b, "{}\n"...)
	}
	return b
}

// plain returns a value as YAML's own type: a bool for a switch, an int for a port.
func plain(flag, value string) string {
	if s, ok := findSetting(flag); ok && s.isSwitch() {
		return strconv.FormatBool(value == "true")
	}
	if n, err := strconv.Atoi(value); flag == "port" && err == nil && strconv.Itoa(n) == value {
		return value
	}
	return scalar(value)
}

// scalar returns text as a scalar, in quotes unless every reader takes it for text without
// them. The text is storable, so it needs no other escapes than Go and YAML have in common.
func scalar(text string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._~/:@%+=,;$ ()?&", r)
	}
	if token.IsNeedQuoted(text) || strings.ContainsFunc(text, odd) || strings.ContainsAny(text[:1], "-?~%") {
		return strconv.Quote(text)
	}
	return text
}
