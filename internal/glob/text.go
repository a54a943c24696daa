package glob

import (
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Runes is the range of characters from Low to High, inclusive. It is empty if High is less than
// Low.
type Runes struct{ Low, High rune }

// A Text is like a [Pattern], but each element matches one UTF-8 character instead of one byte.
// Call [Text.Compile] after the last append and before [Text.Match]; a compiled Text is safe for
// concurrent use.
type Text struct {
	elements []textElement
	prefix   []byte // every matching text begins with it
	open     bool   // the prefix is complete

	stars []uint64 // as in Pattern
	skips []uint64 // bit i: element i belongs to a Path, which may also match the empty text

	bounds []rune     // first characters of the ranges within which all elements treat characters alike
	rows   [][]uint64 // one row for each range; see Pattern.rows
	ascii  [utf8.RuneSelf]uint16
}

type textElement struct {
	ranges []Runes
	not    bool
}

// Star appends a star.
func (p *Text) Star() {
	p.grow()
	set(p.stars, len(p.elements))
	p.open = true
}

// Literal appends an element that matches one character.
func (p *Text) Literal(c rune) {
	if !p.open {
		p.prefix = utf8.AppendRune(p.prefix, c)
	}
	p.add(textElement{ranges: []Runes{{c, c}}})
}

// One appends an element that matches one character that is in any of the ranges or, if not is set,
// in none of them.
func (p *Text) One(not bool, ranges ...Runes) {
	p.open = true
	ranges = slices.DeleteFunc(ranges, func(r Runes) bool { return r.High < r.Low })
	p.add(textElement{ranges, not})
}

// Path appends a part that matches the empty text or any text that ends with a slash; at the end of
// the pattern it matches any text. It must not follow a star.
func (p *Text) Path() {
	if n := len(p.elements); n > 0 && has(p.skips, n-1) {
		return // two Paths in a row match the same texts as one
	}
	p.Star()
	set(p.skips, len(p.elements))
	p.add(textElement{ranges: []Runes{{'/', '/'}}})
}

func (p *Text) add(e textElement) {
	p.elements = append(p.elements, e)
	p.grow()
}

// grow makes room for the state after the last element.
func (p *Text) grow() {
	for len(p.stars) <= len(p.elements)/64 {
		p.stars, p.skips = append(p.stars, 0), append(p.skips, 0)
	}
}

// Compile prepares the pattern for Match. Nothing may be appended after it.
func (p *Text) Compile() {
	p.grow()
	p.bounds = []rune{0}
	for _, e := range p.elements {
		for _, r := range e.ranges {
			p.bounds = append(p.bounds, r.Low, r.High+1)
		}
	}
	slices.Sort(p.bounds)
	p.bounds = slices.Compact(p.bounds)
	all := make([]uint64, len(p.bounds)*len(p.stars))
	p.rows = make([][]uint64, len(p.bounds))
	for i := range p.rows {
		p.rows[i], all = all[:len(p.stars)], all[len(p.stars):]
	}
	for i, e := range p.elements {
		for _, row := range p.rows {
			if e.not {
				set(row, i)
			}
		}
		for _, r := range e.ranges {
			for k := p.rangeOf(r.Low); k < len(p.bounds) && p.bounds[k] <= r.High; k++ {
				if e.not {
					p.rows[k][i/64] &^= 1 << (i % 64)
				} else {
					set(p.rows[k], i)
				}
			}
		}
	}
	for c := range p.ascii {
		p.ascii[c] = uint16(p.rangeOf(rune(c)))
	}
}

// rangeOf returns the index of a character's range in bounds.
func (p *Text) rangeOf(c rune) int {
	i, found := slices.BinarySearch(p.bounds, c)
	if !found {
		i--
	}
	return i
}

// Prefix returns the bytes with which every matching text begins. Callers must not modify them.
func (p *Text) Prefix() []byte { return p.prefix }

// Cost returns the maximum number of steps of [Text.Match] for a text of n bytes. A step takes
// about a nanosecond.
func (p *Text) Cost(n int) int { return n * (len(p.stars) + bits.Len(uint(len(p.bounds)))) }

// Match reports whether the whole text matches. A text that is not UTF-8 matches no pattern.
func (p *Text) Match(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	var short [4]uint64
	states := append(short[:0], make([]uint64, len(p.stars))...)
	states[0] = 1 | p.skips[0]&1<<1 // a Path at the beginning may be empty
	last := len(p.elements)
	for len(text) > 0 {
		k, size := 0, 1
		if c := text[0]; c < utf8.RuneSelf {
			k = int(p.ascii[c])
		} else {
			var r rune
			r, size = utf8.DecodeRune(text)
			k = p.rangeOf(r)
		}
		text = text[size:]
		alive, carry, skipped := uint64(0), uint64(0), uint64(0)
		for w, s := range states {
			step := s & p.rows[k][w]
			arrived := step<<1 | carry
			carry = step >> 63
			skip := arrived & p.skips[w] // the states at a Path, which may match the empty text
			states[w] = arrived | skip<<1 | skipped | s&p.stars[w]
			skipped = skip >> 63
			alive |= states[w]
		}
		if alive == 0 {
			return false
		}
	}
	return has(states, last) || last > 0 && has(p.skips, last-1) && has(states, last-1)
}
