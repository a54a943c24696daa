package redis

import "github.com/sscli/sscli/internal/glob"

// maxPattern is the maximum length of a pattern, in bytes. It limits the time of one match.
const maxPattern = 1024

var errPatternTooLong = &Error{Text: "the pattern is longer than 1024 bytes"}

// A pattern is a Redis glob: `*` matches any number of bytes, `?` matches one byte, `[a-z]` and
// `[^a]` match one byte that is or is not in a class, and a backslash makes the next byte literal.
//
// As in Redis, a range such as [a-z] compares bytes as signed numbers, and only an empty pattern
// matches an empty text.
type pattern struct {
	glob.Pattern
	text string
}

// patternArgs returns an error if a pattern is longer than maxPattern.
func patternArgs(patterns ...[]byte) error {
	for _, p := range patterns {
		if len(p) > maxPattern {
			return errPatternTooLong
		}
	}
	return nil
}

// parsePattern parses a pattern that patternArgs has accepted.
func parsePattern(text []byte) *pattern {
	p := &pattern{Pattern: glob.Pattern{Bytes: true}, text: string(text)}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '*':
			p.Star()
		case c == '?':
			p.One(true)
		case c == '[':
			not, class, end := parseClass(text, i+1)
			p.One(not, class...)
			i = end
		case c == '\\' && i+1 < len(text):
			i++
			p.Literal(rune(text[i]))
		default:
			p.Literal(rune(c))
		}
	}
	p.Compile()
	return p
}

func (p *pattern) match(text []byte) bool {
	if len(text) == 0 {
		return p.text == ""
	}
	return p.Match(text)
}

// parseClass parses a class such as [a-z]. i is the index after its opening bracket, and end is the
// index of its closing bracket. A class without a closing bracket extends to the end of text.
func parseClass(text []byte, i int) (not bool, class []glob.Range, end int) {
	not = i < len(text) && text[i] == '^'
	if not {
		i++
	}
	for ; i < len(text) && text[i] != ']'; i++ {
		low, high := int8(text[i]), int8(text[i])
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			low, high = int8(text[i]), int8(text[i])
		case i+2 < len(text) && text[i+1] == '-':
			high = int8(text[i+2])
			i += 2
		}
		low, high = min(low, high), max(low, high)
		if low < 0 && high >= 0 {
			class = append(class, glob.Range{Low: 0, High: rune(high)})
			high = -1
		}
		class = append(class, glob.Range{Low: rune(byte(low)), High: rune(byte(high))})
	}
	return not, class, i
}
