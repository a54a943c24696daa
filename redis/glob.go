package redis

// match tells whether text matches a pattern of Redis: `*` is any bytes, `?` is one,
// `[a-z]` and `[^a]` are one that is or is not of a class, and a backslash takes the meaning from
// what follows it.
//
// Only the last `*` is ever tried again: what an earlier one took can stay as short as
// possible. So the time is at most the product of the lengths.
//
// As in Redis, bytes of a range are signed, and nothing but an empty pattern matches an empty text.
func match(pattern, text []byte) bool {
	if len(text) == 0 {
		return len(pattern) == 0
	}
	star, from := -1, 0
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

// matchOne matches one byte against the beginning of a pattern, which is not `*`, and
// returns how much of the pattern that was.
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

// matchClass matches a byte against a class. A class that is not closed ends with the
// pattern.
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

// literalPrefix returns what every text that matches a pattern begins with.
func literalPrefix(pattern []byte) []byte {
	for i, c := range pattern {
		if c == '*' || c == '?' || c == '[' || c == '\\' {
			return pattern[:i]
		}
	}
	return pattern
}
