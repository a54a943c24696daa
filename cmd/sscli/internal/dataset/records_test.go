package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// read returns the records of a text as lines. If there is an error, it is the last line.
func read(text string, o Options) string {
	var out strings.Builder
	for r, err := range Read(strings.NewReader(text), o) {
		if err != nil {
			fmt.Fprintln(&out, err)
			break
		}
		fmt.Fprintf(&out, "%d %s\n", r.Line, r.JSON)
	}
	return out.String()
}

func TestReadJSON(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"lines", "{ \"a\" : 1.0 , \"b\":\"x y\"}\n{\"b\":1e5,\"a\":null}\n", "1 {\"a\":1.0,\"b\":\"x y\"}\n2 {\"b\":1e5,\"a\":null}\n"},
		{"blank lines", "\n{\"a\":1}\r\n\r\n  {\"a\":2}", "2 {\"a\":1}\n4 {\"a\":2}\n"},
		{"array", "[ {\"a\":1},\n {\n\"a\":[2]}]\n", "1 {\"a\":1}\n2 {\"a\":[2]}\n"},
		{"empty array", "[]", ""},
		{"nothing", "", ""},
		{"byte order mark", "\xef\xbb\xbf{\"a\":1}", "1 {\"a\":1}\n"},
		{"objects over lines", "{\n  \"a\": 1\n}\n{\n  \"a\": 2\n}\n", "1 {\"a\":1}\n4 {\"a\":2}\n"},
		{"commas", "{\"a\":1},\n{\"a\":2}", "1 {\"a\":1}\nx:1:8: a comma after a record: expected a newline alone between records, or all of them in [ ]\n"},
		{"no object", "{\"a\":1}\n 5", "1 {\"a\":1}\nx:2:2: expected an object such as {\"id\":\"1\"}, and found a number\n"},
		{"array in array", "[[]]", "x:1:2: expected an object such as {\"id\":\"1\"}, and found an array\n"},
		{"syntax", "{\"a\":1}\n{\"a\":x}\n", "1 {\"a\":1}\nx:2:6: not JSON: invalid character 'x' at start of value\n"},
		{"syntax in array", "[{\"a\":1},\n {\"a\":01}]", "1 {\"a\":1}\nx:2:8: not JSON: invalid character '1' after object value (expecting ',' or '}')\n"},
		{"no comma in array", "[{\"a\":1} {}]", "1 {\"a\":1}\nx:1:10: not JSON: invalid character '{' after array element (expecting ',' or ']')\n"},
		{"comma at end of array", "[{\"a\":1},]", "1 {\"a\":1}\nx:1:9: not JSON: invalid character ',' at start of value\n"},
		{"open array", "[{\"a\":1},\n", "1 {\"a\":1}\nx:2:1: the text ends inside of a JSON value\n"},
		{"open array after a record", "[{\"a\":1}", "1 {\"a\":1}\nx:1:9: the text ends inside of a JSON value\n"},
		{"open object", "{\"a\":1", "x:1:7: the text ends inside of a JSON value\n"},
		{"after the array", "[{\"a\":1}]\n{}", "1 {\"a\":1}\nx:2:1: text after the array\n"},
		{"closing brace", "{\"a\":1}}", "1 {\"a\":1}\nx:1:8: not JSON: invalid character '}' at start of value\n"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "x:1:7: not UTF-8\n"},
		{"half of a surrogate pair", `{"a":"\ud800"}`, "x:1:7: half of a surrogate pair, which is no character\n"},
		{"UTF-16", "\xff\xfe{\x00}\x00\r\x00\n\x00", "1 {}\n"},
		{"half of a character", "\xff\xfe{\x00}\x00\r", "x:1:1: not UTF-16: half of a character at byte 6\n"},
	} {
		for _, size := range []string{"", "one byte at a time"} {
			source := io.Reader(strings.NewReader(tt.text))
			if size != "" {
				source = iotest.OneByteReader(source)
			}
			var out strings.Builder
			for r, err := range Read(source, Options{Name: "x", Format: JSON}) {
				if err != nil {
					fmt.Fprintln(&out, err)
					break
				}
				fmt.Fprintf(&out, "%d %s\n", r.Line, r.JSON)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", tt.name, size, diff)
			}
		}
	}
}

