// Package jsonfield compares JSON values field by field.
//
//	old, ok := jsonfield.Parse([]byte(`{"config":{"mode":"auto"}}`))
//	now, ok := jsonfield.Parse([]byte(`{"config":{"mode":"manual"}}`))
//	for _, c := range jsonfield.Diff(old, now) {
//		fmt.Println(c.Path, c.Old, c.New) // .config.mode "auto" "manual"
//	}
//
// A [Path] names a field. Numbers are compared as text: 1 and 1.0 differ. The order of
// members and the white space between tokens do not matter. If an object has two members of the same
// name, the last one applies.
package jsonfield

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/format"
)

// A Value is a JSON value. The zero Value stands for a missing field.
type Value struct {
	v    any  // as encoding/json decodes it, with numbers as json.Number
	here bool // whether the field exists
}

// Parse parses a JSON text. ok is false if the text is not JSON or not UTF-8.
func Parse(text []byte) (v Value, ok bool) {
	if !utf8.Valid(text) {
		return Value{}, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v.v) != nil {
		return Value{}, false
	}
	if _, err := d.Token(); err != io.EOF {
		return Value{}, false
	}
	v.here = true
	return v, true
}

// Exists reports whether the field exists.
func (v Value) Exists() bool { return v.here }

// String returns the value as JSON without spaces, with the members of objects sorted. It returns ""
// for a missing field.
func (v Value) String() string {
	if !v.here {
		return ""
	}
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v.v); err != nil {
		return "" // cannot happen: v.v was decoded from JSON
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// Text returns the content of a JSON string without quotes, and the result of String for other
// values.
func (v Value) Text() string {
	if s, ok := v.v.(string); ok {
		return s
	}
	return v.String()
}

// At returns the field of v at the path p, or the zero Value if there is no such field.
func (v Value) At(p Path) Value {
	for _, step := range p {
		v = v.field(step)
	}
	return v
}

// field returns the member of an object or the element of an array that step selects, or the zero Value
// if there is none.
func (v Value) field(step any) Value {
	switch parent := v.v.(type) {
	case map[string]any:
		if name, ok := step.(string); ok {
			field, here := parent[name]
			return Value{field, here}
		}
	case []any:
		if i, ok := step.(int); ok && i < len(parent) {
			return Value{parent[i], true}
		}
	}
	return Value{}
}

// A Change is a field that differs between two values.
type Change struct {
	Path     Path
	Old, New Value // zero = the field is missing
}

// Diff returns the fields in which two values differ, sorted by name or index. It compares two objects
// member by member, two arrays element by element, and any other two values as a whole.
func Diff(old, now Value) []Change { return diff(nil, Path{}, old, now) }

func diff(changes []Change, p Path, old, now Value) []Change {
	steps, ok := commonSteps(old.v, now.v)
	for _, step := range steps {
		// Clone p, because append could otherwise overwrite the path of a sibling.
		changes = diff(changes, append(slices.Clone(p), step), old.field(step), now.field(step))
	}
	if ok || Equal(old, now) {
		return changes
	}
	return append(changes, Change{p, old, now})
}

// commonSteps returns the steps at which to compare two values: the names of all members of two
// objects, or the indexes of all elements of two arrays. ok is false for any other two values.
func commonSteps(old, now any) (steps []any, ok bool) {
	switch o := old.(type) {
	case map[string]any:
		if n, same := now.(map[string]any); same {
			names := maps.Clone(o)
			maps.Copy(names, n)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				steps = append(steps, name)
			}
			return steps, true
		}
	case []any:
		if n, same := now.([]any); same {
			for i := range max(len(o), len(n)) {
				steps = append(steps, i)
			}
			return steps, true
		}
	}
	return nil, false
}

// Equal reports whether two values are the same, or both are missing.
func Equal(a, b Value) bool { return a.here == b.here && a.String() == b.String() }

// Changes returns the fields that differ between two JSON texts. It returns nil unless both texts are
// objects or both are arrays.
func Changes(old, now []byte) (changed []format.FieldChange) {
	o, ok := Parse(old)
	n, ok2 := Parse(now)
	if !ok || !ok2 {
		return nil
	}
	for _, c := range Diff(o, n) {
		if len(c.Path) > 0 { // an empty path means that the whole value differs
			changed = append(changed, format.FieldChange{Path: c.Path.String(), Old: c.Old.String(), New: c.New.String()})
		}
	}
	return changed
}
