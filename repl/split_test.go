package repl

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sscli/sscli/format"
)

func plain(texts ...string) (words []Word) {
	for _, text := range texts {
		words = append(words, Word{Text: text})
	}
	return words
}

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []Word
		err  string
	}{
		{line: ""},
		{line: " \t "},
		{line: "get a", want: plain("get", "a")},
		{line: "\tset  k\tv \n", want: plain("set", "k", "v")},
		{line: "get a\r\n", want: plain("get", "a")},
		{line: "get a\r", want: plain("get", "a")},
		{line: "get 'a\r'\r", want: []Word{{"get", false}, {"a\r", true}}},
		{line: "get a\rb", want: plain("get", "a\rb")},
		{line: "get 'a\r", err: "byte 4: the quote is not closed"},
		{line: "# comment \"'"},
		{line: "get a # comment '", want: plain("get", "a")},
		{line: "get a#b", want: plain("get", "a#b")},
		{line: `set a -`, want: plain("set", "a", "-")},
		{line: `set a "-" ''`, want: []Word{{"set", false}, {"a", false}, {"-", true}, {"", true}}},
		{line: `get {thermostat}\setPoint`, want: plain("get", `{thermostat}\setPoint`)},
		{line: `"\n\r\t\\\"\x00\xfF'"`, want: []Word{{"\n\r\t\\\"\x00\xff'", true}}},
		{line: `'\n"\'`, want: []Word{{`\n"\`, true}}},
		{line: `'it"s' "it's"`, want: []Word{{`it"s`, true}, {"it's", true}}},
		{line: "a\xff\x00\u202e", want: plain("a\xff\x00\u202e")},
		{line: "\"a\nb\" 'c\r\nd'\r\n", want: []Word{{"a\nb", true}, {"c\r\nd", true}}},
		{line: "\"a\r\nb\"", want: []Word{{"a\r\nb", true}}},
		{line: "'a\n#b' #c", want: []Word{{"a\n#b", true}}},
		{line: `set a "b`, err: "byte 6: the quote is not closed"},
		{line: "set 'a\n", err: "byte 4: the quote is not closed"},
		{line: `"a\"`, err: "byte 0: the quote is not closed"},
		{line: `"a\`, err: "byte 0: the quote is not closed"},
		{line: `"\q" 'b`, err: "byte 5: the quote is not closed"},
		{line: `set a "b\qc" "\z"`, err: `byte 8: expected one of \n \r \t \\ \" \xHH, got \q`},
		{line: `x "\x4"`, err: `byte 3: expected \x and two hexadecimal digits, got \x4`},
		{line: "\"a\\\nb\"", err: `byte 2: expected one of \n \r \t \\ \" \xHH, got \\n`},
		{line: "del a ; get b", err: `";": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: "get a; get b", err: `"a;": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: "get a | x", err: `"|": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: "get a && x", err: `"&&": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: "get a > x", err: `">": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: `set ";" '|' ">>" <a &b`, want: []Word{{"set", false}, {";", true}, {"|", true}, {">>", true}, {"<a", false}, {"&b", false}}},
		{line: "get a\nget b", err: "byte 6: expected the end of the line outside of quotes, got another line"},
	} {
		words, err := Split(tt.line)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.err {
			t.Errorf("Split(%q): got error %q, want %q", tt.line, got, tt.err)
		}
		if want := strings.HasSuffix(tt.err, "not closed"); errors.Is(err, ErrIncomplete) != want {
			t.Errorf("Split(%q): is ErrIncomplete: got %v, want %v", tt.line, !want, want)
		}
		if diff := cmp.Diff(tt.want, words); diff != "" {
			t.Errorf("Split(%q) (-want +got):\n%s", tt.line, diff)
		}
	}
}

// TestQuoteInsideWord: a quote inside a word is an error with a hint that shows the corrected line.
func TestQuoteInsideWord(t *testing.T) {
	for _, tt := range []struct{ line, err, whole string }{
		{`set cfg {"a":1}`, `byte 9: a quote inside a word; to quote the whole word, write '{"a":1}'`, `set cfg '{"a":1}'`},
		{`set cfg {"a": 1, "b": [2]} `, `byte 9: a quote inside a word; to quote the whole word, write '{"a": 1, "b": [2]}'`, `set cfg '{"a": 1, "b": [2]}' `},
		{`set s it's # '`, `byte 8: a quote inside a word; to quote the whole word, write "it's"`, `set s "it's" # '`},
		{`get a"b it's`, `byte 5: a quote inside a word; to quote the whole word, write 'a"b'`, `get 'a"b' "it's"`},
		{`set k {"it's":1}`, `byte 7: a quote inside a word; to quote the whole word, write "{\"it's\":1}"`, `set k "{\"it's\":1}"`},
		{`set k v --fence="1:2:n"`, `byte 16: a quote inside a word; to quote the whole word, write '--fence=1:2:n'`, `set k v '--fence=1:2:n'`},
		{`get "a"b'c' d`, `byte 7: expected a space after the closing quote; to quote the whole word, write 'abc'`, `get 'abc' d`},
		{`get ""#b`, `byte 6: expected a space after the closing quote; to quote the whole word, write '#b'`, `get '#b'`},
		{"get a\xff'", `byte 6: a quote inside a word; to quote the whole word, write "a\xff'"`, `get "a\xff'"`},
		{`del a'b ; get b`, `byte 5: a quote inside a word; to quote the whole word, write "a'b"`, ""},
		{"get it's\r\n", `byte 6: a quote inside a word; to quote the whole word, write "it's"`, `get "it's"`},
	} {
		_, err := Split(tt.line)
		bad, ok := errors.AsType[*QuoteError](err)
		if !ok || err.Error() != tt.err || bad.Line != tt.whole {
			t.Errorf("Split(%q): got %v, with the line %q; want %s, with %q", tt.line, err, bad.Line, tt.err, tt.whole)
		}
	}
}

// FuzzQuoteError: the line that a QuoteError suggests can be split, and its other words are unchanged.
func FuzzQuoteError(f *testing.F) {
	f.Add(`set cfg {"a": 1} "x"y --f="a b" it's # '`)
	f.Add(`''"" "`)
	f.Fuzz(func(t *testing.T, line string) {
		_, err := Split(line)
		bad, ok := errors.AsType[*QuoteError](err)
		if !ok || bad.Line == "" {
			return
		}
		words, err := Split(bad.Line)
		if err != nil || !strings.Contains(bad.Line, bad.Word) {
			t.Errorf("Split(%q) suggests %q, which has %d words, %v", line, bad.Line, len(words), err)
		}
	})
}

// fuzzWords splits joined into words of any bytes.
func fuzzWords(joined string) []string { return strings.Split(joined, "\x01") }

func FuzzSplit(f *testing.F) {
	f.Add("set\x01k\x01-\x01\x01#a\x01\"'\\\x01a\nb\r\n")
	f.Add("\xff\x01\u202e\x01{a}\\b\x01two words\x01é")
	f.Fuzz(func(t *testing.T, joined string) {
		want := fuzzWords(joined)
		line := make([]string, len(want))
		for i, word := range want {
			line[i] = format.Word(word)
		}
		words, err := Split(strings.Join(line, " "))
		if err != nil {
			t.Fatalf("Split(%q): %v", line, err)
		}
		got := make([]string, len(words))
		for i, word := range words {
			got[i] = word.Text
			if word.Quoted == (line[i] == word.Text) {
				t.Errorf("%s: quoted is %v", line[i], word.Quoted)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Split(%q) (-want +got):\n%s", line, diff)
		}
	})
}
