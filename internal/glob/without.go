package glob

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// Without returns a shortest text, but not the empty one, that p matches and none of the others. ok is false
// if there is none, or if the search passes limit sets of states. No pattern may have Bytes set.
func (p *Pattern) Without(others []*Pattern, limit int) (text string, ok bool) {
	all := append([]*Pattern{p}, others...)
	var states []uint64 // of all patterns, one after the other
	for _, q := range all {
		states = q.start(states, 0)
	}
	// advance replaces the states by those after a character. alive is false if p matches no longer text.
	advance := func(states []uint64, c rune) (alive, found bool) {
		for i, q := range all {
			own := states[:len(q.stars)]
			states = states[len(q.stars):]
			lives := q.step(own, q.rows[q.rangeOf(c)])
			if i == 0 {
				alive, found = lives, q.accepts(own)
			} else {
				found = found && !q.accepts(own)
			}
		}
		return alive, found
	}
	for _, c := range string(p.prefix) {
		if _, found := advance(states, c); found {
			return string(p.prefix), true
		}
	}
	type step struct {
		states []uint64
		text   string
	}
	alphabet, seen, next := letters(all), map[string]bool{key(states): true}, make([]uint64, len(states))
	for queue := []step{{states, string(p.prefix)}}; len(queue) > 0 && len(seen) < limit; queue = queue[1:] {
		for _, c := range alphabet {
			copy(next, queue[0].states)
			alive, found := advance(next, c)
			if found {
				return queue[0].text + string(c), true
			}
			if k := key(next); alive && !seen[k] {
				seen[k] = true
				queue = append(queue, step{slices.Clone(next), queue[0].text + string(c)})
			}
		}
	}
	return "", false
}

// letters returns a character for each set of characters that no pattern tells apart, the most usual ones first.
func letters(all []*Pattern) (found []rune) {
	var bounds []rune
	for _, p := range all {
		bounds = append(bounds, p.bounds...)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	done := make([]bool, len(bounds))
	for _, c := range slices.Concat([]rune("x1ayz02345678bcdefgAXZ-_/. "), bounds) {
		i, begins := slices.BinarySearch(bounds, c)
		if !begins {
			i--
		}
		if !done[i] && utf8.ValidRune(c) {
			done[i] = true
			found = append(found, c)
		}
	}
	return found
}

func key(states []uint64) string {
	b := make([]byte, 0, 8*len(states))
	for _, s := range states {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	return string(b)
}
