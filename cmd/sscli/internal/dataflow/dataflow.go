// Package dataflow reads the parts of data flow definitions that concern data sets: the datasets of a
// data flow or data flow graph, and the fields $context(ALIAS).FIELD in the rules that use them.
//
//	file := dataflow.Read(text)
//	for _, d := range file.Datasets {
//		fmt.Println(d.Line, d.Key, d.Alias, d.Fields)
//	}
//	for _, f := range file.Findings { … }
//
// A definition is YAML or JSON: a resource of kind Dataflow or DataflowGraph, an ARM template, or the
// rules alone. Read looks for the names datasets and inputs at any depth, also in the rules that a
// graph contains as a string, and ignores everything else.
//
// Read follows the documentation of data flows. A finding is something that the documentation
// excludes. A note is something that the documentation leaves open.
package dataflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// A File holds the data sets that a definition names, and what Read found wrong or unclear about them.
type File struct {
	Datasets []*Dataset
	Findings []Finding
	Notes    []Finding // things that cannot be checked
}

// A Finding is a mistake in a file, or a note about it.
type Finding struct {
	Line    int // from 1
	Message string
	Hint    string // how to correct it; may be empty
}

// A Dataset is an element of a list called datasets.
type Dataset struct {
	Line   int
	Key    string
	Alias  string       // the name that rules use; by default the key
	Fields []Field      // the fields of its records that the definition uses
	On     dataset.Path // the match field; nil if there is none, or if the expression is not $1 == $2
}

// A Field is a field of the records of a data set.
type Field struct {
	Line   int
	Path   dataset.Path
	Object bool // $context(ALIAS).a.* copies all fields of the object; an empty Path is the record itself
}

// A reader reads a definition.
type reader struct {
	file  File
	first int  // number of lines in the file before the text
	one   bool // lines of the text are not lines of the file: findings are on line first+1
	inner bool // the text is a string in a definition
}

// Read reads a definition.
func Read(text []byte) File {
	var r reader
	r.read(text)
	return r.file
}

// read parses text, which is a whole definition or the rules that a graph contains as a string, and
// adds what it finds to r.file.
func (r *reader) read(text []byte) {
	if json.Valid(text) { // JSON may be indented with tabs, but YAML may not
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	if err := tooDeep(text); err != nil {
		r.find(1, err.Error(), "")
		return
	}
	f, err := parser.ParseBytes(text, 0)
	if err != nil {
		line, message := 1, err.Error()
		if at, ok := errors.AsType[yaml.Error](err); ok {
			message = at.GetMessage()
			if token := at.GetToken(); token != nil {
				line = token.Position.Line
			}
		}
		message, _, _ = strings.Cut(message, "\n")
		r.find(line, "not YAML: "+message, "")
		return
	}
	for _, d := range f.Docs {
		if d.Body != nil {
			r.walk(d.Body, "", nil)
		}
	}
}

// maxDepth is the maximum nesting depth of a definition.
const maxDepth = 200

// tooDeep returns an error if brackets or indentation are nested deeper than maxDepth. It runs before
// the text is parsed.
func tooDeep(text []byte) error {
	depth, deepest := 0, 0
	for line := range bytes.Lines(text) {
		for _, c := range line {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			deepest = max(deepest, depth)
		}
		deepest = max(deepest, (len(line)-len(bytes.TrimLeft(line, " -?:")))/2)
	}
	if deepest > maxDepth {
		return fmt.Errorf("nested more than %d times", maxDepth)
	}
	return nil
}

// at returns a node's line in the file.
func (r *reader) at(n ast.Node) int {
	if n == nil || n.GetToken() == nil {
		return r.line(1)
	}
	return r.line(n.GetToken().Position.Line)
}

func (r *reader) line(line int) int {
	if r.one {
		return r.first + 1
	}
	return r.first + line
}

func (r *reader) find(line int, message, hint string) {
	r.file.Findings = append(r.file.Findings, Finding{r.line(line), message, hint})
}

func (r *reader) finding(n ast.Node, message, hint string) {
	r.file.Findings = append(r.file.Findings, Finding{r.at(n), message, hint})
}

func (r *reader) note(n ast.Node, message string) {
	r.file.Notes = append(r.file.Notes, Finding{Line: r.at(n), Message: message})
}

// plain returns a node without its anchor and its tag.
func plain(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		return plain(n.Value)
	case *ast.TagNode:
		return plain(n.Value)
	}
	return n
}

