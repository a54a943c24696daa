package check

import (
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
// It returns all mistakes, each with the file's name and the line.
func parseFile(ctx context.Context, name string, text []byte) (specs []*spec, mistakes []error) {
	mistake := func(line int, text string, args ...any) {
		where := format.Path(name)
		if line > 0 {
			where += fmt.Sprintf(":%d", line)
		}
		mistakes = append(mistakes, fmt.Errorf("%s: %w", where, fmt.Errorf(text, args...)))
	}
	if len(text) > maxFile {
		mistake(0, "larger than 1 MiB")
		return nil, mistakes
	}
	text, err := files.DecodeText(text)
	if err != nil {
		mistake(0, "%w", err)
		return nil, mistakes
	}
	roots, err := yamltext.Parse(ctx, text)
	if e, isYAML := errors.AsType[*yamltext.Error](err); isYAML {
		line := e.Line
		e.Line = 0
		mistake(line, "not YAML: %w", e)
		return nil, mistakes
	}
	const form = "the word checks: and below it a list, such as - {key: a, max-age: 1h}"
	switch {
	case err != nil:
		return nil, []error{err}
	case len(roots) == 0:
		mistake(0, "empty: expected %s", form)
		return nil, mistakes
	case len(roots) > 1:
		mistake(roots[1].Line, "a second document: expected one")
		return nil, mistakes
	case !yamltext.IsMapping(roots[0]):
		mistake(roots[0].Line, "expected %s", form)
		return nil, mistakes
	}
	for key, n := range yamltext.Members(roots[0]) {
		items, isList := yamltext.Items(n)
		switch {
		case key.Value != "checks":
			mistake(key.Line, "unknown field %.32q: expected checks", key.Value)
			continue
		case !isList || len(items) == 0:
			mistake(n.Line, "checks: expected a list with at least one check")
			continue
		case len(items) > maxChecks:
			mistake(n.Line, "more than %d checks", maxChecks)
			continue
		}
		for _, item := range items {
			s := parseSpec(item, mistake)
			specs = append(specs, s)
		}
	}
	if len(mistakes) == 0 {
		mistakes = unique(name, specs)
	}
	return specs, mistakes
}

// unique returns a mistake for each check with the name of another in the same context: their series could not be
// told apart.
func unique(file string, specs []*spec) (mistakes []error) {
	lines := make(map[[2]string]int)
	for _, s := range specs {
		id := [2]string{s.context, s.describe()}
		switch first, twice := lines[id]; {
		case !twice:
			lines[id] = s.line
		case s.line == 0:
			mistakes = append(mistakes, fmt.Errorf("two checks are called %s: give one of them another name, in a file", s.describe()))
		default:
			mistakes = append(mistakes, fmt.Errorf("%s:%d: a second check %s, as in line %d: give one of them another name", format.Path(file), s.line, s.describe(), first))
		}
	}
	return mistakes
}

// isReserved reports whether series have a label already, or Prometheus adds it.
func isReserved(label string) bool {
	return slices.Contains([]string{"check", "context", "key", "lock", "match", "certificate", "version", "job", "instance", "le", "quantile"}, label)
}

// isLabelName reports whether a label may have a name.
func isLabelName(name string) bool {
	rest := strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
	return rest != name && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" && !strings.HasPrefix(name, "__")
}

// parseSpec parses an element of checks.
func parseSpec(n *yamltext.Node, mistake func(int, string, ...any)) *spec {
	s := &spec{line: n.Line, kind: aBroker}
	if !yamltext.IsMapping(n) {
		mistake(n.Line, "expected a check, such as {key: a, max-age: 1h}")
		return s
	}
	opposites := map[string]string{"exists": "missing", "held": "free", "free": "held"}
	targets := []string{aKey, aLock, aMatch}
	texts := map[string]*string{"name": &s.name, "context": &s.context}
	all := conditions()
	var set []condition
	before := 0
	count := func(line int, text string, args ...any) {
		before++
		mistake(line, text, args...)
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
			count(key.Line, "unknown field %.32q", field)
		case !isText:
			count(value.Line, "%s: expected text", field)
		case text == "" && (into != nil || isTarget):
			count(value.Line, "%s: expected text that is not empty", field)
		case isTarget && s.kind != aBroker:
			count(key.Line, "expected one of key, lock and match")
		case isTarget:
			s.kind, s.target = field, text
		case into != nil:
			*into = text
		case all[i].value == "":
			if !yamltext.IsBool(value) {
				count(value.Line, "%s: expected true or false", field)
			} else if strings.EqualFold(text, "true") {
				set = append(set, all[i])
				_ = s.set(all[i], "")
			} else if opposite := opposites[field]; opposite != "" { // would be no condition at all
				count(value.Line, "%s: false: write %s: true", field, opposite)
			}
		default:
			set = append(set, all[i])
			if err := s.set(all[i], text); err != nil {
				count(value.Line, "%s: %w", field, err)
			}
		}
	}
	if before > 0 {
		return s
	}
	if err := s.fits(set); err != nil {
		mistake(n.Line, "%w", err)
	} else if err := s.check(); err != nil {
		mistake(n.Line, "%w", err)
	}
	return s
}

// fits returns an error if a check has a condition for something else.
func (s *spec) fits(set []condition) error {
	for _, c := range set {
		if !slices.Contains(c.on, s.kind) {
			return fmt.Errorf("%s: not for a check of a %s, but of a %s", c.name, s.kind, strings.Join(c.on, " or a "))
		}
	}
	return nil
}

func parseLabels(n *yamltext.Node, mistake func(int, string, ...any)) (labels []label) {
	if !yamltext.IsMapping(n) {
		mistake(n.Line, "labels: expected names with values, such as {line: \"3\"}")
		return nil
	}
	for key, value := range yamltext.Members(n) {
		text, isText := yamltext.Scalar(value)
		switch {
		case !isLabelName(key.Value):
			mistake(key.Line, "labels: %.32q: expected letters, digits and _", key.Value)
		case isReserved(key.Value):
			mistake(key.Line, "labels: %s: series have this label already", key.Value)
		case !isText:
			mistake(value.Line, "labels: %s: expected text", key.Value)
		default:
			labels = append(labels, label{key.Value, text})
		}
	}
	return labels
}
