package store

import "bytes"

// MatchGlob reports whether a key matches a pattern of the dialect that the broker
// documents for its authorization rules (protocol.md 7.6, 9): `*` is any bytes,
// `?` is one byte, `[0-9]` or `[abc]` is one byte of those. There is no escape, and
// a bracket that is not closed is a byte like any other.
func MatchGlob(pattern, key []byte) bool {
	star, from := -1, 0 // the last * and where in key its match ends
	p, k := 0, 0
	for k < len(key) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, k
			p++
			continue
		}
		if width := matchByte(pattern[p:], key[k]); width > 0 {
			p, k = p+width, k+1
			continue
		}
		if star < 0 {
			return false
		}
		from++
		p, k = star+1, from
	}
	return len(bytes.Trim(pattern[p:], "*")) == 0
}

// matchByte returns the length of the pattern's first element if it matches c, and otherwise 0.
func matchByte(pattern []byte, c byte) int {
	if len(pattern) == 0 {
		return 0
	}
	end := bytes.IndexByte(pattern, ']')
	switch {
	case pattern[0] == '?':
		return 1
	case pattern[0] == '[' && end > 1:
		if inClass(pattern[1:end], c) {
			return end + 1
		}
		return 0
	case pattern[0] == c:
		return 1
	default:
		return 0
	}
}

func inClass(class []byte, c byte) bool {
	for i := 0; i < len(class); i++ {
		if i+2 < len(class) && class[i+1] == '-' {
			if class[i] <= c && c <= class[i+2] {
				return true
			}
			i += 2
			continue
		}
		if class[i] == c {
			return true
		}
	}
	return false
}

// literalPrefix returns the prefix that all keys that match a pattern have.
func literalPrefix(pattern []byte) []byte {
	if i := bytes.IndexAny(pattern, "*?["); i >= 0 {
		return pattern[:i]
	}
	return pattern
}
