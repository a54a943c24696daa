package yamltext

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// show returns a node as text, with aliases and merge keys written out.
func show(n *Node) string {
	var parts []string
	if items, ok := Items(n); ok {
		for _, item := range items {
			parts = append(parts, show(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	if IsMapping(n) {
		for key, value := range Members(n) {
			parts = append(parts, key.Value+":"+show(value))
		}
		return "{" + strings.Join(parts, " ") + "}"
	}
	if text, ok := Scalar(n); ok {
		return fmt.Sprintf("%q", text)
	}
	return "(" + n.ShortTag() + ")"
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"# nothing\n---\n...\n", ""},
		{"a: 1\n---\nb: 1.50\n---\n", `{a:"1"} {b:"1.50"}`},
		{"[0x1f, True, 2001-01-01, <<, .inf, !!str 7, !!int 7, !x y, ~, '', ]", `["0x1f" "True" "2001-01-01" "<<" ".inf" "7" (!!int) (!x) (!!null) ""]`},
		{"a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {y: 4, <<: [{z: 5}, *a]}\nd: *a", `{a:{x:"1" y:"2"} b:{y:"3" x:"1"} c:{y:"4" z:"5" x:"1"} d:{x:"1" y:"2"}}`},
		{"\ufeffa: \"\\u2028\"", "{a:\"\\u2028\"}"},

		{"a: 1\na: 2", `line 2: the key "a" occurs twice`},
		{"{? [a] : x}", "line 1: a key is not text"},
		{"a: *b", "line 1: unknown anchor"},
		{"a: &a\n  b: *a", "line 2: an alias of a value in itself"},
		{"a: {<<: [x]}", `line 1: the key "<<" expected a mapping, or a list of mappings`},
		{"a: 1\nb: \xff", "line 2: expected UTF-8; iconv -f WINDOWS-1252 -t UTF-8 converts what Windows writes"},
		{"a: \u2028", `line 1: the character U+2028: write it in double quotes, as \u2028`},
		{"a: \x00", `line 1: the character U+0000: write it in double quotes, as \u0000`},
		{"!!binary aGk=: 1", "line 1: a key is not text"},
		{"a:\n- b\nc", "line 3: expected a colon after a key"},
		{"- &a x\n" + strings.Repeat("- *a\n", 300_000), ""},
		{"- &a " + strings.Repeat("x", 100_000) + "\n" + strings.Repeat("- *a\n", 1000), "line 1: aliases make the document too large"},
	} {
		roots, err := Parse(t.Context(), []byte(tt.text))
		var parts []string
		for _, root := range roots {
			parts = append(parts, show(root))
		}
		got := strings.Join(parts, " ")
		if err != nil {
			wrong, _ := errors.AsType[*Error](err)
			got = fmt.Sprintf("line %d: %s", wrong.Line, strings.TrimPrefix(wrong.Error(), "not YAML: "))
		}
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && err != nil {
			t.Errorf("%.80q:\n got %.300s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// TestLines: an error names the line of the mistake, wherever the list or the mapping around it begins, and in which
// way lines end.
func TestLines(t *testing.T) {
	for _, tt := range []struct {
		text string // the line with the mistake ends in "# here"
		want string
	}{
		{"a: 1\nb: \"x\" y # here\nc: 1\n", "expected a key, indented like the keys above it"},
		{"- a\n- b\nc: 1 # here\nd: 1\n", "expected - and an item, indented like the items above it"},
		{"a: 1\n- b # here\nc: 1\n", "expected a key, indented like the keys above it"},
		{"a:\n  b:\n    - c: 1\n      d: 2\n     e: 3 # here\nf: 1\n", "expected - and an item, indented like the items above it"},
		{"a:\n  - b: 1\n    c: 2\n     d: 3 # here\n", "a colon in a value without quotes, or a wrong indentation"},
		{"a:\nb: 1\nc: [1,\n 2,\n \"3\" \"4\", # here\n 5]\nd: 1\n", "expected a comma or, at the end of the list, ]"},
		{"a: {b: 1,\n c: \"2\"\n \"d\": 3, # here\n e: 4}\nf: 1\n", "expected a comma or, at the end of the mapping, }"},
		{"a: 1\nb: [{c: [1, 2},\n 3]\n", "expected a comma or, at the end of the list, ]"},
		{"a: 1\nb: [1, # here\n2\n\n", "expected a comma or, at the end of the list, ]"},
		{"a: 1\nb: [1,\n ] ] # here\nc: 3\n", "expected a key, indented like the keys above it"},
		{"a: 1\nb # here\nc: 1\n", "expected a colon after a key"},
		{"a: \"x\n  y\\q\" # here\nb: 1\n", `an unknown escape in double quotes: write \\ for a backslash`},
		{"a: 1\nb: *nobody # here\nc: 1\n", "unknown anchor"},
		{"# *nobody\na: '*nobody'\nb: *nobody # here\nc: 1\n", "unknown anchor"},
		{"a: 1\nb: @x # here\n", "a tab in the indentation, or a value that must be quoted"},
		{"%YAML 1.1\n%YAML 1.1 # here\n---\na: 1\n", "found duplicate %YAML directive"},
		{"# x\n%YAML 1.3 # here\n---\na: 1\n", "found incompatible YAML document"},
		{"a: 1\n...\n}b # here\n", "expected --- before another document"},
		{"a: 1\n---\nb: 1\n---\nc: 1\nd # here\n", "expected a colon after a key"},
	} {
		line := lineAfter([]byte(tt.text[:max(0, strings.Index(tt.text, "# here"))]))
		if !strings.Contains(tt.text, "# here") {
			line = 2
		}
		before := 0
		for _, above := range []string{"", "# a comment\n", "#\n\n\n\n", strings.Repeat("# long\n", 500)} {
			before = strings.Count(above, "\n")
			for _, end := range []string{"\n", "\r\n", "\r"} {
				text := strings.ReplaceAll(above+tt.text, "\n", end)
				_, err := Parse(t.Context(), []byte(text))
				wrong, ok := errors.AsType[*Error](err)
				if !ok || wrong.Line != line+before || wrong.Why != tt.want {
					t.Errorf("%q below %d lines, lines end in %q: %v, want line %d: %s", tt.text, before, end, err, line+before, tt.want)
				}
			}
		}
	}
}

// TestVersion: a document may say that it is YAML 1.2. What looks like that within a value is text.
func TestVersion(t *testing.T) {
	for text, want := range map[string]string{
		"%YAML 1.2\n---\na: 1\n":                        `{a:"1"}`,
		"\ufeff%YAML 1.2\n---\na: 1\n":                  `{a:"1"}`,
		"# x\n\n%YAML\t1.2 # y\r\n--- \r\na: 1\r\n":     `{a:"1"}`,
		"%YAML 1.1\n---\na: 1\n...\n%YAML 1.2\n---\nb:": `{a:"1"} {b:(!!null)}`,
		"%TAG ! !x\n%YAML 1.2\n---\na: 1":               `{a:"1"}`,
		"--- \"\n%YAML 1.2\n\"":                         `" %YAML 1.2 "`,
		"a: |\n  ...\n  %YAML 1.2\n":                    `{a:"...\n%YAML 1.2\n"}`,
		"%YAML 1.20\n---\na: 1\n":                       "not YAML: found incompatible YAML document",
		"%YAML 2.0\n---\na: 1\n":                        "not YAML: found incompatible YAML document",
	} {
		roots, err := Parse(t.Context(), []byte(text))
		var parts []string
		for _, root := range roots {
			parts = append(parts, show(root))
		}
		got := strings.Join(parts, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestParseCanceled: the parser stops when its context ends.
func TestParseCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Parse(ctx, []byte("a: 1")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// FuzzParse checks that the library's output parses, and that an error is a single line.
func FuzzParse(f *testing.F) {
	f.Add("a", "b\n", "a: &a {b: *a}")
	f.Add("<<", "~", "a: |+2\n   x\n \n")
	f.Add("0x1f", " \ttrue\u0085", "%YAML 1.1\n---\n? a\n: !!str b\n...\n--- {}")
	f.Fuzz(func(t *testing.T, key, value, text string) {
		if _, err := Parse(t.Context(), []byte(text)); err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("the error has several lines: %q", err)
		}
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			t.Skip("the library writes !!binary")
		}
		written, err := yaml.Marshal(map[string]string{key: value})
		var back map[string]string
		if err != nil || yaml.Unmarshal(written, &back) != nil || !cmp.Equal(back, map[string]string{key: value}) {
			t.Skip("the library does not read what it wrote")
		}
		roots, err := Parse(t.Context(), written)
		if err != nil || len(roots) != 1 || show(roots[0]) != fmt.Sprintf("{%s:%q}", key, value) {
			t.Errorf("%q is read as %v, %v", written, roots, err)
		}
	})
}

// TestJSON: a document in JSON may have every escape of JSON.
func TestJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": "http:\/\/x"}`:         "http://x",
		`{"a": "\ud83d\ude00\\\/"}`:   "\U0001f600\\/",
		`{"a": "\\ud83d\\ude00"}`:     `\ud83d\ude00`,
		`{"a": "\u00e9\"\n\t\u0041"}`: "é\"\n\tA",
		"{\"a\": \"\\\\\"}":           `\`,
	} {
		docs, err := Parse(t.Context(), []byte(text))
		if err != nil || len(docs) != 1 {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, value := range Members(docs[0]) {
			if got, ok := Scalar(value); !ok || got != want {
				t.Errorf("%s: got %q, want %q", text, got, want)
			}
		}
	}
	if _, err := Parse(t.Context(), []byte(`{"a": "\ud800"}`)); err == nil {
		t.Error("half a surrogate pair was read")
	}
}

// FuzzJSON: a string in JSON is read as JSON reads it, and so is what Quote writes. Half a surrogate pair, which
// JSON reads as U+FFFD, may be refused, and text that is not UTF-8.
func FuzzJSON(f *testing.F) {
	f.Add(`"\ud83d\ude00\/"`)
	f.Add(`"\\\u005c\/"`)
	f.Add("\"a\u007f\u0085\u2028\ufeff\uffff\"")
	f.Fuzz(func(t *testing.T, text string) {
		var want string
		if json.Unmarshal([]byte(text), &want) != nil {
			t.Skip()
		}
		quoted := Quote(want)
		for _, doc := range []string{`{"a":` + text + `}`, `{"a":` + quoted + `}`, "a:\n  " + quoted + "\n", "[" + quoted + "]"} {
			docs, err := Parse(t.Context(), []byte(doc))
			if err != nil {
				if utf8.ValidString(text) && !strings.ContainsRune(want, utf8.RuneError) || strings.Contains(doc, quoted) {
					t.Errorf("%q: %v", doc, err)
				}
				continue
			}
			if got := show(docs[0]); got != fmt.Sprintf("{a:%q}", want) && got != fmt.Sprintf("[%q]", want) {
				t.Errorf("%q: got %s, want %q", doc, got, want)
			}
		}
	})
}

// TestSlash: \/ is an escape in double quotes, as in YAML 1.2, and text elsewhere.
func TestSlash(t *testing.T) {
	for text, want := range map[string]string{
		`"x\/y"`: "x/y", `x\/y`: `x\/y`, `'x\/y'`: `x\/y`, `"\\/"`: `\/`, `"\\\/"`: `\/`, `"a\/b" # \/`: "a/b", "|\n \\/\n": "\\/\n",
	} {
		roots, err := Parse(t.Context(), []byte(text))
		if err != nil || len(roots) != 1 {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, ok := Scalar(roots[0]); !ok || got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if _, err := Parse(t.Context(), []byte(`"\x2f\/"`)); err == nil {
		t.Error("the escape is told from text that has the form of its replacement")
	}
}
