package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// A Survey collects facts about the records of a data set. Pass each record to [Survey.Add].
type Survey struct {
	On     Path   // the match field; nil = none
	Source string // the name of the source, for errors

	Records int
	Fields  []*FieldUse // at most maxFields, in the order of their first appearance
	More    bool        // there are more than maxFields fields

	Without  Examples        // records without a scalar in the match field: no message finds them
	Repeated Examples        // records that repeat an earlier record's match value: the earlier one wins
	Types    map[string]bool // the types of the values in the match field
	Blank    Examples        // records whose match value begins or ends with white space

	Commas  Examples // records with a string that looks like a number with a decimal comma
	commaIn string   // the first such string and its field, as FIELD: VALUE

	hash   hasher
	seen   map[identity]bool
	byName map[string]*FieldUse
}

// A FieldUse counts the records that have a field, and collects the types of its values.
type FieldUse struct {
	Name    string
	Records int
	types   map[string]bool
}

// TypeNames returns the sorted names of the types, such as "number, string".
func (f *FieldUse) TypeNames() string {
	return strings.Join(slices.Sorted(maps.Keys(f.types)), ", ")
}

// Examples counts records, and keeps the line numbers of the first three.
type Examples struct {
	Count int
	Lines []int
}

// Add counts a record.
func (e *Examples) Add(line int) {
	if e.Count++; len(e.Lines) < 3 {
		e.Lines = append(e.Lines, line)
	}
}

// maxFields is the maximum number of fields that a Survey names.
const maxFields = 100

// Add adds the next record to the survey. It returns an error if the record has a field twice.
func (s *Survey) Add(r Record) error {
	if s.byName == nil {
		s.byName, s.seen, s.Types, s.hash = map[string]*FieldUse{}, map[identity]bool{}, map[string]bool{}, newHasher()
	}
	s.Records++
	comma := false
	for f, err := range r.unique() {
		if err != nil {
			return &fault.UsageError{Err: &Error{Name: s.Source, Line: r.Line, Column: 1, Err: err}}
		}
		s.use(f)
		if !comma && decimalComma(f.JSON) {
			if comma = true; s.Commas.Count == 0 {
				s.commaIn = f.Name + ": " + string(f.JSON)
			}
			s.Commas.Add(r.Line)
		}
	}
	if s.On == nil {
		return nil
	}
	id, value, ok := s.hash.of(s.On, r)
	if !ok {
		s.Without.Add(r.Line)
		return nil
	}
	s.Types[value.Type()] = true
	if value.Text != strings.TrimSpace(value.Text) {
		s.Blank.Add(r.Line)
	}
	if s.seen[id] {
		s.Repeated.Add(r.Line)
	}
	s.seen[id] = true
	return nil
}

func (s *Survey) use(f Field) {
	u := s.byName[f.Name]
	if u == nil {
		if len(s.Fields) == maxFields {
			s.More = true
			return
		}
		u = &FieldUse{Name: f.Name, types: map[string]bool{}}
		s.byName[f.Name] = u
		s.Fields = append(s.Fields, u)
	}
	u.Records++
	u.types[Type(f.JSON)] = true
}

// decimalComma reports whether a JSON value is a string such as "20,5".
func decimalComma(value []byte) bool {
	whole, part, ok := strings.Cut(strings.TrimLeft(strings.Trim(string(value), `"`), "-+"), ",")
	isDigits := func(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
	return ok && value[0] == '"' && isDigits(whole) && isDigits(part)
}

// Done frees the memory that only Add needs. Do not call Add after it.
func (s *Survey) Done() { s.seen = nil }

// Warnings returns warnings about numbers with a decimal comma and about the match field: records that no message
// can find, values with blanks around them, and values of several types.
func (s *Survey) Warnings() (warnings []string) {
	add := func(e Examples, one, many, why string) {
		if e.Count > 0 {
			text := fmt.Sprintf("%d records %s", e.Count, many)
			if e.Count == 1 {
				text = "1 record " + one
			}
			warnings = append(warnings, text+" ("+e.String()+"): "+why)
		}
	}
	add(s.Commas, "has a number with a decimal comma", "have numbers with a decimal comma", "JSON has a dot there, so "+s.commaIn+" is text, which no number equals")
	if s.On == nil {
		return warnings
	}
	field := format.Word(s.On.String())
	add(s.Without, "has no "+field+" that can be compared", "have no "+field+" that can be compared", "no message finds them")
	add(s.Repeated, "repeats the "+field+" of an earlier record", "repeat the "+field+" of an earlier record", "the first record always wins")
	add(s.Blank, "has blanks around its "+field, "have blanks around their "+field, "a message must have the same blanks")
	if len(s.Types) > 1 {
		warnings = append(warnings, field+" has several types: "+strings.Join(slices.Sorted(maps.Keys(s.Types)), " and ")+`; the string "7" is not the number 7`)
	}
	return warnings
}

// String returns the line numbers as text, such as "lines 3, 5, 8, …".
func (e Examples) String() string {
	text := "line "
	if e.Count > 1 {
		text = "lines "
	}
	for i, line := range e.Lines {
		if i > 0 {
			text += ", "
		}
		text += strconv.Itoa(line)
	}
	if e.Count > len(e.Lines) {
		text += ", …"
	}
	return text
}
