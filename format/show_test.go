package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// terminal returns Options for a terminal of this size.
func terminal(width, height int) Options {
	return Options{Output: "human", Terminal: true, Size: func() (int, int) { return width, height }}
}

func TestShow(t *testing.T) {
	values := []struct{ name, value string }{
		{"number", "21.5"},
		{"text", "ça va: \\n is no escape"},
		{"empty", ""},
		{"spaces", " a "},
		{"newline", "21.5\n"},
		{"like nil", "(nil)"},
		{"quoted already", `"a"`},
		{"lines", "a: 1\nb:\t2\n"},
		{"lines without the last newline", "a\nb"},
		{"escape sequence", "\x1b[2Jgone"},
		{"right to left", "invoice\u202efdp.exe"},
		{"C1", "a\u009b31m"},
		{"carriage returns", "a\r\nb\r\n"},
		{"wide", "設定\t値"},
		{"object", `{"mode":"auto","setpoint":21.50,"big":12345678901234567890,"e":1E400,"limits":{"low":-0.0,"high":null},"tags":["a",true],"none":{},"empty":[ ]}`},
		{"array", "[1,\n 2]\n"},
		{"JSON with escapes", "{\"a\\u202e\":\"\u202e\u009b31m\x7f \\\"q\\\" \\n\U000e0001\"}"},
		{"twice the same name", `{"b":1,"a":2,"b":3}`},
		{"no JSON", `{"a":1,}`},
		{"JSON string", `"a"`},
		{"binary", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR|~ \x7f\xff"},
	}
	var got strings.Builder
	for _, v := range values {
		fmt.Fprintf(&got, "== %s: %q\n", v.name, v.value)
		for _, show := range append([]string{""}, Shows()...) {
			out := string(AppendValue(nil, []byte(v.value), Show(show), Options{}))
			fmt.Fprintf(&got, "-- %s --\n%s", show, out)
			fmt.Fprintf(&got, "in a line: %s\n", ValueLine([]byte(v.value), Show(show)))
		}
	}
	golden(t, "show", got.String())
}

func TestShowOnTerminal(t *testing.T) {
	var doc bytes.Buffer
	for i := range 100 {
		fmt.Fprintf(&doc, `,{"id":%d,"name":"%s"}`, i, strings.Repeat("長い", 20))
	}
	values := []struct{ name, value string }{
		{"JSON", "[" + doc.String()[1:] + "]"},
		{"one line", strings.Repeat("0123456789", 123456)},
		{"wide line", strings.Repeat("値", 10000)},
		{"lines", strings.Repeat("a line of text\twith a tab\n", 1000)},
		{"binary", strings.Repeat("\x00\x01\xff\xfe", 300000)},
		{"short binary", "\x00\x01\xff\xfeabcdefghijklmnopqrs"},
		{"short", "21.5"},
		{"a screen", strings.Repeat("a\n", 20)},
		{"a screen and a line", strings.Repeat("a\n", 21)},
		{"last row", strings.Repeat("a\n", 19) + strings.Repeat("b", 200)},
	}
	for _, width := range []int{30, 80, 120} {
		var got strings.Builder
		for _, v := range values {
			fmt.Fprintf(&got, "== %s\n", v.name)
			o := terminal(width, 24)
			out := string(AppendValue(nil, []byte(v.value), "", o))
			got.WriteString(out)
			rows := 0
			for l := range strings.Lines(out) {
				if !strings.HasPrefix(l, "…") {
					rows += max((Columns(strings.TrimSuffix(l, "\n"))+width-1)/width, 1)
				}
			}
			if rows > 24-screenRows {
				t.Errorf("%s at %d columns: %d rows", v.name, width, rows)
			}
			if !strings.HasPrefix(v.name, "short") && !strings.HasSuffix(out, " in all, -o raw for the bytes\n") && v.name != "a screen" {
				t.Errorf("%s at %d columns is not cut", v.name, width)
			}
		}
		golden(t, fmt.Sprintf("show-%d", width), got.String())
	}
}

func TestShowColors(t *testing.T) {
	out := string(AppendValue(nil, []byte(`{"a":["b",1,null]}`), "", Options{Color: true}))
	want := "{\n  \x1b[36m\"a\"\x1b[0m: [\n    \x1b[32m\"b\"\x1b[0m,\n    \x1b[33m1\x1b[0m,\n    \x1b[33mnull\x1b[0m\n  ]\n}\n"
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1.0 kB", 1234567: "1.2 MB", 999949: "999.9 kB", 999950: "1.0 MB",
		1<<63 - 1: "9.2 EB",
	} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestShowDeepJSON: the output must not grow with the square of the nesting depth.
func TestShowDeepJSON(t *testing.T) {
	const deep = 9000
	value := strings.Repeat("[", deep) + "1" + strings.Repeat("]", deep)
	if out := AppendValue(nil, []byte(value), "", Options{}); len(out) > 2*deep*100 {
		t.Errorf("%d bytes became %d", len(value), len(out))
	}
}

// FuzzShow: whatever the value, a terminal gets only printable characters and line ends, and at most a
// screenful. JSON keeps its meaning, token by token, and a text on one line is either unchanged or escaped.
func FuzzShow(f *testing.F) {
	f.Add([]byte(`{"a":[1.10,"x\u202e",{}],"b":null}`), uint8(80), uint8(24), uint8(0))
	f.Add([]byte("\x00\xff\x1b]0;\u202e"), uint8(20), uint8(3), uint8(1))
	f.Add([]byte("a\tb\nc"), uint8(0), uint8(0), uint8(2))
	f.Fuzz(func(t *testing.T, value []byte, width, height, form uint8) {
		show := Show(append([]string{""}, Shows()...)[form%5])
		o := terminal(int(width), int(height))
		extra := "\n"
		if width == 0 {
			extra = "\n\t"
		}
		out := string(AppendValue(nil, value, show, o))
		if !shows(out, extra) || !strings.HasSuffix(out, "\n") {
			t.Errorf("%q on %d columns as %q: %q", value, width, show, out)
		}
		if line := ValueLine(value, show); !shows(line, "") {
			t.Errorf("%q in a line as %q: %q", value, show, line)
		} else if show == "" && line != string(value) && strings.HasPrefix(line, `"`) {
			if back, err := Unquote(line); err != nil || back != string(value) {
				t.Errorf("%q in a line: %q", value, line)
			}
		}
		if show != ShowJSON || !isJSON(value, true) {
			return
		}
		for _, shown := range []string{string(AppendValue(nil, value, show, Options{})), ValueLine(value, show)} {
			if before, after := tokens(t, string(value)), tokens(t, shown); before != after {
				t.Errorf("%q: shown as %q", value, shown)
			}
		}
	})
}

// tokens returns the tokens of JSON: numbers as written, strings decoded.
func tokens(t *testing.T, text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var all strings.Builder
	for d.More() || d.InputOffset() < int64(len(strings.TrimRight(text, jsonSpace))) {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		fmt.Fprintf(&all, "%T %q\n", token, fmt.Sprint(token))
	}
	return all.String()
}

// FuzzRows: a row's line is at most as wide as the terminal, unless a key is wider. Versions are shown in
// full. The cells of rows on one line begin in the same columns.
func FuzzRows(f *testing.F) {
	f.Add("key", []byte("value"), "a longer key", []byte(`{"a":1}`), uint8(80))
	f.Add("鍵", []byte("値"), "", []byte("\x00"), uint8(20))
	f.Fuzz(func(t *testing.T, key1 string, value1 []byte, key2 string, value2 []byte, width uint8) {
		o := terminal(int(width), 24)
		var out strings.Builder
		p, err := New(&out, o)
		if err != nil {
			t.Fatal(err)
		}
		rows := []Row{Get{Key: key1, Found: true, Value: value1, Many: true}, Get{Key: key2, Found: true, Value: value2, Many: true}}
		p.Measure(rows...)
		var starts []int
		for _, r := range rows {
			out.Reset()
			if err := p.Print(r); err != nil {
				t.Fatal(err)
			}
			row := strings.TrimSuffix(out.String(), "\n")
			g := r.(Get)
			for line := range strings.SplitSeq(row, "\n") {
				if !shows(line, "") || width >= 40 && Columns(Word(g.Key)) <= int(width) && Columns(line) > int(width) {
					t.Errorf("%d columns: %q", width, row)
				}
			}
			n := len(Word(g.Key))
			at := strings.Index(row[n:], "version unknown")
			if at < 0 {
				t.Fatalf("%d columns: the version was cut: %q", width, row)
			}
			if !strings.Contains(row, "\n") {
				starts = append(starts, Columns(row[:n+at]))
			}
		}
		long := maxColumn(int(width))
		if len(starts) == 2 && Columns(Word(key1)) <= long && Columns(Word(key2)) <= long && starts[0] != starts[1] {
			t.Errorf("columns begin at %v", starts)
		}
	})
}