// entries returns the entries of a mapping, or nil for any other node.
func entries(n ast.Node) []*ast.MappingValueNode {
	switch n := plain(n).(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// items returns the elements of a sequence. It returns false for any other node.
func items(n ast.Node) ([]ast.Node, bool) {
	s, ok := plain(n).(*ast.SequenceNode)
	if !ok {
		return nil, false
	}
	return s.Values, true
}

// member returns the value of the entry with this name in a mapping, or nil if there is none.
func member(n ast.Node, name string) ast.Node {
	for _, e := range entries(n) {
		if e.Key.GetToken().Value == name {
			return e.Value
		}
	}
	return nil
}

// text returns the text of a string. It returns false for any other node.
func text(n ast.Node) (string, bool) {
	switch n := plain(n).(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return strings.TrimRight(n.Value.Value, "\n"), true
	}
	return "", false
}

// walk looks for datasets and rules below a node. kind is the name of the rules around the node: map,
// filter, branch, or empty. in holds the data sets that a rule may use.
func (r *reader) walk(n ast.Node, kind string, in []*Dataset) {
	if list, ok := items(n); ok {
		for _, item := range list {
			r.walk(item, kind, in)
		}
		return
	}
	if list, ok := items(member(n, "datasets")); ok {
		in = r.datasets(list)
	}
	for _, e := range entries(n) {
		name := e.Key.GetToken().Value
		switch name {
		case "datasets":
			if _, ok := items(e.Value); ok {
				continue
			}
		case "inputs":
			r.inputs(e.Value, kind, in)
			continue
		case "map", "filter", "branch":
			r.walk(e.Value, name, in)
			continue
		}
		if key, _ := text(member(n, "key")); key == "rules" && name == "value" {
			if _, ok := text(e.Value); ok {
				r.embedded(e.Value)
				continue
			}
		}
		r.walk(e.Value, kind, in)
	}
}

// embedded reads the rules that a graph contains as a string.
func (r *reader) embedded(n ast.Node) {
	if r.inner {
		return
	}
	rules, _ := text(n)
	inside := reader{first: r.at(n) - 1, one: true, inner: true}
	if literal, ok := plain(n).(*ast.LiteralNode); ok && strings.HasPrefix(literal.Start.Value, "|") {
		inside.first, inside.one = r.line(literal.Start.Position.Line), false
	}
	inside.read([]byte(rules))
	r.file.Datasets = append(r.file.Datasets, inside.file.Datasets...)
	r.file.Findings = append(r.file.Findings, inside.file.Findings...)
	r.file.Notes = append(r.file.Notes, inside.file.Notes...)
}

// inputs checks the references to data sets in the inputs of a rule.
func (r *reader) inputs(n ast.Node, kind string, in []*Dataset) {
	list, _ := items(n)
	for _, item := range list {
		input, ok := text(item)
		input = strings.TrimSpace(input)
		if !ok || input != "$context" && !strings.HasPrefix(input, "$context.") && !strings.HasPrefix(input, "$context(") {
			continue
		}
		ref := reference().FindStringSubmatch(bare(input))
		if ref == nil {
			r.finding(item, fmt.Sprintf("%.100q does not say which data set", input), "write $context(ALIAS).FIELD")
			continue
		}
		alias, path := strings.TrimSpace(ref[1]), ref[2]
		i := slices.IndexFunc(in, func(d *Dataset) bool { return d.Alias == alias })
		if i < 0 {
			r.noAlias(item, alias, in)
			continue
		}
		r.use(item, in[i], path, kind)
	}
}

// reference returns the regular expression for $context(ALIAS).FIELD.
func reference() *regexp.Regexp { return regexp.MustCompile(`^\$context\(([^)]*)\)\.?(.*)$`) }

// bare returns an input without the suffixes "? $last" and "?? DEFAULT".
func bare(input string) string {
	input, _, _ = strings.Cut(input, " ??")
	if at := regexp.MustCompile(`(?i)\s+\?\s*\$last\s*$`).FindStringIndex(input); at != nil {
		input = input[:at[0]]
	}
	return strings.TrimSpace(input)
}

// noAlias adds a finding: no data set has this alias. in holds the data sets that the rule may use.
func (r *reader) noAlias(n ast.Node, alias string, in []*Dataset) {
	var aliases, keys []string
	for _, d := range in {
		aliases = append(aliases, d.Alias)
		if d.Key != d.Alias {
			keys = append(keys, d.Key)
		}
	}
	hint := "add it to datasets: key: " + alias
	near := suggest.Near(alias, aliases)
	switch {
	case slices.Contains(keys, alias):
		hint = "a key with an alias is only known by its alias: write $context(" + in[slices.IndexFunc(in, func(d *Dataset) bool { return d.Key == alias })].Alias + ")"
	case len(near) > 0:
		hint = "write $context(" + near[0] + ")"
	case len(aliases) > 0:
		hint = "the data sets are " + strings.Join(aliases, ", ")
	}
	r.finding(n, fmt.Sprintf("no data set is called %.100q", alias), hint)
}

// use records that a rule uses a field of a data set.
func (r *reader) use(n ast.Node, d *Dataset, path, kind string) {
	f := Field{Line: r.at(n)}
	prefix, wildcard := strings.CutSuffix("."+path, ".*")
	if wildcard {
		f.Object = true
		if path = strings.TrimPrefix(prefix, "."); kind == "filter" || kind == "branch" {
			r.finding(n, "a "+kind+" has a wildcard: only a map can have one", "name the fields that the expression needs")
			return
		}
	}
	if path == "" && f.Object {
		d.Fields = append(d.Fields, f)
		return
	}
	p, err := dataset.ParsePath(path)
	if err != nil {
		r.finding(n, "$context("+d.Alias+"): "+err.Error(), "write $context("+d.Alias+").FIELD")
		return
	}
	if slices.Contains(p, "*") {
		r.note(n, "the wildcard in "+p.String()+" is not checked")
		return
	}
	f.Path = p
	d.Fields = append(d.Fields, f)
}
