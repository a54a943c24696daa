package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPath(t *testing.T) {
	for text, want := range map[string][]string{
		"a":                           {"a"},
		"Person.Date of Birth":        {"Person", "Date of Birth"},
		`Payload."Tag.10".Value`:      {"Payload", "Tag.10", "Value"},
		`Payload.'Tag.10'`:            {"Payload", "Tag.10"},
		`Payload.He said: "No. It is`: {"Payload", `He said: "No`, " It is"},
		`"a"`:                         {"a"},
	} {
		p, err := ParsePath(text)
		if diff := cmp.Diff(Path(want), p); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"":      `"": a name of a field is missing`,
		"a.":    `"a.": a name of a field is missing`,
		"a..b":  `"a..b": a name of a field is empty`,
		`"a`:    `"\"a": a quotation mark does not end`,
		`"a"b`:  `"\"a\"b": expected a dot after the quotation mark`,
		`"a".`:  `"\"a\".": a name of a field is missing`,
		`"".ab`: `"\"\".ab": a name of a field is empty`,
	} {
		if p, err := ParsePath(text); err == nil || err.Error() != want {
			t.Errorf("%s: %q, %v; want %s", text, p, err, want)
		}
	}
}

// FuzzPath checks that a path survives writing and parsing.
func FuzzPath(f *testing.F) {
	for _, text := range []string{"a.b", `"a.b".c`, `'a"b.c'`, "a.b c", `a"."b`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		again, err := ParsePath(p.String())
		if err != nil || !slices.Equal(p, again) {
			t.Errorf("%q is %q, written as %q, read as %q, %v", text, []string(p), p, []string(again), err)
		}
	})
}

func TestIn(t *testing.T) {
	record := []byte(`{"a":{"b":[1]},"c":null,"a.b":2,"c":3}`)
	for text, want := range map[string]string{"a.b": "[1]", `"a.b"`: "2", "c": "3", "a.x": "", "c.x": "", "a.b.c": ""} {
		p, err := ParsePath(text)
		if got := string(p.In(record)); err != nil || got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct{ value, record, near string }{
		{`"7"`, `{"a":"7"}`, "match"},
		{`"é"`, `{"a":"\u00e9"}`, "match"},
		{`7`, `{"a":7}`, "match"},
		{`7.0`, `{"a":7.00}`, "match"},
		{`true`, `{"a":true}`, "match"},
		{`7`, `{"a":"7"}`, `a is "7", not 7: another type`},
		{`true`, `{"a":"True"}`, `a is "True", not true: another type, another case`},
		{`7`, `{"a":7.0}`, `a is 7.0, not 7: the same number, as an integer and as a decimal`},
		{`"Pump 1"`, `{"a":"pump 1"}`, `a is "pump 1", not "Pump 1": another case`},
		{`"Pump 1"`, `{"a":"Pump  1 "}`, `a is "Pump  1 ", not "Pump 1": other blanks`},
		{`"Pump 1"`, `{"a":" pump 1"}`, `a is " pump 1", not "Pump 1": another case, other blanks`},
		{`7`, `{"a":8}`, ""},
		{`7`, `{"b":7}`, ""},
		{`null`, `{"a":null}`, ""},
		{`{}`, `{"a":{}}`, ""},
	} {
		matches, near := Query{{Field: Path{"a"}, Value: []byte(tt.value)}}.Match([]byte(tt.record))
		if matches {
			near = "match"
		}
		if near != tt.near {
			t.Errorf("%s in %s: got %q, want %q", tt.value, tt.record, near, tt.near)
		}
	}
}

// judge is a second implementation of equality. Two texts or two booleans are equal if their contents are. Two numbers
// are equal if their values are, and if both or neither have a fraction or an exponent.
func judge(a, b []byte) bool {
	if isDigit := "-0123456789"; bytes.ContainsAny(a[:1], isDigit) && bytes.ContainsAny(b[:1], isDigit) {
		whole := func(number []byte) bool { return !bytes.ContainsAny(number, ".eE") }
		for _, number := range [][]byte{a, b} {
			if i := bytes.IndexAny(number, "eE"); i >= 0 && len(number)-i > 4 {
				return Equal(a, b) // the exponent is too large for a Rat
			}
		}
		x, ok := new(big.Rat).SetString(string(a))
		y, ok2 := new(big.Rat).SetString(string(b))
		return ok && ok2 && x.Cmp(y) == 0 && whole(a) == whole(b)
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x == nil || y == nil {
		return false
	}
	return fmt.Sprintf("%T %[1]v", x) == fmt.Sprintf("%T %[1]v", y) && !bytes.ContainsAny(a[:1], "[{")
}

// FuzzMatch checks Match against judge, and that a record is never both a match and a near miss.
func FuzzMatch(f *testing.F) {
	for _, pair := range [][2]string{{`7`, `"7"`}, {`7`, `7.0`}, {`1e1`, `10.0`}, {`"a"`, `"A "`}, {`true`, `true`}, {`null`, `null`}, {`"\u00e9"`, `"é"`}, {`[1]`, `[1]`}, {`9007199254740993`, `9007199254740992`}} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		record := append(append([]byte(`{"a":`), b...), '}')
		value, err := ParseLine(nil, append(append([]byte(`{"v":`), a...), '}'))
		stored, err2 := ParseLine(nil, record)
		if err != nil || err2 != nil {
			return
		}
		x, y := Path{"v"}.In(value), Path{"a"}.In(stored)
		if x == nil || y == nil {
			return
		}
		matches, near := Query{{Field: Path{"a"}, Value: x}}.Match(stored)
		if matches != judge(x, y) || matches && near != "" {
			t.Errorf("%s and %s: %v, %q", x, y, matches, near)
		}
	})
}

