package glob_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/glob"
)

// parse reads a pattern of a small dialect: * and ?, [abc] and [^abc] without ranges.
func parse(text []byte) *glob.Pattern {
	p := &glob.Pattern{Bytes: true}
	for len(text) > 0 {
		c := text[0]
		text = text[1:]
		end := bytes.IndexByte(text, ']')
		switch {
		case c == '*':
			p.Star()
		case c == '?':
			p.One(true)
		case c == '[' && end >= 0:
			class(p, text[:end])
			text = text[end+1:]
		default:
			p.Literal(rune(c))
		}
	}
	p.Compile()
	return p
}

// class adds an element that matches one byte of a class.
func class(p *glob.Pattern, members []byte) {
	rest, not := bytes.CutPrefix(members, []byte("^"))
	var ranges []glob.Range
	for _, c := range rest {
		ranges = append(ranges, glob.Range{Low: rune(c), High: rune(c)})
	}
	p.One(not, ranges...)
}

// matches is the reference for Match. Its time grows exponentially with the number of stars.
func matches(pattern, text []byte) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	c, rest := pattern[0], pattern[1:]
	if c == '*' {
		return matches(rest, text) || len(text) > 0 && matches(pattern, text[1:])
	}
	if len(text) == 0 {
		return false
	}
	end := bytes.IndexByte(rest, ']')
	switch {
	case c == '?':
		return matches(rest, text[1:])
	case c == '[' && end >= 0:
		members, not := bytes.CutPrefix(rest[:end], []byte("^"))
		return (bytes.IndexByte(members, text[0]) >= 0) != not && matches(rest[end+1:], text[1:])
	}
	return c == text[0] && matches(rest, text[1:])
}

func TestMatch(t *testing.T) {
	long := bytes.Repeat([]byte("ab"), 200)
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"*", "", true}, {"*", "abc", true},
		{"a*c", "abc", true}, {"a*c", "ac", true}, {"a*c", "abd", false}, {"a**c", "abbc", true},
		{"?", "a", true}, {"?", "", false}, {"[ab]", "b", true}, {"[ab]", "c", false}, {"[^ab]", "c", true}, {"[]", "a", false},
		{string(long), string(long), true}, {string(long), string(long[1:]), false},
		{"*" + string(long) + "*", "x" + string(long) + "y", true},
		{string(long) + "*", string(long), true}, {string(long) + "?", string(long), false},
	} {
		p := parse([]byte(c.pattern))
		if got := p.Match([]byte(c.text)); got != c.want {
			t.Errorf("pattern %.40q, text %.40q: got %t", c.pattern, c.text, got)
		}
	}
}

func TestPrefix(t *testing.T) {
	for pattern, want := range map[string]string{"": "", "ab": "ab", "ab*c": "ab", "a?c": "a", "[a]b": "", "*a": ""} {
		if got := parse([]byte(pattern)).Prefix(); string(got) != want {
			t.Errorf("pattern %q: got prefix %q, want %q", pattern, got, want)
		}
	}
}

