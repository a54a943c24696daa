package format

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// An objectWriter writes the fields of an object in the order in which they are added: as
// JSON text or, if collect is true, as a tree for a template.
type objectWriter struct {
	dst     []byte // holds the JSON text
	collect bool
	tree    object
}

// A fielder writes its fields to an objectWriter.
type fielder interface{ fields(o *objectWriter) }

func collect(r fielder) object {
	o := objectWriter{collect: true}
	r.fields(&o)
	return o.tree
}

// add adds a field. The output omits a field whose value is nil or an empty Version.
func (o *objectWriter) add(name string, value any) {
	switch v := value.(type) {
	case string:
		o.text(name, v)
		return
	case []byte:
		o.text(name, string(v))
		return
	}
	value = treeOf(value)
	switch {
	case o.collect:
		o.tree = append(o.tree, field{name, value})
	case value != nil:
		o.name(name)
		o.dst = appendJSON(o.dst, value)
	}
}

// text adds a string field. The string may hold any bytes.
func (o *objectWriter) text(name, text string) {
	if o.collect {
		o.tree = append(o.tree, field{name, text})
		return
	}
	name, text = member(name, text)
	o.name(name)
	o.dst = appendString(o.dst, text)
}

func (o *objectWriter) name(name string) {
	if o.dst[len(o.dst)-1] != '{' {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(append(append(o.dst, '"'), name...), `":`...)
}

// result adds the field op, then the fields of the struct s.
func (o *objectWriter) result(op string, s any) {
	o.add("op", op)
	o.structure(s)
}

// structure adds the fields of the struct s that have a json tag. The options omitzero and
// omitempty work as in encoding/json.
func (o *objectWriter) structure(s any) {
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

// treeOf converts a value to a leaf or a tree. A duration becomes a number of milliseconds.
func treeOf(value any) any {
	switch v := value.(type) {
	case nil, string, bool, int, int64, uint64, float64, time.Time, object, list, null:
		return value
	case Version:
		return when(!v.IsZero(), value)
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
		o := objectWriter{collect: true}
		o.structure(value)
		return o.tree
	}
	return value
}

// versionFields prints a version as an object, with a field for each part.
type versionFields struct{ Version }

func (v versionFields) fields(o *objectWriter) {
	o.add("hlc", v.String())
	o.add("wall_ms", v.Wall)
	o.add("counter", v.Counter)
	o.add("node", v.Node)
	if t := v.Time(); t.Year() >= 0 && t.Year() <= 9999 { // RFC 3339 cannot represent other years
		o.add("time", t)
	}
}