// diffOf returns the changes from an old value to a new one.
func diffOf(t testing.TB, old, now string, on Path) (added, changed, removed []Change, moved bool) {
	d, err := NewDiff([]byte(old), on)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range Read(strings.NewReader(now), Options{Stored: true}) {
		if err != nil {
			t.Fatal(err)
		}
		r.JSON = bytes.Clone(r.JSON)
		switch c, ok := d.Add(r); {
		case ok && c.Old.JSON == nil:
			added = append(added, c)
		case ok:
			changed = append(changed, c)
		}
	}
	return added, changed, slices.Collect(d.Removed()), d.Reordered()
}

func TestDiff(t *testing.T) {
	text := func(changes ...[]Change) (lines []string) {
		for _, c := range slices.Concat(changes...) {
			lines = append(lines, fmt.Sprintf("%d%s %d%s", c.Old.Line, c.Old.JSON, c.New.Line, c.New.JSON))
		}
		return lines
	}
	for _, tt := range []struct {
		name, old, now string
		on             Path
		want           []string
		moved          bool
	}{
		{name: "equal", old: "{\"a\":1}\n", now: "{\"a\": 1}"},
		{name: "one more", old: "{\"a\":1}\n", now: "{\"a\":0}\n{\"a\":1}\n", want: []string{`0 1{"a":0}`}},
		{name: "changed as a whole", old: "{\"a\":1,\"b\":1}\n", now: "{\"a\":1,\"b\":2}\n", want: []string{`0 1{"a":1,"b":2}`, `1{"a":1,"b":1} 0`}},
		{name: "changed", old: "{\"a\":1,\"b\":1}\n", now: "{\"b\":2,\"a\":1}\n", on: Path{"a"}, want: []string{`1{"a":1,"b":1} 1{"b":2,"a":1}`}},
		{name: "another type", old: "{\"a\":1}\n", now: "{\"a\":\"1\"}\n", on: Path{"a"}, want: []string{`0 1{"a":"1"}`, `1{"a":1} 0`}},
		{name: "order", old: "{\"a\":1}\n{\"a\":2}\n", now: "{\"a\":2}\n{\"a\":1}\n", on: Path{"a"}, moved: true},
		{name: "repeated", old: "{\"a\":1,\"b\":1}\n{\"a\":1,\"b\":2}\n", now: "{\"a\":1,\"b\":2}\n", on: Path{"a"},
			want: []string{`1{"a":1,"b":1} 1{"a":1,"b":2}`, `2{"a":1,"b":2} 0`}},
		{name: "without the field", old: "{\"b\":1}\n{\"b\":1}\n", now: "{\"b\":1}\n", on: Path{"a"}, want: []string{`2{"b":1} 0`}},
	} {
		added, changed, removed, moved := diffOf(t, tt.old, tt.now, tt.on)
		if diff := cmp.Diff(tt.want, text(added, changed, removed)); diff != "" || moved != tt.moved {
			t.Errorf("%s: moved is %v (-want +got):\n%s", tt.name, moved, diff)
		}
	}
}

// FuzzDiff checks that applying the changes to the old records gives the new records. Each byte of an input is one
// record.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("abc"), []byte("acd"), true)
	f.Add([]byte("aabB"), []byte("bAaa"), true)
	f.Add([]byte{}, []byte("xyz"), false)
	f.Fuzz(func(t *testing.T, a, b []byte, byField bool) {
		value := func(text []byte) (lines []string) {
			for _, c := range text {
				line := fmt.Sprintf(`{"id":%d,"n":%d}`, c%8, c/8%4)
				if c >= 224 {
					line = `{"n":1}`
				}
				lines = append(lines, line)
			}
			return lines
		}
		old, now := value(a), value(b)
		var on Path
		if byField {
			on = Path{"id"}
		}
		added, changed, removed, moved := diffOf(t, strings.Join(old, "\n"), strings.Join(now, "\n"), on)
		got := make([]string, len(now))
		for _, c := range slices.Concat(added, changed) {
			got[c.New.Line-1] = string(c.New.JSON)
		}
		for _, c := range slices.Concat(changed, removed) {
			if old[c.Old.Line-1] != string(c.Old.JSON) {
				t.Errorf("line %d of %q is not %s", c.Old.Line, old, c.Old.JSON)
			}
			old[c.Old.Line-1] = ""
		}
		old = slices.DeleteFunc(old, func(line string) bool { return line == "" })
		if moved { // the order of the records that both have is unknown
			slices.Sort(old)
			rest := slices.Clone(now)
			for i, line := range got {
				if line != "" {
					rest[i] = ""
				}
			}
			rest = slices.DeleteFunc(rest, func(line string) bool { return line == "" })
			slices.Sort(rest)
			if !slices.Equal(old, rest) {
				t.Errorf("%q to %q: %q are left, and %q are missing", value(a), now, old, rest)
			}
			return
		}
		for i := range got {
			if got[i] == "" && len(old) > 0 {
				got[i], old = old[0], old[1:]
			}
		}
		if len(old) > 0 || !slices.Equal(got, now) {
			t.Errorf("%q to %q: the changes lead to %q, with %q left", value(a), now, got, old)
		}
	})
}

