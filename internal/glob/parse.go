package glob

import "slices"

// Parse parses a pattern with the syntax of Rust's crate `glob` (protocol.md 9, a draft): `*`
// matches any number of characters, including slashes; `?` matches one character; `[a-z]` matches
// one character in the range and `[!a-z]` one outside it; `**` as a whole level, as in `a/**/b` or
// `a/**`, matches any number of levels. Any other `**` is an error, and so is an unclosed bracket.
func Parse(pattern string) (p *Pattern, ok bool) {
	p = new(Pattern)
	text := []rune(pattern)
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '?':
			p.One(true)
			i++
		case '*':
			stars := 1
			for i+stars < len(text) && text[i+stars] == '*' {
				stars++
			}
			if stars == 1 {
				p.Star()
				i++
				continue
			}
			end := i + stars
			if stars > 2 || i > 0 && text[i-1] != '/' || end < len(text) && text[end] != '/' {
				return nil, false
			}
			p.Path()
			i = end + 1 // skip the slash, which is part of the Path element
		case '[':
			not, end, ok := findClass(text[i:])
			if !ok {
				return nil, false
			}
			from := i + 1
			if not {
				from++
			}
			p.One(not, Ranges(text[from:i+end])...)
			i += end + 1
		default:
			p.Literal(c)
			i++
		}
	}
	p.Compile()
	return p, true
}

// findClass finds the bracket that closes the character class at the beginning of text. It returns the
// bracket's index in end, and whether the class is negated in not; ok is false if there is no such
// bracket. A closing bracket right after `[` or `[!` is a member of the class.
func findClass(text []rune) (not bool, end int, ok bool) {
	not = len(text) > 1 && text[1] == '!'
	first := 2
	if not {
		first++
	}
	if first > len(text) {
		return not, 0, false
	}
	i := slices.Index(text[first:], ']')
	return not, first + i, i >= 0
}

// Ranges parses the text between the brackets of a character class.
func Ranges[C byte | rune](class []C) (ranges []Range) {
	for i := 0; i < len(class); i++ {
		r := Range{Low: rune(class[i]), High: rune(class[i])}
		if i+2 < len(class) && class[i+1] == '-' {
			r.High = rune(class[i+2])
			i += 2
		}
		ranges = append(ranges, r)
	}
	return ranges
}
