package redis

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "abc", true}, {"", "", true}, {"*", "", false}, {"a*", "a", true}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"[a-c]x", "bx", true}, {"[c-a]x", "bx", true}, {"[^a]x", "ax", false}, {"[^a]x", "bx", true}, {"\\*", "*", true}, {"\\*", "a", false},
		{"[\\]]", "]", true}, {"[a", "a", true}, {"[", "[", false}, {"a\\", "a\\", true}, {"h[ae]llo", "hello", true},
		{"*a*b*c", "xaxbxc", true}, {"*a*b*c", "xaxbx", false}, {"__key*__:*", "__keyspace@0__:foo", true}, {"[a-]", "`", true}, {"[a-]", "b", false},
	} {
		if got := parsePattern([]byte(c.pattern)).match([]byte(c.text)); got != c.want {
			t.Errorf("%q and %q: %t", c.pattern, c.text, got)
		}
	}
}

// TestManyStars: matching a pattern with many * is fast.
func TestManyStars(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("a"), 10_000)
	begin := time.Now()
	for _, pattern := range []string{strings.Repeat("*", 1000) + "b", strings.Repeat("*a", 1000) + "b", strings.Repeat("a*", 1000) + "b"} {
		if parsePattern([]byte(pattern)).match(text) {
			t.Errorf("%.20s… matches", pattern)
		}
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// FuzzMatch compares Match with a reference: the pattern as a regular expression.
func FuzzMatch(f *testing.F) {
	f.Add("a*b?[c-d]*", "axxbyd")
	f.Add("*[^a-c]\\x[\\]z]", "foox]")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		expr, ok := expression(pattern)
		if !ok || text == "" || len(pattern) > 60 || len(text) > 60 {
			return
		}
		want := regexp.MustCompile(expr).MatchString(latin(text))
		if got := parsePattern([]byte(pattern)).match([]byte(text)); got != want {
			t.Errorf("match(%q, %q) is %t; %s says %t", pattern, text, got, expr, want)
		}
	})
}

// latin converts each byte to a rune.
func latin(text string) string {
	runes := make([]rune, len(text))
	for i := range len(text) {
		runes[i] = rune(text[i])
	}
	return string(runes)
}

// expression translates a pattern to a regular expression. It returns false for patterns that it does not
// support: unclosed classes, and ranges of non-ASCII bytes.
func expression(pattern string) (string, bool) {
	quote := func(c byte) string { return regexp.QuoteMeta(latin(string([]byte{c}))) }
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*':
			b.WriteString(".*")
		case c == '?':
			b.WriteString(".")
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(quote(pattern[i]))
		case c == '[':
			var choices []string
			i++
			not := i < len(pattern) && pattern[i] == '^'
			if not {
				i++
			}
			for ; i < len(pattern) && pattern[i] != ']'; i++ {
				switch {
				case pattern[i] == '\\' && i+1 < len(pattern):
					i++
					choices = append(choices, quote(pattern[i]))
				case i+2 < len(pattern) && pattern[i+1] == '-':
					from, to := min(pattern[i], pattern[i+2]), max(pattern[i], pattern[i+2])
					if to >= 0x80 {
						return "", false
					}
					for c := from; ; c++ {
						choices = append(choices, quote(c))
						if c == to {
							break
						}
					}
					i += 2
				default:
					choices = append(choices, quote(pattern[i]))
				}
			}
			if i == len(pattern) {
				return "", false
			}
			switch {
			case len(choices) == 0 && not:
				b.WriteString(".")
			case len(choices) == 0:
				b.WriteString(`[^\x00-\x{10FFFF}]`)
			case not:
				b.WriteString("[^" + strings.Join(escapeClass(choices), "") + "]")
			default:
				b.WriteString("(?:" + strings.Join(choices, "|") + ")")
			}
		default:
			b.WriteString(quote(c))
		}
	}
	b.WriteString(`\z`)
	return b.String(), true
}

// escapeClass escapes literals for use in a class.
func escapeClass(literals []string) []string {
	var all []string
	for _, l := range literals {
		if strings.ContainsAny(l, "-^]&~[") && !strings.HasPrefix(l, `\`) {
			l = `\` + l
		}
		all = append(all, l)
	}
	return all
}
