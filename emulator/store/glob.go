package store

import (
	"bytes"

	"github.com/sscli/sscli/internal/glob"
)

// maxPattern is the length in bytes of the longest pattern of SCAN. With the longest key it
// bounds the time of one match to a few milliseconds.
const maxPattern = 1024

// MatchGlob reports whether a key matches a pattern of the dialect that the broker
// documents for its authorization rules (protocol.md 7.6, 9): `*` is any bytes,
// `?` is one byte, `[0-9]` or `[abc]` is one byte of those. There is no escape, and
// a bracket that is not closed is a byte like any other.
func MatchGlob(pattern, key []byte) bool { return parseGlob(pattern).Match(key) }

// parseGlob reads a pattern for MatchGlob.
func parseGlob(pattern []byte) *glob.Pattern {
	p := new(glob.Pattern)
	closing := bytes.LastIndexByte(pattern, ']') // no bracket after it is closed
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*':
			p.Star()
		case c == '?':
			p.One(glob.Any())
		case c == '[' && i+1 < closing && pattern[i+1] != ']':
			end := i + bytes.IndexByte(pattern[i:], ']')
			p.One(parseClass(pattern[i+1 : end]))
			i = end
		default:
			p.Literal(c)
		}
	}
	return p
}

// parseClass reads what is between brackets.
func parseClass(class []byte) (s glob.Set) {
	for i := 0; i < len(class); i++ {
		low, high := class[i], class[i]
		if i+2 < len(class) && class[i+1] == '-' {
			high = class[i+2]
			i += 2
		}
		s = s.Or(glob.Range(low, high))
	}
	return s
}
