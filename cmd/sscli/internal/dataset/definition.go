package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/internal/yamltext"
)

// A Definition holds the data sets that a definition names, and what ReadDefinition found wrong or unclear about them.
type Definition struct {
	Datasets []*Reference
	Findings []Finding
	Notes    []Finding // things that cannot be checked
}

// A Finding is a mistake in a file, or a note about it.
type Finding struct {
	Line    int // from 1
	Message string
	Hint    string // how to correct it; may be empty
}

// A Reference is an element of a list called datasets.
type Reference struct {
	Line   int
	Key    string
	Alias  string      // the name that rules use; by default the key
	Fields []UsedField // the fields of its records that the definition uses
	On     Path        // the match field; nil = none, or the expression is not $1 == $2
}

// A UsedField is a field of the records of a data set.
type UsedField struct {
	Line   int
	Path   Path
	Object bool // $context(ALIAS).a.* copies all fields of the object; an empty Path is the record itself
}

// A reader reads a definition.
type reader struct {
	ctx   context.Context
	file  Definition
	first int  // number of lines in the file before the text
	one   bool // lines of the text are not lines of the file: findings are on line first+1
	inner bool // the text is a string in a definition
}

// maxSize is the maximum size of a definition, in bytes.
const maxSize = 4 << 20

// ReadDefinition reads a definition in YAML or JSON: a resource of kind Dataflow or DataflowGraph, an ARM
// template, or the rules alone. It looks for the names datasets and inputs at any depth, also in the rules
// that a graph contains as a string, and ignores everything else. A finding is something that the
// documentation of data flows excludes; a note is something that it leaves open. The error is the cause
// of ctx.
func ReadDefinition(ctx context.Context, text []byte) (Definition, error) {
	r := reader{ctx: ctx}
	if len(bytes.TrimSpace(text)) == 0 { // such as the output of a command that ended early
		r.find(1, "the file is empty: expected a definition", "")
	}
	err := r.read(text)
	return r.file, err
}

// read parses text, which is a whole definition or the rules that a graph contains as a string, and
// adds what it finds to r.file.
func (r *reader) read(text []byte) error {
	if len(text) > maxSize {
		r.find(1, "larger than 4 MiB: expected a definition", "")
		return nil
	}
	if json.Valid(text) { // JSON may be indented with tabs, but YAML may not
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	roots, err := yamltext.Parse(r.ctx, text)
	if e, ok := errors.AsType[*yamltext.Error](err); ok {
		r.find(max(1, e.Line), e.Error(), "")
		return nil
	}
	for _, root := range roots {
		r.walk(root, "", nil)
	}
	return err
}

func (r *reader) at(n *yamltext.Node) int {
	if n == nil {
		return r.line(1)
	}
	return r.line(n.Line)
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

func (r *reader) finding(n *yamltext.Node, message, hint string) {
	r.file.Findings = append(r.file.Findings, Finding{r.at(n), message, hint})
}

func (r *reader) note(n *yamltext.Node, message string) {
	r.file.Notes = append(r.file.Notes, Finding{Line: r.at(n), Message: message})
}

// text returns the text of a string. It returns false for any other node.
func text(n *yamltext.Node) (string, bool) {
	if n == nil || !yamltext.IsString(n) {
		return "", false
	}
	return strings.TrimRight(n.Value, "\n"), true
}

// walk looks for datasets and rules below a node. kind is the name of the rules around the node: map,
// filter, branch, or empty. in holds the data sets that a rule may use.
func (r *reader) walk(n *yamltext.Node, kind string, in []*Reference) {
	if list, ok := yamltext.Items(n); ok {
		for _, item := range list {
			r.walk(item, kind, in)
		}
		return
	}
	if list, ok := yamltext.Items(yamltext.Member(n, "datasets")); ok {
		in = r.datasets(list)
	}
	for key, value := range yamltext.Members(n) {
		name := key.Value
		switch name {
		case "datasets":
			if _, ok := yamltext.Items(value); ok {
				continue
			}
		case "inputs":
			r.inputs(value, kind, in)
			continue
		case "map", "filter", "branch":
			r.walk(value, name, in)
			continue
		}
		if key, _ := text(yamltext.Member(n, "key")); key == "rules" && name == "value" {
			if _, ok := text(value); ok {
				r.embedded(value)
				continue
			}
		}
		r.walk(value, kind, in)
	}
}

// embedded reads the rules that a graph contains as a string.
func (r *reader) embedded(n *yamltext.Node) {
	if r.inner {
		return
	}
	rules, _ := text(n)
	inside := reader{ctx: r.ctx, first: r.at(n) - 1, one: true, inner: true}
	if yamltext.IsLiteral(n) {
		inside.first, inside.one = r.at(n), false
	}
	_ = inside.read([]byte(rules)) // returns the cause of r.ctx, which the caller sees
	r.file.Datasets = append(r.file.Datasets, inside.file.Datasets...)
	r.file.Findings = append(r.file.Findings, inside.file.Findings...)
	r.file.Notes = append(r.file.Notes, inside.file.Notes...)
}

// inputs checks the references to data sets in the inputs of a rule.
func (r *reader) inputs(n *yamltext.Node, kind string, in []*Reference) {
	list, _ := yamltext.Items(n)
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
		i := slices.IndexFunc(in, func(d *Reference) bool { return d.Alias == alias })
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
func (r *reader) noAlias(n *yamltext.Node, alias string, in []*Reference) {
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
		hint = "a key with an alias is only known by its alias: write $context(" + in[slices.IndexFunc(in, func(d *Reference) bool { return d.Key == alias })].Alias + ")"
	case len(near) > 0:
		hint = "write $context(" + near[0] + ")"
	case len(aliases) > 0:
		hint = "the data sets are " + strings.Join(aliases, ", ")
	}
	r.finding(n, fmt.Sprintf("no data set is called %.100q", alias), hint)
}

// use records that a rule uses a field of a data set.
func (r *reader) use(n *yamltext.Node, d *Reference, path, kind string) {
	f := UsedField{Line: r.at(n)}
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
	p, err := ParsePath(path)
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
