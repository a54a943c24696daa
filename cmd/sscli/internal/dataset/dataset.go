// Package dataset reads, compares and writes data sets. A data set is reference data with which a data flow
// of Azure IoT Operations enriches messages. It is a key whose value is JSON Lines: one record, an object,
// per line.
//
//	for r, err := range dataset.Read(file, dataset.Options{Name: "sites.csv"}) {
//		if err != nil {
//			return err // wraps an *Error with line and column if the content is wrong
//		}
//		value = append(append(value, r.JSON...), '\n')
//	}
//
// [Read] accepts JSON Lines, a JSON array of objects, and CSV. With Options.Stored, it accepts only
// the JSON Lines that a data flow accepts. [Value] converts a source to the value of a key, which is
// canonical JSON Lines. [WriteCSV] converts records to CSV. A [Query] finds the record that a data flow
// would use, a [Diff] the records that were added, removed and changed, and a [Survey] facts about a data
// set, such as records that no message can find. [ReadDefinition] reads what the definition of a data
// flow says about data sets.
//
// Promises:
//
//   - Read holds only one record and a buffer in memory.
//   - Fields keep their order, and numbers and strings keep their spelling.
//   - No line of a canonical value is blank, and the last line ends with a newline.
package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Path names a field of a record and the objects that contain it, outermost first. Data flows write
// a path with dots, and put names that contain dots in quotation marks: asset."serial.no".
type Path []string

// ParsePath parses a path as a data flow does. A name that begins with a quotation mark ends at the
// next quotation mark of the same kind; any other name ends at a dot.
func ParsePath(text string) (Path, error) {
	var p Path
	for rest := text; ; {
		if rest == "" {
			return nil, fmt.Errorf("%.64q: a name of a field is missing", text)
		}
		name, after, more := "", "", false
		if quote := rest[:1]; quote == `"` || quote == "'" {
			end := strings.Index(rest[1:], quote)
			if end < 0 {
				return nil, fmt.Errorf("%.64q: a quotation mark does not end", text)
			}
			name, after = rest[1:1+end], rest[end+2:]
			if after, more = strings.CutPrefix(after, "."); !more && after != "" {
				return nil, fmt.Errorf("%.64q: expected a dot after the quotation mark", text)
			}
		} else {
			name, after, more = strings.Cut(rest, ".")
		}
		if name == "" {
			return nil, fmt.Errorf("%.64q: a name of a field is empty", text)
		}
		p, rest = append(p, name), after
		if !more {
			return p, nil
		}
	}
}

// String returns the path in the syntax of [ParsePath].
func (p Path) String() string {
	names := make([]string, len(p))
	for i, name := range p {
		names[i] = name
		switch {
		case !strings.Contains(name, ".") && !strings.HasPrefix(name, `"`) && !strings.HasPrefix(name, "'"):
		case strings.Contains(name, `"`):
			names[i] = "'" + name + "'"
		default:
			names[i] = `"` + name + `"`
		}
	}
	return strings.Join(names, ".")
}

// In returns the JSON value of the field in a record, or nil if the record does not have the field. If
// a field appears twice, In uses the last one.
func (p Path) In(record []byte) []byte {
	for _, name := range p {
		var found []byte
		for f, err := range Fields(record) {
			if err != nil {
				return nil
			}
			if f.Name == name {
				found = f.JSON
			}
		}
		record = found
	}
	return record
}

// A Scalar is a JSON value that a data flow can compare: a string, a number or a boolean.
type Scalar struct {
	Kind string // string, integer, decimal or boolean
	Text string // the content of a string; for other kinds, the value in JSON
}

// Type returns the type as [Type] names it.
func (s Scalar) Type() string {
	if s.Kind == "integer" || s.Kind == "decimal" {
		return "number"
	}
	return s.Kind
}

// Parse parses a scalar. If the value is not a scalar, the error's text is its type, such as "an
// object".
func Parse(value []byte) (Scalar, error) {
	switch kind := Type(value); kind {
	case "string":
		s := Scalar{Kind: kind}
		if !jsontext.Value(value).IsValid() { // json.Unmarshal takes half of a surrogate pair for U+FFFD
			return s, errors.New("not text")
		}
		return s, json.Unmarshal(value, &s.Text)
	case "boolean":
		return Scalar{kind, string(value)}, nil
	case "number":
		kind = "integer"
		if bytes.ContainsAny(value, ".eE") {
			kind = "decimal"
		}
		return Scalar{kind, string(value)}, nil
	case "object", "array":
		return Scalar{}, errors.New("an " + kind)
	default:
		return Scalar{}, errors.New(kind)
	}
}

// Type returns the name of a JSON value's type, such as "number", or "missing" for no value.
func Type(value []byte) string {
	switch jsontext.Value(value).Kind() {
	case 0:
		return "missing"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	case '{':
		return "object"
	case '[':
		return "array"
	default:
		return "number"
	}
}

// An identity is a 128-bit hash that stands for a value in an index. Values with the same identity are
// assumed to be equal.
type identity [2]uint64

// A hasher computes identities.
type hasher [2]maphash.Seed

func newHasher() hasher { return hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

// of returns the identity of the field on, its value, and true, if the field is a scalar. Otherwise, or if on is
// nil, it returns the identity of the whole record, and false.
func (h hasher) of(on Path, r Record) (id identity, value Scalar, ok bool) {
	text := ""
	if on != nil {
		var err error
		if value, err = Parse(r.in(on)); err == nil {
			text, ok = value.id(), true
		}
	}
	if !ok {
		text = "r" + string(r.JSON)
	}
	return identity{maphash.String(h[0], text), maphash.String(h[1], text)}, value, ok
}
