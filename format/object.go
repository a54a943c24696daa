package format

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// An object holds the fields of a result, for the json output and for templates, in the order in
// which they were added.
type object []field

type field struct {
	name  string
	value any // see treeOf; nil: the field is not printed
}

// A fielder adds its fields to an object.
type fielder interface{ fields(o *object) }

// collect returns the fields of r as a tree.
func collect(r fielder) object {
	o := make(object, 0, 8)
	r.fields(&o)
	return o
}

// add adds a field. The output omits a field whose value is nil or an empty Version.
func (o *object) add(name string, value any) { *o = append(*o, field{name, treeOf(value)}) }

// result adds the field op, then the fields of the struct s.
func (o *object) result(op string, s any) {
	o.add("op", op)
	o.structure(s)
}

// structure adds the fields of the struct s that have a json tag. The options omitzero and
// omitempty work as in encoding/json.
func (o *object) structure(s any) {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		tag, ok := f.Tag.Lookup("json")
		name, option, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous:
			o.structure(value.Interface())
		case !ok:
		case option == "omitzero" && value.IsZero(), option == "omitempty" && value.Len() == 0:
			o.add(name, nil)
		default:
			o.add(name, value.Interface())
		}
	}
}

// treeOf converts a value to a tree, whose leaves are bool, int, int64, uint64, float64, null,
// time.Time, Version, jsonText, and string, which may hold any bytes. A duration becomes a number of
// milliseconds.
func treeOf(value any) any {
	switch v := value.(type) {
	case nil, string, bool, int, int64, uint64, float64, time.Time, object, list, null:
		return value
	case Version:
		return versionField(v)
	case time.Duration:
		return milliseconds(v)
	case json.RawMessage:
		return jsonText(v)
	case []byte:
		return string(v)
	case fielder:
		return collect(v)
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Slice:
		items := make(list, v.Len())
		for i := range items {
			items[i] = treeOf(v.Index(i).Interface())
		}
		return items
	case reflect.Struct:
		var o object
		o.structure(value)
		return o
	}
	return value
}

// versionFields prints a version as an object, with a field for each part.
type versionFields struct{ Version }

func (v versionFields) fields(o *object) {
	wall, counter, node := v.Parts()
	o.add("hlc", v.String())
	o.add("wall_ms", wall)
	o.add("counter", counter)
	o.add("node", node)
	if t := v.Time(); t.Year() >= 0 && t.Year() <= 9999 { // RFC 3339 cannot represent other years
		o.add("time", t)
	}
}
