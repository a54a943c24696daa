package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/yamltext"

	"github.com/sscli/sscli/format"
)

const (
	maxFile   = 1 << 20 // size of a file of checks, in bytes
	maxChecks = 10_000
)

// parseFile parses a file of checks:
//
//	checks:
//	  - key: setpoint
//	    max-age: 10m,1h
//	    labels: {line: "3"}
//
// It returns all mistakes.
func parseFile(ctx context.Context, text []byte) (specs []*spec, mistakes []mistake, err error) {
	wrong := func(n *yamltext.Node, text string, args ...any) {
		m := mistake{err: fmt.Errorf(text, args...)}
		if n != nil {
			m.line, m.column = n.Line, n.Column
		}
		mistakes = append(mistakes, m)
	}
	if len(text) > maxFile {
		wrong(nil, "larger than 1 MiB")
		return nil, mistakes, nil
	}
	text, err = files.DecodeText(text)
	if err != nil {
		wrong(nil, "%w", err)
		return nil, mistakes, nil
	}
	roots, err := yamltext.Parse(ctx, text)
	if e, isYAML := errors.AsType[*yamltext.Error](err); isYAML {
		for _, one := range append([]*yamltext.Error{e}, e.More...) {
			mistakes = append(mistakes, mistake{line: one.Line, column: one.Column, err: one})
		}
		if roots == nil {
			return nil, mistakes, nil
		}
	} else if err != nil {
		return nil, nil, err
	}
	const form = "the word checks: and below it a list, such as - {key: a, max-age: 1h}"
	switch {
	case len(roots) == 0:
		wrong(nil, "empty: expected %s", form)
		return nil, mistakes, nil
	case len(roots) > 1:
		wrong(roots[1], "a second document: expected one")
	}
	if !yamltext.IsMapping(roots[0]) {
		wrong(roots[0], "expected %s", form)
		return nil, mistakes, nil
	}
	for key, n := range yamltext.Members(roots[0]) {
		items, isList := yamltext.Items(n)
		switch {
		case key.Value != "checks":
			wrong(key, "unknown field %.32q: expected checks", key.Value)
			continue
		case !isList || len(items) == 0:
			wrong(n, "checks: expected a list with at least one check")
			continue
		case len(items) > maxChecks:
			wrong(n, "more than %d checks", maxChecks)
			continue
		}
		for _, item := range items {
			specs = append(specs, parseSpec(item, wrong))
		}
	}
	mistakes = append(mistakes, unique(specs)...)
	slices.SortStableFunc(mistakes, func(a, b mistake) int { return cmp.Or(a.line-b.line, a.column-b.column) })
	return specs, mistakes, nil
}

// A mistake is an error in a file of checks. Line and column count from 1; 0 = not known.
type mistake struct {
	line, column int
	err          error
}

// in returns the mistakes as one error. file is their file; "" = the checks are from the command line.
func in(file string, mistakes []mistake) error {
	var all []error
	for _, m := range mistakes {
		if err := m.err; file != "" {
			err = fmt.Errorf("%s: %w", format.Location(file, m.line, m.column), err)
			all = append(all, err)
		} else {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// unique returns a mistake for each check with the name of another in the same context: their series could not be
// told apart.
func unique(specs []*spec) (mistakes []mistake) {
	lines := make(map[[2]string]int)
	for _, s := range specs {
		id := [2]string{s.context, s.describe()}
		switch first, twice := lines[id]; {
		case s.kind == aBroker && len(s.conditions) == 0: // a mistake already
		case !twice:
			lines[id] = s.line
		case s.line == 0:
			mistakes = append(mistakes, mistake{err: fmt.Errorf("two checks are called %s: give one of them another name, in a file", s.describe())})
		default:
			mistakes = append(mistakes, mistake{s.line, s.column, fmt.Errorf("a second check %s, as in line %d: give one of them another name", s.describe(), first)})
		}
	}
	return mistakes
}

// isReserved reports whether series have a label already, or Prometheus adds it.
func isReserved(label string) bool {
	targets, _ := targets()
	return slices.Contains(append(targets, "check", "context", "certificate", "version", "job", "instance", "le", "quantile"), label)
}

func isLabelName(name string) bool {
	rest := strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
	return rest != name && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" && !strings.HasPrefix(name, "__")
}

// placed is a condition with its place in a file.
type placed struct {
	condition
	at *yamltext.Node
}

func parseSpec(n *yamltext.Node, wrong func(*yamltext.Node, string, ...any)) *spec {
	s := &spec{line: n.Line, column: n.Column, kind: aBroker}
	if !yamltext.IsMapping(n) {
		wrong(n, "expected a check, such as {key: a, max-age: 1h}")
		return s
	}
	opposites := map[string]string{"exists": "missing", "held": "free", "free": "held"}
	targets, _ := targets()
	texts := map[string]*string{"name": &s.name, "context": &s.context}
	all := conditions()
	var set []placed
	before := 0
	count := func(n *yamltext.Node, text string, args ...any) {
		before++
		wrong(n, text, args...)
	}
	for key, value := range yamltext.Members(n) {
		field := key.Value
		i := slices.IndexFunc(all, func(c condition) bool { return c.name == field })
		text, isText := yamltext.Scalar(value)
		into := texts[field]
		isTarget := slices.Contains(targets, field)
		switch {
		case field == "labels":
			s.labels = parseLabels(value, count)
		case into == nil && i < 0 && !isTarget:
			count(key, "unknown field %.32q", field)
		case !isText:
			count(value, "%s: expected text", field)
		case text == "" && (into != nil || isTarget):
			count(value, "%s: expected text that is not empty", field)
		case isTarget && s.kind != aBroker:
			count(key, "expected one of %s", strings.Join(targets, ", "))
		case isTarget:
			s.kind, s.target = field, text
		case into != nil:
			*into = text
		case all[i].value == "":
			if !yamltext.IsBool(value) {
				count(value, "%s: expected true or false", field)
			} else if strings.EqualFold(text, "true") {
				set = append(set, placed{all[i], key})
				_ = s.set(all[i], "")
			} else if opposite := opposites[field]; opposite != "" { // would be no condition at all
				count(value, "%s: false: write %s: true", field, opposite)
			}
		default:
			set = append(set, placed{all[i], key})
			if err := s.set(all[i], text); err != nil {
				count(value, "%s: %w", field, err)
			}
		}
	}
	for _, one := range set { // once the kind is known
		if !slices.Contains(one.on, s.kind) {
			count(one.at, "%s: not for a check of a %s, but of a %s", one.name, s.kind, strings.Join(one.on, " or a "))
		}
	}
	if before > 0 {
		return s
	}
	if err := s.check(); err != nil {
		wrong(n, "%w", err)
	}
	return s
}

func parseLabels(n *yamltext.Node, wrong func(*yamltext.Node, string, ...any)) (labels []label) {
	if !yamltext.IsMapping(n) {
		wrong(n, "labels: expected names with values, such as {line: \"3\"}")
		return nil
	}
	for key, value := range yamltext.Members(n) {
		text, isText := yamltext.Scalar(value)
		switch {
		case !isLabelName(key.Value):
			wrong(key, "labels: %.32q: expected letters, digits and _", key.Value)
		case isReserved(key.Value):
			wrong(key, "labels: %s: series have this label already", key.Value)
		case !isText:
			wrong(value, "labels: %s: expected text", key.Value)
		default:
			labels = append(labels, label{key.Value, text})
		}
	}
	return labels
}
