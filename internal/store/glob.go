package store

import (
	"bytes"

	"github.com/sscli/sscli/internal/glob"
)

// maxPattern is the maximum length of a SCAN pattern, in bytes. Together with maxKey it limits the
// time to match one key to a few milliseconds.
const maxPattern = 1024

// parseGlob parses a pattern in the syntax that the broker documents for
// its authorization rules (protocol.md 7.6, 9): `*` matches any number of bytes, `?` matches one
// byte, and `[0-9]` or `[abc]` matches one byte of a range or list. There is no escape character.
// Brackets that are empty or not closed match themselves.
func parseGlob(pattern []byte) *glob.Pattern {
	p := &glob.Pattern{Bytes: true}
	closing := bytes.LastIndexByte(pattern, ']') // brackets after the last ] are not closed
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*':
			p.Star()
		case c == '?':
			p.One(true)
		case c == '[' && i+1 < closing && pattern[i+1] != ']':
			end := i + bytes.IndexByte(pattern[i:], ']')
			p.One(false, glob.Ranges(pattern[i+1:end])...)
			i = end
		default:
			p.Literal(rune(c))
		}
	}
	p.Compile()
	return p
}
