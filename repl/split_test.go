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
		{line: "get a\r", want: plain("get", "a\r")},
		{line: "# comment \"'"},
		{line: "get a # comment '", want: plain("get", "a")},
		{line: "get a#b", want: plain("get", "a#b")},
		{line: `get ""#b`, want: []Word{{"get", false}, {"#b", true}}},
		{line: `set a -`, want: plain("set", "a", "-")},
		{line: `set a "-" ''`, want: []Word{{"set", false}, {"a", false}, {"-", true}, {"", true}}},
		{line: `"a"b'c' d`, want: []Word{{"abc", true}, {"d", false}}},
		{line: `get {thermostat}\setPoint`, want: plain("get", `{thermostat}\setPoint`)},
		{line: `a\" b"`, want: []Word{{`a\ b`, true}}},
		{line: `"\n\r\t\\\"\x00\xfF'"`, want: []Word{{"\n\r\t\\\"\x00\xff'", true}}},
		{line: `'\n"\'`, want: []Word{{`\n"\`, true}}},
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
		{line: `x"\x4"`, err: `byte 2: expected \x and two hexadecimal digits, got \x4`},
		{line: "\"a\\\nb\"", err: `byte 2: expected one of \n \r \t \\ \" \xHH, got \\n`},
		{line: "del a ; get b", err: `";": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: "get a; get b", err: `"a;": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: "get a | x", err: `"|": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: "get a && x", err: `"&&": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: "get a > x", err: `">": a line is one command, without pipes or redirections; quote it if it is a word`},
		{line: `set ";" '|' ">"'>' <a &b`, want: []Word{{"set", false}, {";", true}, {"|", true}, {">>", true}, {"<a", false}, {"&b", false}}},
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

// fuzzWords returns words of any bytes.
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