// TestCost: a pattern that is slow in a backtracking matcher costs no more than any other pattern of its
// length.
func TestCost(t *testing.T) {
	for _, pattern := range [][]byte{bytes.Repeat([]byte("*a"), 500), append(bytes.Repeat([]byte("a"), 999), 'b'), bytes.Repeat([]byte("?"), 1000)} {
		if got := parse(pattern).Cost(65_535); got > 65_535*16 {
			t.Errorf("pattern %.20q: %d steps", pattern, got)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{"a*b?[ab]", "*a*a*a*b", "[^a]*", "[", "a]"} {
		f.Add([]byte(s), []byte("abab"))
	}
	f.Fuzz(func(t *testing.T, pattern, text []byte) {
		if bytes.Count(pattern, []byte("*")) > 3 || len(text) > 30 {
			return // too slow for the reference
		}
		p := parse(pattern)
		if got, want := p.Match(text), matches(pattern, text); got != want {
			t.Errorf("pattern %q, text %q: got %t, want %t", pattern, text, got, want)
		}
		if !bytes.HasPrefix(text, p.Prefix()) && p.Match(text) {
			t.Errorf("pattern %q matches %q, which does not begin with %q", pattern, text, p.Prefix())
		}
		if steps := p.Cost(len(text)); steps > len(text)*(len(pattern)/64+1) {
			t.Errorf("pattern of %d bytes, text of %d: %d steps", len(pattern), len(text), steps)
		}
	})
}

// BenchmarkMatch matches the longest key with the longest pattern that the servers accept.
func BenchmarkMatch(b *testing.B) {
	p := parse(append([]byte("*"), bytes.Repeat([]byte("a"), 1023)...))
	text := append(bytes.Repeat([]byte("a"), 65_534), 'b')
	for b.Loop() {
		if p.Match(text) {
			b.Fatal("it matches")
		}
	}
}

func TestWithout(t *testing.T) {
	for _, c := range []struct{ pattern, others, want string }{
		{"a*", "", "a"}, {"a*", "a", "ax"}, {"a*", "a a?", "axx"}, {"a*", "*", ""}, {"*", "a* [!a]*", ""}, {"*", "a* [!ab]*", "b"},
		{"sensor-*", "sensor-1* sensor-x* sensor-", "sensor-a"}, {"n[0-9]", "n0", "n1"}, {"n[0-9]", "n[1-9]", "n0"}, {"[!a-z]", "[!a-y]", ""},
		{"[!a-z]", "[!a-z1]", "1"}, {"?", "[!é]", "é"}, {"a/**", "a/* a/", ""}, {"a/*", "a/**", ""}, {"**/a", "a ?/a", "/a"}, {"a*b", "a?b ab", "axxb"},
		{"**", "?*", ""}, {"[]", "a", ""}, {"", "", ""},
	} {
		p, _ := glob.Parse(c.pattern)
		if p == nil {
			p = &glob.Pattern{}
			p.One(false)
			p.Compile()
		}
		var others []*glob.Pattern
		for _, text := range strings.Fields(c.others) {
			o, _ := glob.Parse(text)
			others = append(others, o)
		}
		if got, ok := p.Without(others, 1000); got != c.want || ok != (c.want != "") {
			t.Errorf("%s without %s: %q, %t, want %q", c.pattern, c.others, got, ok, c.want)
		}
	}
	p, _ := glob.Parse("*" + strings.Repeat("?", 20))
	if text, ok := p.Without([]*glob.Pattern{p}, 100); ok {
		t.Errorf("%q after the limit", text)
	}
}

// FuzzWithout: a text that is found is matched by the pattern and by no other, and if none is found, no text of a few
// characters is.
func FuzzWithout(f *testing.F) {
	f.Add("a*", "ab*", "a[!b]*", "ac")
	f.Add("?[0-9]", "1*", "", "22")
	f.Fuzz(func(t *testing.T, pattern, one, two, text string) {
		p, ok := glob.Parse(pattern)
		var others []*glob.Pattern
		for _, other := range []string{one, two} {
			if o, ok := glob.Parse(other); ok {
				others = append(others, o)
			}
		}
		if n := len(pattern) + len(one) + len(two); !ok || n > 8 {
			return // more could need more sets of states than the limit
		}
		only := func(text string) bool {
			return p.Match([]byte(text)) && !slices.ContainsFunc(others, func(o *glob.Pattern) bool { return o.Match([]byte(text)) })
		}
		if got, ok := p.Without(others, 1<<12); ok && !only(got) || !ok && got != "" {
			t.Fatalf("%q is not matched by %q alone", got, pattern)
		} else if !ok && text != "" && only(text) {
			t.Fatalf("%q is matched by %q alone, and not found", text, pattern)
		}
	})
}

// TestPathAfterOne: a Path may match nothing also where it does not follow a literal beginning, in short and long patterns.
func TestPathAfterOne(t *testing.T) {
	for _, tail := range []string{"b", strings.Repeat("b", 100)} {
		var p glob.Pattern
		p.One(false, glob.Range{Low: 'a', High: 'z'})
		p.Literal('/')
		p.Path()
		for _, c := range tail {
			p.Literal(c)
		}
		p.Compile()
		for text, want := range map[string]bool{"x/": true, "x/y/": true, "x/y/z/": true, "x": false, "x/y": false, "/": false, "xy/": false} {
			if got := p.Match([]byte(text + tail)); got != want {
				t.Errorf("%q and %d letters: %t", text, len(tail), got)
			}
		}
	}
}
