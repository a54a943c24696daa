package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// summary returns the findings of Read, one per line.
func summary(t *testing.T, text string) string {
	t.Helper()
	f, err := ReadDefinition(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, d := range f.Datasets {
		fmt.Fprintf(&out, "%d %q as %q on %q:", d.Line, d.Key, d.Alias, d.On.String())
		for _, field := range d.Fields {
			star := ""
			if field.Object {
				star = ".*"
			}
			fmt.Fprintf(&out, " %d:%s%s", field.Line, field.Path, star)
		}
		out.WriteByte('\n')
	}
	for _, f := range f.Findings {
		fmt.Fprintf(&out, "%d! %s; %s\n", f.Line, f.Message, f.Hint)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&out, "%d? %s\n", n.Line, n.Message)
	}
	return out.String()
}

const good = `
datasets:
- key: position
  inputs:
    - $source.Position #  - $1
    - $context.Position # - $2
  expression: $1 == $2
`

func TestDefinition(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"older form", good + "map:\n- inputs:\n  - $context(position).WorkingHours # $1\n  output: WorkingHours\n",
			"3 \"position\" as \"position\" on \"Position\": 6:Position 10:WorkingHours\n"},
		{"nothing", "", "1! the file is empty: expected a definition; \n"},
		{"blank", " \n\n", "1! the file is empty: expected a definition; \n"},
		{"alias", "datasets:\n- key: datasets.parag10.rule42 as position\n  inputs: [$source.a, $context.b]\n  expression: $2 == $1\nmap: [{inputs: ['$context(position).*'], output: '*'}]\n",
			"2 \"datasets.parag10.rule42\" as \"position\" on \"b\": 3:b 5:.*\n"},
		{"defaults", good + "map: [{inputs: ['$context(position).A ?? \"x\"', '$context(position).B ? $LAST', '$context(position).C ? $last ?? 0'], output: x}]",
			"3 \"position\" as \"position\" on \"Position\": 6:Position 8:A 8:B 8:C\n"},
		{"JSON with tabs", "{\n\t\"datasets\": [\n\t\t{\"key\": \"k as a\", \"inputs\": [\"$source.x\", \"$context.'y.z'\"], \"expression\": \"$1 == $2\"}\n\t],\n\t\"branch\": {\"inputs\": [\"$context(a).b.c\"]}\n}",
			"3 \"k\" as \"a\" on \"\\\"y.z\\\"\": 3:\"y.z\" 5:b.c\n"},
		{"rules as text", "configuration:\n- key: rules\n  value: '{\"datasets\":[{\"key\":\"k\",\"inputs\":[\"$source.x\",\"$context.x\"],\"expression\":\"$1 == $2\"}],\"map\":[{\"inputs\":[\"$context(other).a\"],\"output\":\"a\"}]}'\n",
			"3 \"k\" as \"k\" on \"x\": 3:x\n3! no data set is called \"other\"; the data sets are k\n"},
		{"alias that is not there", good + "map: [{inputs: [$context(positions).A], output: x}, {inputs: [$context(rule).A], output: x}]",
			"3 \"position\" as \"position\" on \"Position\": 6:Position\n8! no data set is called \"positions\"; write $context(position)\n8! no data set is called \"rule\"; the data sets are position\n"},
		{"key in place of the alias", "datasets: [{key: a/b as c, inputs: [$source.x, $context.x], expression: $1 == $2}]\nmap: [{inputs: [$context(a/b).y]}]",
			"1 \"a/b\" as \"c\" on \"x\": 1:x\n2! no data set is called \"a/b\"; a key with an alias is only known by its alias: write $context(c)\n"},
		{"no data sets", "map: [{inputs: [$context(a).y]}]", "1! no data set is called \"a\"; add it to datasets: key: a\n"},
		{"no alias", good + "map: [{inputs: [$context.y, $context(position)]}]",
			"3 \"position\" as \"position\" on \"Position\": 6:Position\n8! \"$context.y\" does not say which data set; write $context(ALIAS).FIELD\n8! $context(position): \"\": a name of a field is missing; write $context(position).FIELD\n"},
		{"incomplete entries", "datasets:\n- inputs: [$source.a]\n- key: a\n- key: b\n  inputs: [$source.x, $source.y]\n  expression: $1 == $3\n- key: c\n  inputs: [Position, $context(d).x, $context.*]\n",
			"3 \"a\" as \"a\" on \"\":\n4 \"b\" as \"b\" on \"\":\n7 \"c\" as \"c\" on \"\":\n" +
				"2! the data set has no key; add key: KEY, the key of the state store that has the records\n" +
				"3! the data set \"a\" has no inputs; add inputs: [$source.FIELD, $context.FIELD]\n" +
				"3! the data set \"a\" has no expression; add expression: $1 == $2\n" +
				"4! no input of the data set \"b\" is a field of its records; write $source.FIELD for a field of the message, and $context.FIELD for a field of the record\n" +
				"6! the expression names $3, and there are 2 inputs; add an input, or count from $1\n" +
				"8! the input \"Position\" is neither of the message nor of the record; write $source.FIELD for a field of the message, and $context.FIELD for a field of the record\n" +
				"8! the input \"$context(d).x\" is a field of another data set; write $context.x\n" +
				"8! the input \"$context.*\" has a wildcard; name the field: a data set takes no wildcard\n" +
				"7! the data set \"c\" has no expression; add expression: $1 == $2\n"},
		{"inputs that name the data set", "datasets:\n- key: assets\n  inputs: [$source.deviceId, $context(assets).asset]\n  expression: $1 == $2\n- {key: k as a, inputs: [$context(a).b.c, $source.x], expression: $1 == $2}\n- {key: m as n, inputs: [$source.x, $context(m).y], expression: $1 == $2}\nmap: [{inputs: [$context(assets).site]}]\n",
			"2 \"assets\" as \"assets\" on \"asset\": 3:asset 7:site\n5 \"k\" as \"a\" on \"b.c\": 5:b.c\n6 \"m\" as \"n\" on \"y\": 6:y\n"},
		{"other expressions", "datasets:\n- key: a\n  as: b\n  inputs: [$source.x, $context.x]\n  expression: $1 > $2\n",
			"2 \"a\" as \"b\" on \"\": 4:x\n3? as: the documentation has the alias in key: a as b\n5? the expression \"$1 > $2\" is not checked: only $1 == $2 is\n"},
		{"same alias", "datasets: [{key: a, inputs: [$source.x, $context.x], expression: $1 == $2},\n {key: b as a, inputs: [$source.x, $context.x], expression: $1==$2}]",
			"1 \"a\" as \"a\" on \"x\": 1:x\n2 \"b\" as \"a\" on \"x\": 2:x\n2! two data sets are called \"a\": see line 1; give one of them another alias: key: b as ALIAS\n"},
		{"wildcards", good + "filter: [{inputs: ['$context(position).*']}]\nmap: [{inputs: ['$context(position).a.*', '$context(position).*.b']}]",
			"3 \"position\" as \"position\" on \"Position\": 6:Position 9:a.*\n8! a filter has a wildcard: only a map can have one; name the fields that the expression needs\n9? the wildcard in *.b is not checked\n"},
		{"not YAML", "a: [\n", "1! not YAML: expected a value: a bracket or brace has no counterpart; \n"},
		{"too deep", strings.Repeat("[", 20000) + strings.Repeat("]", 20000), "1! not YAML: exceeded max depth of 10000; \n"},
		{"quotes", "a: " + strings.Repeat("\"", 80<<10), "1! not YAML: expected a key, indented like the keys above it; \n"},
		{"merge keys and aliases", "datasets:\n- &a {key: k, inputs: [$source.x, &x $context.x], expression: $1 == $2}\n- {<<: *a, key: m}\nmap: [{inputs: [$context(m).y, *x]}]\n",
			"2 \"k\" as \"k\" on \"x\": 2:x\n3 \"m\" as \"m\" on \"x\": 2:x 4:y\n2! \"$context.x\" does not say which data set; write $context(ALIAS).FIELD\n"},
		{"something else", "a: 1\n---\n- b\n", ""},
	} {
		if diff := cmp.Diff(tt.want, summary(t, tt.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// FuzzDefinition checks that all findings are on lines of the file, and that comments above the definition only shift
// the line numbers.
func FuzzDefinition(f *testing.F) {
	f.Add(good + "map:\n- inputs:\n  - $context(position).WorkingHours\n")
	f.Add("a:\n- key: rules\n  value: |\n    {\"datasets\":[{\"key\":\"k as x\",\"inputs\":[\"$source.x\",\"$context.x\"],\n    \"expression\":\"$1 == $2\"}], \"map\":[{\"inputs\":[\"$context(n).a\"]}]}\n")
	f.Add("datasets: &a\n- key: !!str a\n  inputs: *b\n")
	f.Add("{\"datasets\":[{}],\"inputs\":[\"$context(\"]}")
	f.Add("a: 1\r\rb: *c\r")
	f.Add("a: 1\r\n\r\nb: *c\r\n")
	if examples, err := filepath.Glob("../../testdata/dataflow/*"); err == nil {
		for _, name := range examples {
			if text, err := os.ReadFile(name); err == nil {
				f.Add(string(text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ReadDefinition(t.Context(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		// In YAML, CR also ends a line.
		last := strings.Count(text, "\n") + strings.Count(text, "\r") - strings.Count(text, "\r\n") + 1
		for _, finding := range append(file.Findings, file.Notes...) {
			if finding.Line < 1 || finding.Line > last+1 || finding.Message == "" {
				t.Errorf("%q: line %d of %d: %s", text, finding.Line, last, finding.Message)
			}
		}
		for _, d := range file.Datasets {
			if d.Key == "" || d.Line < 1 || d.Line > last+1 {
				t.Errorf("%q: %+v", text, d)
			}
		}
	})
}
