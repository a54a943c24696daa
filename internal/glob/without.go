package glob

import (
	"slices"
	"unicode/utf8"
)

// Without returns a shortest text, but not the empty one, that p matches and none of the others. ok is false
// if there is none, or if the search passes limit sets of states. No pattern may have Bytes set.
func (p *Pattern) Without(others []*Pattern, limit int) (text string, ok bool) {
	all := append([]*Pattern{p}, others...)
	var start []uint64 // the states of all patterns, one after the other
	for _, q := range all {
		start = q.start(start, 0)
	}
	alphabet := letters(all)
	type step struct {
		states []uint64
		text   string
	}
	seen := map[string]bool{key(start): true}
	for queue := []step{{start, ""}}; len(queue) > 0 && len(seen) < limit; queue = queue[1:] {
		for _, c := range alphabet {
			next := step{slices.Clone(queue[0].states), queue[0].text + string(c)}
			rest, alive, matched, other := next.states, false, false, false
			for i, q := range all {
				own := rest[:len(q.stars)]
				rest = rest[len(q.stars):]
				lives := q.step(own, q.rows[q.rangeOf(c)])
				if i == 0 {
					alive, matched = lives, q.accepts(own)
				} else {
					other = other || q.accepts(own)
				}
			}
			if matched && !other {
				return next.text, true
			}
			if k := key(next.states); alive && !seen[k] {
				seen[k] = true
				queue = append(queue, next)
			}
		}
	}
	return "", false
}

// letters returns a character for each set of characters that no pattern tells apart, the most usual ones first.
func letters(all []*Pattern) []rune {
	const usual = "x1ayz02345678bcdefgAXZ-_/. "
	var bounds []rune
	for _, p := range all {
		bounds = append(bounds, p.bounds...)
	}
	slices.Sort(bounds)
	bounds = append(slices.Compact(bounds), utf8.MaxRune+1)
	rank := func(c rune) int {
		i := slices.Index([]rune(usual), c)
		if i < 0 {
			return len(usual)
		}
		return i
	}
	var found []rune
	for i, low := range bounds[:len(bounds)-1] {
		for _, c := range usual {
			if low <= c && c < bounds[i+1] {
				low = c
				break
			}
		}
		if utf8.ValidRune(low) {
			found = append(found, low)
		}
	}
	slices.SortStableFunc(found, func(a, b rune) int { return rank(a) - rank(b) })
	return found
}

func key(states []uint64) string {
	b := make([]byte, 0, 8*len(states))
	for _, s := range states {
		for range 8 {
			b = append(b, byte(s))
			s >>= 8
		}
	}
	return string(b)
}