func TestReadStored(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"{\"a\":1}\n{ \"a\": 2 }":  "1 {\"a\":1}\n2 {\"a\":2}\n",
		"{\"a\":1}\r\n":            "1 {\"a\":1}\n",
		"{\"a\":1}\n\n":            "1 {\"a\":1}\nk:2:1: the line is blank: expected a record\n",
		"[{\"a\":1}]":              "k:1:1: expected an object such as {\"id\":\"1\"}, and found an array\n",
		"[\n{\"a\":1}\n]":          "k:1:2: the line ends inside of a JSON value: a record must be on one line\n",
		"{\n\"a\":1}":              "k:1:2: the line ends inside of a JSON value: a record must be on one line\n",
		"{\"a\":1},\n{\"a\":2}":    "k:1:8: a comma after a record: expected a newline alone between records, or all of them in [ ]\n",
		"{\"a\":1} {\"a\":2}":      "k:1:9: text after the record: expected one record a line\n",
		"a,b\n1,2":                 "k:1:1: not JSON: invalid character 'a' at start of value\n",
		"  7":                      "k:1:3: expected an object such as {\"id\":\"1\"}, and found a number\n",
		"\xef\xbb\xbf{\"a\":1}":    "k:1:1: the value begins with a byte order mark: expected a record\n",
		"{\"\\udfff\":1}":          "k:1:3: half of a surrogate pair, which is no character\n",
		"{\"a\":1}\n{\"a\":\"\xff": "1 {\"a\":1}\nk:2:7: not UTF-8: the byte 0xff, which is \"ÿ\" in Windows-1252\n",
	} {
		if diff := cmp.Diff(want, read(text, Options{Name: "k", Stored: true})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestReadCSV(t *testing.T) {
	types, err := ParseTypes("serial=string,spec=json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text, want string
		o                Options
	}{
		{"types", "id,n,ok,z\n007,1.50,true,\n\"a, b\",-3,TRUE,\"say \"\"x\"\"\"\n",
			"2 {\"id\":\"007\",\"n\":1.50,\"ok\":true}\n3 {\"id\":\"a, b\",\"n\":-3,\"ok\":\"TRUE\",\"z\":\"say \\\"x\\\"\"}\n", Options{}},
		{"own types", "serial,spec\n7,\"{\"\"a\"\": [1]}\"\n\"\",\n", "2 {\"serial\":\"7\",\"spec\":{\"a\":[1]}}\n3 {\"serial\":\"\"}\n", Options{Types: types}},
		{"all strings", "a,b\n1,true\n", "2 {\"a\":\"1\",\"b\":\"true\"}\n", Options{Types: Types{"*": String}}},
		{"wrong type", "a\n1\nx\n", "2 {\"a\":1}\nx.csv:3:1: column \"a\": \"x\" is not a number\n", Options{Types: Types{"a": Number}}},
		{"no such column", "a\n1\n", "x.csv:1:1: no column \"b\", which has a type: the columns are a\n", Options{Types: Types{"b": Number}}},
		{"short row", "a,b\n1\n", "x.csv:2:1: another number of cells than the header, which has 2\n", Options{}},
		{"quote", "a\nx\"y\n", "x.csv:2:2: a \" inside of a cell without quotes: expected the cell in quotes, with \"\" for each \"\n", Options{}},
		{"same names", "a,b,a\n", "x.csv:1:5: columns 1 and 3 of the header have the same name \"a\"\n", Options{}},
		{"no name", "a,,b\n", "x.csv:1:3: column 2 of the header has no name: expected a header line with the names of the fields\n", Options{}},
		{"semicolons", "a;b\n1;2\n", "x.csv:1:1: one column \"a;b\": expected cells between commas\n", Options{}},
		{"separator", "a;b\n1;2\n", "2 {\"a\":1,\"b\":2}\n", Options{Comma: ';'}},
		{"lines in a cell", "a,b\n\"x\ny\",1\n2,3\n", "2 {\"a\":\"x\\ny\",\"b\":1}\n4 {\"a\":2,\"b\":3}\n", Options{}},
		{"lines that end in CR", "a,b\r1,\"x\ry\"\r\"2\",z\r", "2 {\"a\":1,\"b\":\"x\\ry\"}\n3 {\"a\":2,\"b\":\"z\"}\n", Options{}},
		{"rows of separators", "a,b,c\n,,\n1,,3\n\n,,\n\"\",,\n", "3 {\"a\":1,\"c\":3}\n6 {}\n", Options{}},
		{"rows of separators, all strings", "a;b\n;\n1;\n", "3 {\"a\":\"1\",\"b\":\"\"}\n", Options{Comma: ';', Types: Types{"*": String}}},
		{"booleans of spreadsheets", "a,b\nTRUE,True\nFALSE,tRue\n", "2 {\"a\":true,\"b\":\"True\"}\n3 {\"a\":false,\"b\":\"tRue\"}\n", Options{Types: Types{"a": Boolean}}},
		{"sep=", "\xef\xbb\xbfsep=;\r\na;b\r\n1;2\r\n3\r\n", "3 {\"a\":1,\"b\":2}\nx.csv:4:1: another number of cells than the header, which has 2\n", Options{}},
		{"sep= and comma", "sep=,\na,b\n1,2\n", "3 {\"a\":1,\"b\":2}\n", Options{}},
		{"sep= and a flag", "sep=,\na;b\n1;2\n", "3 {\"a\":1,\"b\":2}\n", Options{Comma: ';'}},
		{"line ends in a cell", "a\r\n\"x\r\n\ry\n\"\r\n", "2 {\"a\":\"x\\r\\n\\ry\\n\"}\n", Options{}},
		{"CR, CRLF, LF", "a\r1\r\n2\n3\r\r\n4", "2 {\"a\":1}\n3 {\"a\":2}\n4 {\"a\":3}\n6 {\"a\":4}\n", Options{}},
		{"error after CR", "a,b\r1,2\r3\r", "2 {\"a\":1,\"b\":2}\nx.csv:3:1: another number of cells than the header, which has 2\n", Options{}},
		{"not UTF-8", "a,b\n1,\xe9\n", "x.csv:2:3: column \"b\": not UTF-8: the byte 0xe9, which is \"é\" in Windows-1252\n", Options{}},
		{"quoted header with a semicolon", "\"x;y\"\n1\n", "2 {\"x;y\":1}\n", Options{}},
		{"header with a semicolon, and a flag", "x;y\n1\n", "2 {\"x;y\":1}\n", Options{Comma: ','}},
		{"byte order mark", "\xef\xbb\xbfa\n1\n", "2 {\"a\":1}\n", Options{}},
	} {
		tt.o.Name = "x.csv"
		if diff := cmp.Diff(tt.want, read(tt.text, tt.o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestColumnWithSemicolon: a data set with one column whose name has a semicolon or a tab survives a CSV file.
func TestColumnWithSemicolon(t *testing.T) {
	for _, name := range []string{"x;y", "x\ty", `x"y;z`, "x,y"} {
		records := fmt.Sprintf("{%q:1}\n", name)
		var file bytes.Buffer
		if err := WriteCSV(&file, []string{name}, Read(strings.NewReader(records), Options{})); err != nil {
			t.Fatal(err)
		}
		if got, want := read(file.String(), Options{Name: "x.csv"}), "2 "+records; got != want {
			t.Errorf("%q: %q, want %q", file.String(), got, want)
		}
	}
}

// TestDecimalComma: numbers with a decimal comma are told, with their lines.
func TestDecimalComma(t *testing.T) {
	var s Survey
	for r, err := range Read(strings.NewReader("a;b\n1,5;x\n2;-20,25\n3;1,2,3\n4;x1,5\n"), Options{Name: "x.csv", Comma: ';'}) {
		if err == nil {
			err = s.Add(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`2 records have numbers with a decimal comma (lines 2, 3): JSON has a dot there, so a: "1,5" is text, which no number equals`}
	if diff := cmp.Diff(want, s.Warnings()); diff != "" {
		t.Error(diff)
	}
}

func TestFormat(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"-", " [{\"a\":1}]", "1 {\"a\":1}\n"},
		{"-", "a\n1\n", "2 {\"a\":1}\n"},
		{"x.TSV", "a\tb\n1\t2\n", "2 {\"a\":1,\"b\":2}\n"},
		{"x.json", "a\n1\n", "x.json:1:1: not JSON: invalid character 'a' at start of value\n"},
	} {
		if got := read(tt.text, Options{Name: tt.name}); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestParseTypesErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a":             `"a": expected COLUMN=TYPE`,
		"a=int":         `"a=int": expected string, number, boolean or json after the =`,
		"a=json,a=json": `column "a" has two types`,
	} {
		if _, err := ParseTypes(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestReaderError(t *testing.T) {
	for _, o := range []Options{{}, {Stored: true}, {Format: CSV}} {
		source := io.MultiReader(strings.NewReader("{}\n"), iotest.ErrReader(io.ErrClosedPipe))
		if _, _, err := valueOf(t, source, o); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// valueOf returns the records of a source as JSON Lines, and their number.
func valueOf(t *testing.T, source io.Reader, o Options) ([]byte, int, error) {
	t.Helper()
	var text bytes.Buffer
	var survey Survey
	err := Copy(t.Context(), &text, source, o, &survey)
	return text.Bytes(), survey.Records, err
}

// of returns the records of a text.
func of(text []byte, o Options) iter.Seq2[Record, error] { return Read(bytes.NewReader(text), o) }

// FuzzRead checks that a canonical value can be read again as a stored value without a change, whatever its source was.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"{ \"a\" : 1.0 }\n{\"b\":[1, {}]}", "[{\"a\":1},\n{\"a\":2}]", "a,b\n1,x\n", "{\"a\":1},{}", "[{\"a\":1}", "a;b\n\"1\n\";2",
		"{\"\\ud800\":\"\\u2028\"}", "[{}]]",
	} {
		for _, format := range []string{"", "json", "csv"} {
			f.Add([]byte(text), format)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, format string) {
		value, n, err := valueOf(t, bytes.NewReader(text), Options{Format: Format(format)})
		if err != nil {
			return
		}
		again, m, err := valueOf(t, bytes.NewReader(value), Options{Stored: true})
		if err != nil || n != m || !bytes.Equal(again, value) {
			t.Errorf("%q is read as %q, and that as %q, %v", text, value, again, err)
		}
		if again, m, err = valueOf(t, iotest.OneByteReader(bytes.NewReader(value)), Options{Format: JSON}); err != nil || n != m || !bytes.Equal(again, value) {
			t.Errorf("%q: stored as %q, read as JSON %q, %v", text, value, again, err)
		}
	})
}

// FuzzCSV checks that records from CSV survive writing and reading as CSV, even if the first records lack some fields.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{
		"id,n,ok,z\n007,1.50,true,\n\"a, b\",-3,TRUE,\"say \"\"x\"\"\"\n", "a,b\r1,\"\r\n\r\"\r", "a\n\n\"\"\n1\n", "a,b\n\"x\r\ny\",\n", "a\r\n\" \"\r\n", "é\n1e5\n",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, strings bool) {
		o := Options{Format: CSV, Types: Types{}}
		if strings {
			o.Types["*"] = String
		}
		value, _, err := valueOf(t, bytes.NewReader(text), o)
		if err != nil {
			return
		}
		for _, end := range []string{"\r", "\r\n"} { // other line ends give the same records
			if bytes.ContainsAny(text, "\"\r") {
				break
			}
			other := bytes.ReplaceAll(text, []byte("\n"), []byte(end))
			if got, _, err := valueOf(t, bytes.NewReader(other), o); err != nil || !bytes.Equal(got, value) {
				t.Errorf("%q has the records %q, and with %q %q, %v", text, value, end, got, err)
			}
		}
		columns, err := Columns(of(value, Options{Stored: true}))
		if err != nil {
			t.Fatal(err)
		}
		if len(columns) == 0 {
			return // only empty cells
		}
		var out bytes.Buffer
		if err := WriteCSV(&out, columns, of(value, Options{Stored: true})); err != nil {
			t.Fatal(err)
		}
		again, _, err := valueOf(t, iotest.OneByteReader(bytes.NewReader(out.Bytes())), o)
		if err != nil || !bytes.Equal(value, again) {
			t.Errorf("%q has the records %q, written as %q, read as %q, %v", text, value, out.Bytes(), again, err)
		}
	})
}

// TestColumns: the columns are in the order of the fields of each record, if the records agree on an order.
func TestColumns(t *testing.T) {
	for text, want := range map[string]string{
		"a,b,c\n1,,3\n1,2,3\n":                         "a b c",
		"a,b,c,d\n,,,4\n,2,,4\n1,2,,\n,2,3,\n":         "a b d c", // no record has both c and d
		"{\"a\":1,\"b\":2}\n{\"b\":1,\"a\":2,\"c\":3}": "a b c",
	} {
		columns, err := Columns(of([]byte(text), Options{}))
		if got := strings.Join(columns, " "); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}
