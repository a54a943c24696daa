package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sscli/sscli/internal/yamltext"
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

// maxFile is the maximum size of a file, in bytes.
const maxFile = 4 << 20

// documents parses the YAML or JSON documents of a file. Nothing else in this package knows the YAML
// library.
func documents(name string, source []byte) (docs []*node, err error) {
	wrong := func(line int, message string) error { return &SyntaxError{name, message, line} }
	switch {
	case len(source) > maxFile:
		return nil, wrong(1, "larger than 4 MiB")
	case json.Valid(source): // JSON may be indented with tabs, but YAML may not
		source = bytes.ReplaceAll(source, []byte("\t"), []byte(" "))
	}
	roots, err := yamltext.Parse(context.Background(), source)
	if e, ok := errors.AsType[*yamltext.Error](err); ok {
		line := e.Line
		e.Line = 0
		return nil, wrong(line, "not YAML: "+e.Error())
	}
	for _, root := range roots {
		docs = append(docs, convert(root))
	}
	return docs, err
}

func convert(from *yamltext.Node) *node {
	n := &node{line: from.Line}
	if items, ok := yamltext.Items(from); ok {
		n.kind = sequence
		for _, item := range items {
			n.items = append(n.items, convert(item))
		}
		return n
	}
	if yamltext.IsMapping(from) {
		n.kind = mapping
		for key, value := range yamltext.Members(from) {
			n.members = append(n.members, member{key.Value, key.Line, convert(value)})
		}
		return n
	}
	if value, ok := yamltext.Scalar(from); ok {
		n.kind, n.text = literal, value
		if yamltext.IsString(from) {
			n.kind = text
		}
	}
	return n
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
