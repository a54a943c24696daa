package dataset

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestParsedOnce: a survey says the same of a row of CSV, whose fields are known, as of its JSON.
func TestParsedOnce(t *testing.T) {
	const text = "id,name,of.id\n7,a,1\n7,\" b\",\n,c,2\n1.0,\"x\"\"y\",true\n"
	for _, on := range []Path{nil, {"id"}, {"name"}, {"of.id"}, {"id", "x"}, {"none"}} {
		known, parsed := Survey{On: on}, Survey{On: on}
		for r, err := range Read(strings.NewReader(text), Options{Format: CSV}) {
			if err != nil || r.fields == nil {
				t.Fatalf("%+v, %v", r, err)
			}
			if err := errors.Join(known.Add(r), parsed.Add(Record{Line: r.Line, JSON: r.JSON})); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range []*Survey{&known, &parsed} {
			s.hash, s.seen = hasher{}, nil
		}
		if !reflect.DeepEqual(known, parsed) {
			t.Errorf("on %v: %+v, want %+v", on, known, parsed)
		}
	}
	for r, err := range Read(strings.NewReader("a\n\"{\"\"b\"\":1,\"\"b\"\":2}\"\n"), Options{Format: CSV, Types: Types{"a": Any}}) {
		var s Survey
		if err != nil || s.Add(r) == nil {
			t.Errorf("%s, with a field twice in a cell: %v", r.JSON, err)
		}
	}
}
