package lineinput

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPairs reads the format of statestore.json, and checks that errors name the line.
func TestPairs(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"[\n  {\n    \"factoryId\": \"factoryA\"\n  },\n  {\n    \"machineId\": \"machineA\"\n  }\n]\n", "2 factoryId=factoryA 5 machineId=machineA"},
		{` \r\n[]`, ""},
		{`[{"a":"1"},{"a":"2"}] `, "1 a=1 1 a=2"},
		{"[{\"a\":\"\\u00e9\\\"\"}]", `1 a=é"`},
		{"\n\n{\"key\":\"a\",\"value\":\"1\"}\n", "3 a=1"},

		{"[\n{\"a\":1}]", "line 2: the value of a is a number: expected a string"},
		{"[{\"a\":\"1\",\n\"b\":\"2\"}]", "line 1: an object with 2 members: expected one key and its value"},
		{"[{}]", "line 1: an object with 0 members: expected one key and its value"},
		{"[[]]", `line 1: expected an object such as {"id":"1"}, and found an array`},
		{`[{"":"1"}]`, "line 1: the key is empty: it must have at least one byte"},
		{`[{"a":"\ud800"}]`, "line 1: half of a surrogate pair, which is no character"},
		{"[{\"a\":\"\xff\"}]", "line 1: not UTF-8"},
		{"[{\"a\":\"1\"}\n", "1 a=1 line 2: the text ends inside of a JSON value"},
		{"[{\"a\":\"1\"}\n,", "1 a=1 line 2: the text ends inside of a JSON value"},
		{"[\n{\"a\":}]", "line 2: not JSON: invalid character '}' at start of value"},
		{"[\n{\"a\":\"1\"}]\n x", "2 a=1 line 3: text after the array"},
	} {
		in := strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(tt.in)
		if got := strings.Join(read(t, in), " "); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", in, got, tt.want)
		}
	}
}

// read returns the entries of a text, followed by the error if there is one.
func read(t *testing.T, text string) (got []string) {
	for e, err := range Entries(t.Context(), strings.NewReader(text), 1) {
		if err != nil {
			return append(got, err.Error())
		}
		got = append(got, fmt.Sprintf("%d %s=%s", e.Line, e.Key, e.Value))
	}
	return got
}

// TestPairsEnd: text that is not an array of objects ends the input, also before the first line to return.
func TestPairsEnd(t *testing.T) {
	const in = "[\n{\"a\":1},\n{\"b\":\"2\"}\n,]\n"
	for _, tt := range []struct {
		first int
		want  string
	}{
		{1, "2 the value of a is a number: expected a string; 3 <nil>; 4 not JSON: invalid character ',' at start of value, the end; "},
		{3, "3 <nil>; 4 not JSON: invalid character ',' at start of value, the end; "},
		{9, "4 not JSON: invalid character ',' at start of value, the end; "},
	} {
		got := ""
		for line := range Lines(t.Context(), strings.NewReader(in), tt.first) {
			got += fmt.Sprintf("%d %v", line.Number, line.Err)
			if line.End {
				got += ", the end"
			}
			got += "; "
		}
		if got != tt.want {
			t.Errorf("from line %d:\n got %s\nwant %s", tt.first, got, tt.want)
		}
	}
	const whole = "[\n{\"a\":\"1\"}\n]"
	for line := range Lines(t.Context(), strings.NewReader(whole), 5) {
		if want := "--from-line 5: the input has 3 lines"; line.Err == nil || line.Err.Error() != want || !line.End {
			t.Errorf("from a line behind the end: %v, want %s", line.Err, want)
		}
	}
}

// FuzzPairs checks that an array of pairs and the JSON lines of the same pairs give the same entries, and that any
// other text ends with at most one error.
func FuzzPairs(f *testing.F) {
	f.Add("factoryId", "factoryA", `[{"a":"1"},`)
	f.Add("\u2028", "\"", "[ {\n\"a\"\n:\"\\ud83d\\ude00\"} ] ")
	f.Fuzz(func(t *testing.T, key, value, text string) {
		read(t, "["+text)
		pair, err := json.Marshal(map[string]string{key: value})
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(map[string]string{"key": key, "value": value})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(read(t, string(line)), read(t, "["+string(pair)+"]")); diff != "" {
			t.Errorf("-line +pair\n%s", diff)
		}
	})
}
