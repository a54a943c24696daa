package repl

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sscli/sscli/format"
)

func TestUnder(t *testing.T) {
	for _, tt := range []struct {
		line   string
		before []Word
		part   Word
		start  int
		no     bool
	}{
		{line: ""},
		{line: "ge", part: Word{"ge", false}},
		{line: "get ", before: plain("get"), start: 4},
		{line: "get a", before: plain("get"), part: Word{"a", false}, start: 4},
		{line: `get a"b c`, no: true},
		{line: `get "a\n`, before: plain("get"), part: Word{"a\n", true}, start: 4},
		{line: `get 'a\n`, before: plain("get"), part: Word{`a\n`, true}, start: 4},
		{line: "set a 'x\ny' b", before: []Word{{"set", false}, {"a", false}, {"x\ny", true}}, part: Word{"b", false}, start: 12},
		{line: "get a\ndel b", before: plain("del"), part: Word{"b", false}, start: 10},
		{line: "get a # b", no: true},
		{line: `get "a\`, no: true},
		{line: `get "\q" b`, no: true},
		{line: "get 'a\nb", no: true},
	} {
		before, part, start, ok := atCursor(tt.line)
		if ok == tt.no {
			t.Errorf("%q: ok is %v", tt.line, ok)
		}
		if diff := cmp.Diff(tt.before, before); diff != "" || part != tt.part || start != tt.start {
			t.Errorf("%q: got %v at %d, want %v at %d; before it (-want +got):\n%s", tt.line, part, start, tt.part, tt.start, diff)
		}
	}
}

func TestComplete(t *testing.T) {
	words := func(candidates ...Candidate) Completer {
		return func([]Word, Word) []Candidate { return candidates }
	}
	for _, tt := range []struct {
		line       string
		candidates Completer
		want       string
		show       int
	}{
		{"ge", words(), "ge", 0},
		{"ge", words(Candidate{Text: "get"}), "get ", 0},
		{"ge", words(Candidate{Text: "get"}, Candidate{Text: "getter"}), "get", 0},
		{"get", words(Candidate{Text: "get"}, Candidate{Text: "getter"}), "get", 2},
		{"get t", words(Candidate{Text: "two words"}), `get "two words" `, 0},
		{"get t", words(Candidate{Text: "two words"}, Candidate{Text: "two weeks"}), `get "two w`, 0},
		{"get -", words(Candidate{Text: "-x"}), `get "-x" `, 0},
		{"get -", words(Candidate{Text: "--file", Flag: true}), "get --file ", 0},
		{"get f", words(Candidate{Text: "file/", Open: true}), "get file/", 0},
		{"get é", words(Candidate{Text: "é\xff\xfe"}, Candidate{Text: "é\xff\xfd"}), `get "é\xff`, 0},
		{"get x", words(Candidate{Text: "x日"}, Candidate{Text: "x旦"}), "get x", 2},
	} {
		start, text, show := complete(tt.line, tt.candidates)
		if got := tt.line[:start] + text; got != tt.want || len(show) != tt.show {
			t.Errorf("%q: got %q and %d to show, want %q and %d", tt.line, got, len(show), tt.want, tt.show)
		}
	}
}

// FuzzComplete checks that a completed word parses as the candidate, whatever its bytes, and that the common
// prefix of two candidates is a prefix of both.
func FuzzComplete(f *testing.F) {
	f.Add("get ", "two words", "two\x00")
	f.Add("set a \"", "-é", "\xff")
	f.Add("get a; ", "b", "")
	f.Fuzz(func(t *testing.T, line, one, other string) {
		if _, _, _, ok := atCursor(line); !ok {
			return
		}
		start, text, _ := complete(line, func([]Word, Word) []Candidate { return []Candidate{{Text: one}} })
		completed, logical := line[:start]+text, ""
		var words []Word // words of the last logical line
		for physical := range strings.SplitAfterSeq(completed, "\n") {
			logical += physical
			var err error
			if words, err = Split(logical); !errors.Is(err, ErrIncomplete) {
				logical = ""
			}
		}
		if len(words) == 0 || words[len(words)-1].Text != one {
			t.Fatalf("%q completed with %q is %q: %v", line, one, completed, words)
		}
		common := commonPrefix(one, other)
		if !strings.HasPrefix(one, common) || !strings.HasPrefix(other, common) {
			t.Errorf("%q and %q have %q in common", one, other, common)
		}
		if open := openWord(Candidate{Text: one}); !strings.HasPrefix(format.Word(one), open) {
			t.Errorf("%q is no beginning of %q", open, format.Word(one))
		}
	})
}

func TestListed(t *testing.T) {
	for _, tt := range []struct {
		candidates []Candidate
		width      int
		want       string
	}{
		{[]Candidate{{Text: "a"}, {Text: "日本"}, {Text: "c"}}, 14, "a     c\r\n日本\r\n"},
		{[]Candidate{{Text: "a"}, {Text: "b c"}}, 3, "a\r\n\"b c\"\r\n"},
		{[]Candidate{{Text: "get", Help: "Print values"}, {Text: "set"}}, 80, "get  Print values\r\nset\r\n"},
		{[]Candidate{{Text: "get", Help: "Print values\x1b"}, {Text: "set"}}, 16, "get  Print val…\r\nset\r\n"},
	} {
		if got := listing(tt.candidates, tt.width); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if got := listing(make([]Candidate, 102), 80); !strings.HasSuffix(got, "... and 2 more\r\n") {
		t.Errorf("got %q", got)
	}
}