func TestSurvey(t *testing.T) {
	const text = `{"id":"a","n":1}
{"id":"a"}
{"id":7,"n":"x"}
{"n":1.5}
{"id":null}
{"id":"b "}
`
	s := Survey{On: Path{"id"}}
	for r, err := range Read(strings.NewReader(text), Options{Stored: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	var fields []string
	for _, f := range s.Fields {
		fields = append(fields, fmt.Sprintf("%s %d %s", f.Name, f.Records, f.TypeNames()))
	}
	if diff := cmp.Diff([]string{"id 5 null, number, string", "n 3 number, string"}, fields); diff != "" {
		t.Error(diff)
	}
	want := []Examples{{2, []int{4, 5}}, {1, []int{2}}, {1, []int{6}}}
	if diff := cmp.Diff(want, []Examples{s.Without, s.Repeated, s.Blank}); diff != "" {
		t.Error(diff)
	}
	if err := s.Add(Record{Line: 7, JSON: []byte(`{"a":1,"a":2}`)}); err == nil || err.Error() != `line 7, column 1: the record has the field "a" twice` {
		t.Error(err)
	}
}

// TestNumbers compares numbers as decimals of any length: in Query, in the identities of --on, and in near misses.
func TestNumbers(t *testing.T) {
	h := newHasher()
	for _, tt := range []struct {
		a, b        string
		equal, near bool
	}{
		{"1.0", "1.00", true, false},
		{"1.0", "1e0", true, false},
		{"10e-1", "1E+0", true, false},
		{"0.0", "-0.000", true, false},
		{"120e-1", "1.2e1", true, false},
		{"1", "1.0", false, true},
		{"100", "1e2", false, true},
		{"1724442618569203715", "1724442618569203714", false, false},
		{"1724442618569203715", "1724442618569203714.0", false, false},
		{"9007199254740992.0", "9007199254740993.0", false, false},
		{"1e400", "1e401", false, false},
		{"1e99999999999999999999", "10e99999999999999999998", true, false},
		{"0.1", "0.10000000000000000000000000001", false, false},
		{"-1.5", "1.5", false, false},
	} {
		record := func(value string) []byte { return []byte(`{"a":` + value + `}`) }
		if got := Equal([]byte(tt.a), []byte(tt.b)); got != tt.equal {
			t.Errorf("%s and %s: equal %v", tt.a, tt.b, got)
		}
		x, _, _ := h.of(Path{"a"}, Record{JSON: record(tt.a)})
		if y, _, _ := h.of(Path{"a"}, Record{JSON: record(tt.b)}); (x == y) != tt.equal {
			t.Errorf("%s and %s: the same identity %v", tt.a, tt.b, x == y)
		}
		q := Query{{Field: Path{"a"}, Value: []byte(tt.a)}}
		if matches, near := q.Match(record(tt.b)); matches != tt.equal || (near != "") != tt.near {
			t.Errorf("%s and %s: match %v, nearly %q", tt.a, tt.b, matches, near)
		}
	}
}

// TestFieldTwice: a duplicate field is found after a hundred others, and inside an object.
func TestFieldTwice(t *testing.T) {
	var many strings.Builder
	for i := range 150 {
		fmt.Fprintf(&many, `"f%d":%d,`, i, i)
	}
	for record, want := range map[string]string{
		"{" + many.String() + `"x":1,"x":2}`: `k:1:1: the record has the field "x" twice`,
		"{" + many.String() + `"f0":1}`:      `k:1:1: the record has the field "f0" twice`,
		`{"a":[{"b":1,"c":2,"\u0062":3}]}`:   `k:1:1: the record has the field "a.0.b" twice`,
		`{"a":{"b":1},"b":{"b":2}}`:          "",
	} {
		s := Survey{Source: "k"}
		err := s.Add(Record{Line: 1, JSON: []byte(record)})
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%.40s…: %v, want %s", record, err, want)
		}
	}
}
