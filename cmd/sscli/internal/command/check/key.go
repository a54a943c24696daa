package check

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/format"
)

func keyKind() kind {
	return kind{
		name: aKey, operand: "KEY",
		look: (*spec).lookAtKey, judge: (*verdict).key, expose: (*spec).exposeKey,
		families: func() []family {
			return []family{
				{"sscli_key_present", "gauge", "Whether the key exists."},
				{"sscli_key_age_seconds", "gauge", "Time since the last write, on the store's clock."},
				{"sscli_key_size_bytes", "gauge", "Size of the value."},
				{"sscli_key_version_timestamp_seconds", "gauge", "Wall time of the version."},
				{"sscli_key_value", "gauge", "The value, for checks that ask for it."},
				{"sscli_key_changes_total", "counter", "Changes of the key that the watch saw."},
			}
		},
	}
}

// lookAtKey judges the value of a key. shown means that messages may show it.
func (s *spec) lookAtKey(content []byte, shown bool) (found value) {
	problem := func(text string, args ...any) { found.problems = append(found.problems, fmt.Sprintf(text, args...)) }
	text := string(content)
	if s.conditions["json"] {
		parsed, isJSON := jsonfield.Parse(content)
		field := parsed.At(s.field)
		switch {
		case !isJSON:
			problem("the value is not JSON")
			return found
		case !field.Exists():
			problem("the value has no field %s", s.field)
			return found
		}
		text = field.Text()
	}
	if n, ok := parseNumber(strings.TrimSpace(text)); ok && s.needs(digits) {
		found.number = &n
	}
	what, is := "the value", ""
	if s.conditions["json"] {
		what = s.field.String()
	}
	if shown || s.conditions["value"] {
		is = " is " + format.Brief(text)
		found.text = format.Brief(text)
		if s.conditions["json"] {
			found.text = what + " " + found.text
		}
	}
	if (s.conditions["min"] || s.conditions["max"]) && found.number == nil {
		problem("%s%s, %s", what, cmp.Or(is, " is no number"), expectedNumber(strings.TrimSpace(text)))
	}
	if s.conditions["equals"] && text != s.equals {
		problem("%s%s, expected %s", what, cmp.Or(is, " differs"), format.Brief(s.equals))
	}
	if s.valueMatches != nil && !s.valueMatches.Match(content) {
		problem("the value does not match %s", s.valueMatches)
	}
	if s.conditions["dataset"] {
		if err := isDataset(content); err != nil {
			problem("the value is not a data set: %v", err)
		}
	}
	return found
}

// isDataset returns an error unless a value is a data set, as dataset check decides.
func isDataset(content []byte) error {
	if len(content) == 0 {
		return errors.New("it is empty")
	}
	var survey dataset.Survey
	for r, err := range dataset.Read(bytes.NewReader(content), dataset.Options{Stored: true}) {
		if err == nil {
			err = survey.Add(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verdict) key(from *view, local time.Time) {
	s, b, k := v.spec, &from.broker, from.seen[v.spec]
	switch {
	case !k.found && s.conditions["missing"]:
		v.fact("missing")
	case !k.found:
		v.problem(critical, "missing, expected the key to exist")
	case s.conditions["missing"]:
		v.problem(critical, "exists, expected no such key")
	}
	v.rate(b, k, local, "")
	if !k.found {
		return
	}
	found := k.value
	for _, problem := range found.problems {
		v.problem(critical, "%s", problem)
	}
	switch {
	case found.number == nil:
		if found.text != "" && len(found.problems) == 0 {
			v.fact("%s", found.text)
		}
	default:
		text := "%s"
		if s.field != nil {
			text = strings.ReplaceAll(s.field.String(), "%", "%%") + " is %s"
		}
		if v.measure(measure{name: "value", value: *found.number, exact: true, show: number.String}, text, "min", "max") {
			v.fact(text, *found.number)
		}
	}
	if v.measure(counting("size", size, "byte", k.size), "%s", "", "max-size") {
		v.fact("%s", format.Count(k.size, "byte"))
	}
	v.age(b, k, local)
	v.ahead(k, local)
}

// age judges the time since the last write.
func (v *verdict) age(b *broker, k *seen, local time.Time) {
	if !v.spec.conditions["max-age"] && !v.spec.conditions["min-age"] {
		return
	}
	age, unsure := b.age(k.version, local)
	age = age.remembered(k, local)
	if v.measure(spanning("age", age, unsure), "written %s ago", "min-age", "max-age") {
		v.fact("written %s ago", format.Span(age.least))
	}
	if b.clock == nil && !k.version.IsZero() {
		v.fact("by this machine's clock")
	}
}

// exposeKey adds the series of the check of a key.
func (s *spec) exposeKey(e *exposition, v *view, labels []label, watched bool, local time.Time) {
	k := v.seen[s]
	e.add("sscli_key_present", truth(k.found), labels...)
	if k.found {
		e.add("sscli_key_size_bytes", float64(k.size), labels...)
	}
	s.exposeContent(e, &v.broker, k, labels, local)
	if watched {
		e.add("sscli_key_changes_total", float64(k.total), labels...)
	}
}

// exposeContent adds the series that a key has whether its own check or the check of a pattern reads it.
func (s *spec) exposeContent(e *exposition, b *broker, k *seen, labels []label, local time.Time) {
	if !k.read || k.err != nil || !k.found {
		return
	}
	if age, _ := b.age(k.version, local); s.of == nil || s.needs(clock) {
		if age = age.remembered(k, local); age.most < forever {
			e.add("sscli_key_age_seconds", age.least.Seconds(), labels...)
		}
		if !k.version.IsZero() && s.of == nil {
			e.add("sscli_key_version_timestamp_seconds", float64(k.version.Time().UnixMilli())/1000, labels...)
		}
	}
	if s.conditions["value"] && k.value.number != nil {
		e.write("sscli_key_value", k.value.number.String(), labels...)
	}
}
