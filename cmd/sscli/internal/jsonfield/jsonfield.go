// Package jsonfield compares JSON values field by field.
//
//	old, ok := jsonfield.Parse([]byte(`{"config":{"mode":"auto"}}`))
//	now, ok := jsonfield.Parse([]byte(`{"config":{"mode":"manual"}}`))
//	for _, c := range jsonfield.Diff(old, now) {
//		fmt.Println(c.Path, c.Old, c.New) // .config.mode "auto" "manual"
//	}
//
// A [Path] names a field. Numbers are compared as they are written: 1 and 1.0 differ.
// The order of members and the spaces between tokens make no difference. Of a member
// that appears twice the last one counts.
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

// A Value is a JSON value. The zero Value is a field that is missing.
type Value struct {
	v    any // as encoding/json has it, with numbers as json.Number
	here bool
}

// Parse reads a JSON text. ok is false if it is none, or is not UTF-8.
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

// Exists reports whether the field is there.
func (v Value) Exists() bool { return v.here }

// String returns the value as JSON without spaces, with the members of objects sorted; empty
// for a field that is missing.
func (v Value) String() string {
	if !v.here {
		return ""
	}
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v.v); err != nil {
		return "" // cannot happen: it was decoded
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// Text returns what a string contains, and every other value as String does.
func (v Value) Text() string {
	if s, ok := v.v.(string); ok {
		return s
	}
	return v.String()
}

// At returns a field of the value.
func (v Value) At(p Path) Value {
	for _, s := range p {
		switch parent := v.v.(type) {
		case map[string]any:
			v.v, v.here = parent[s.name]
			v.here = v.here && !s.isIndex
		case []any:
			v.here = s.isIndex && s.index < len(parent)
			if v.here {
				v.v = parent[s.index]
			}
		default:
			v.here = false
		}
		if !v.here {
			return Value{}
		}
	}
	return v
}

// A Change is a field that differs.
type Change struct {
	Path     Path
	Old, New Value // the zero Value: the field is missing
}

// Diff returns the fields that differ, in the order of their names: of objects that both have
// the members, of arrays that both have the elements, else the whole field.
func Diff(old, now Value) []Change { return diff(nil, Path{}, old, now) }

func diff(changes []Change, p Path, old, now Value) []Change {
	// The copy of a path, because siblings share their beginning.
	below := func(s step) Path { return append(p[:len(p):len(p)], s) }
	switch o := old.v.(type) {
	case map[string]any:
		n, same := now.v.(map[string]any)
		if !same || !now.here {
			break
		}
		names := maps.Clone(o)
		maps.Copy(names, n)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			var a, b Value
			a.v, a.here = o[name]
			b.v, b.here = n[name]
			changes = diff(changes, below(step{name: name}), a, b)
		}
		return changes
	case []any:
		n, same := now.v.([]any)
		if !same || !now.here {
			break
		}
		element := func(list []any, i int) Value {
			if i < len(list) {
				return Value{list[i], true}
			}
			return Value{}
		}
		for i := range max(len(o), len(n)) {
			changes = diff(changes, below(step{index: i, isIndex: true}), element(o, i), element(n, i))
		}
		return changes
	}
	if Equal(old, now) {
		return changes
	}
	return append(changes, Change{p, old, now})
}

// Equal reports whether two values are the same, or both are missing.
func Equal(a, b Value) bool { return a.here == b.here && a.String() == b.String() }

// Changes returns the fields that differ between two texts. It is empty unless both are JSON
// objects, or both are arrays.
func Changes(old, now []byte) (changed []format.FieldChange) {
	o, ok := Parse(old)
	n, ok2 := Parse(now)
	if !ok || !ok2 {
		return nil
	}
	for _, c := range Diff(o, n) {
		if len(c.Path) > 0 { // else the whole value differs
			changed = append(changed, format.FieldChange{Path: c.Path.String(), Old: c.Old.String(), New: c.New.String()})
		}
	}
	return changed
}
