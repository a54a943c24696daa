package redis

// match reports whether text matches a glob pattern of Redis. `*` matches any bytes, `?` matches
// one byte, `[a-z]` and `[^a]` match one byte by a class, and a backslash makes the next byte
// literal.
//
// After a mismatch, only the last `*` is tried again with a longer match: the shortest match of
// the earlier ones is always enough. The time is at most proportional to the product of the
// lengths.
//
// As in Redis, the bytes of a range are signed, and only the empty pattern matches the empty text.
func match(pattern, text []byte) bool {
	if len(text) == 0 {
		return len(pattern) == 0
	}
	star, from := -1, 0 // the last * in pattern, and where the text after its match begins
	p, t := 0, 0
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, t
			p++
			continue
		}
		if p < len(pattern) {
			if width, ok := matchOne(pattern[p:], text[t]); ok {
				p, t = p+width, t+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		p, t = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne reports whether a byte matches the beginning of a pattern, which is not `*`. width is
// the length of that part of the pattern.
func matchOne(pattern []byte, c byte) (width int, ok bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchClass(pattern, c)
	case '\\':
		if len(pattern) >= 2 {
			return 2, pattern[1] == c
		}
	}
	return 1, pattern[0] == c
}

// matchClass reports whether a byte matches the class that a pattern begins with. A class without
// a closing bracket extends to the end of the pattern.
func matchClass(pattern []byte, c byte) (width int, ok bool) {
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			ok = ok || pattern[i] == c
		case i+2 < len(pattern) && pattern[i+1] == '-':
			from, to := int8(pattern[i]), int8(pattern[i+2])
			ok = ok || min(from, to) <= int8(c) && int8(c) <= max(from, to)
			i += 2
		default:
			ok = ok || pattern[i] == c
		}
	}
	return min(i+1, len(pattern)), ok != not
}

// literalPrefix returns the part of a pattern before its first special byte. Every text that
// matches the pattern begins with it.
func literalPrefix(pattern []byte) []byte {
	for i, c := range pattern {
		if c == '*' || c == '?' || c == '[' || c == '\\' {
			return pattern[:i]
		}
	}
	return pattern
}
