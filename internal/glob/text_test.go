package glob_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sscli/sscli/internal/glob"
)

// parseText reads a pattern of a small dialect: * and ?, > for a Path, ^x for any character except x, and a-c
// for a range.
func parseText(text []rune) *glob.Pattern {
	p := new(glob.Pattern)
	for ; len(text) > 0; text = text[1:] {
		switch c := text[0]; {
		case c == '*':
			p.Star()
		case c == '?':
			p.One(true)
		case c == '>':
			p.Path()
		case c == '^' && len(text) > 1:
			p.One(true, glob.Range{Low: text[1], High: text[1]})
			text = text[1:]
		case len(text) > 2 && text[1] == '-':
			p.One(false, glob.Range{Low: c, High: text[2]})
			text = text[2:]
		default:
			p.Literal(c)
		}
	}
	p.Compile()
	return p
}

// matchesText is the reference for Match. Its time grows exponentially with the number of stars.
func matchesText(pattern, text []rune) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	c, rest := pattern[0], pattern[1:]
	switch c {
	case '*':
		return matchesText(rest, text) || len(text) > 0 && matchesText(pattern, text[1:])
	case '>':
		if strings.Trim(string(rest), ">") == "" || matchesText(rest, text) {
			return true
		}
		for i, c := range text {
			if c == '/' && matchesText(rest, text[i+1:]) {
				return true
			}
		}
		return false
	}
	if len(text) == 0 {
		return false
	}
	switch {
	case c == '?':
		return matchesText(rest, text[1:])
	case c == '^' && len(rest) > 0:
		return rest[0] != text[0] && matchesText(rest[1:], text[1:])
	case len(rest) > 1 && rest[0] == '-':
		return c <= text[0] && text[0] <= rest[1] && matchesText(rest[2:], text[1:])
	}
	return c == text[0] && matchesText(rest, text[1:])
}

// TestTextCost: a pattern that is slow in a backtracking matcher costs about as much as any other pattern of
// its length.
func TestTextCost(t *testing.T) {
	for _, pattern := range []string{strings.Repeat("*a", 512), strings.Repeat("?", 1024), strings.Repeat(">", 1024), strings.Repeat("é", 512)} {
		p := parseText([]rune(pattern))
		if got := p.Cost(65_535); got > 65_535*32 {
			t.Errorf("pattern %.20q: %d steps", pattern, got)
		}
		p.Match(bytes.Repeat([]byte("é"), 32_000))
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"a*b?a-c", "*a*é*b", "^a*", ">a", "a/>", ">", ">>*/a", strings.Repeat("a", 63) + ">b", strings.Repeat("?", 64) + ">"} {
		f.Add(s, "abaéb")
		f.Add(s, "x/a")
		f.Add(s, strings.Repeat("a", 63)+"b")
	}
	for _, s := range []string{"Ā-Ă", "^Ā", "?ā*", "ÿ-ā", "*Ā"} { // at the end of the table of small characters
		for _, text := range []string{"ÿ", "Ā", "ā", "Ă", "ă", "Āā", "āĀ", "日本"} {
			f.Add(s, text)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		pattern = strings.ReplaceAll(pattern, "*>", "*")
		if !utf8.ValidString(pattern) || strings.Contains(pattern, "*>") || strings.Count(pattern, "*")+strings.Count(pattern, ">") > 2 || len(pattern) > 200 || len(text) > 80 {
			return // too slow for the reference
		}
		p := parseText([]rune(pattern))
		got := p.Match([]byte(text))
		if want := utf8.ValidString(text) && matchesText([]rune(pattern), []rune(text)); got != want {
			t.Errorf("pattern %q, text %q: got %t, want %t", pattern, text, got, want)
		}
		if got && !strings.HasPrefix(text, string(p.Prefix())) {
			t.Errorf("pattern %q matches %q, which does not begin with %q", pattern, text, p.Prefix())
		}
		if steps := p.Cost(len(text)); steps > len(text)*(len(pattern)/64+1+16) {
			t.Errorf("pattern of %d bytes, text of %d: %d steps", len(pattern), len(text), steps)
		}
	})
}
