// Package glob matches text against patterns with wildcards. A match takes time at most
// proportional to the length of the pattern times the length of the text.
//
// [Parse] parses the syntax of SCAN and of authorization rules. Callers with another syntax build a
// [Pattern] themselves.
//
//	p := glob.Pattern{Bytes: true}
//	p.Literal('k')
//	p.Star()                                    // any bytes, or none
//	p.One(false, glob.Range{Low: '0', High: '9'}) // one digit
//	p.Compile()
//	p.Match([]byte("key7"))                     // true
//
// A Pattern does not backtrack: it tracks all possible matches at once, with one bit for each
// position in the pattern. Each character of the text takes one step per 64 elements of the
// pattern; [Pattern.Cost] returns the maximum number of steps.
package glob

import (
	"bytes"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// A Range is the characters or bytes from Low to High, inclusive. It is empty if High is less than
// Low.
type Range struct{ Low, High rune }

// A Pattern is a sequence of elements and stars. An element matches one UTF-8 character, or one byte
// if Bytes is set; a star matches any number of them. Call [Pattern.Compile] after the last append
// and before the other methods; a compiled Pattern is safe for concurrent use.
//
// State i means that the elements before element i have matched. If a star stands before element i,
// state i persists, whatever characters follow.
type Pattern struct {
	Bytes bool // elements match bytes; set it before the first append

	elements []element // nil after Compile
	last     int       // number of elements, and the state after the last one
	prefix   []byte    // every matching text begins with it
	fixed    int       // number of elements that make up the prefix
	open     bool      // the prefix is complete: a star or an element from One follows it

	stars []uint64 // bit i: a star stands before element i
	skips []uint64 // bit i: element i ends a Path, which may also match the empty text

	bounds []rune     // first character of each range; an element matches all of a range or none
	rows   [][]uint64 // one row for each range; bit i: element i matches the characters of the range
	low    [256]uint8 // the index in bounds and rows of each character below 256, or of each byte
}

type element struct {
	ranges []Range
	not    bool
}

// Star appends a star.
func (p *Pattern) Star() {
	p.grow()
	set(p.stars, p.last)
	p.open = true
}

// Literal appends an element that matches only the character or byte c.
func (p *Pattern) Literal(c rune) {
	if !p.open {
		if p.fixed++; p.Bytes {
			p.prefix = append(p.prefix, byte(c))
		} else {
			p.prefix = utf8.AppendRune(p.prefix, c)
		}
	}
	p.add(element{ranges: []Range{{c, c}}})
}

// One appends an element that matches one character or byte in any of the ranges. If the argument
// not is true, the element matches one that is in none of the ranges.
func (p *Pattern) One(not bool, ranges ...Range) {
	p.open = true
	ranges = slices.DeleteFunc(ranges, func(r Range) bool { return r.High < r.Low })
	p.add(element{ranges, not})
}

// Path appends a part that matches the empty text or any text that ends with a slash; at the end of
// the pattern it matches any text. It must not follow a star.
func (p *Pattern) Path() {
	if p.last > 0 && has(p.skips, p.last-1) {
		return // two Paths in a row match the same texts as one
	}
	p.Star()
	set(p.skips, p.last)
	p.add(element{ranges: []Range{{'/', '/'}}})
}

func (p *Pattern) add(e element) {
	p.elements = append(p.elements, e)
	p.last++
	p.grow()
}

// grow makes room for the state after the last element.
func (p *Pattern) grow() {
	for len(p.stars) <= p.last/64 {
		p.stars, p.skips = append(p.stars, 0), append(p.skips, 0)
	}
}

func set(bits []uint64, i int) { bits[i/64] |= 1 << (i % 64) }

func has(bits []uint64, i int) bool { return bits[i/64]>>(i%64)&1 == 1 }

// Compile prepares the pattern for Match. Nothing may be appended afterwards.
func (p *Pattern) Compile() {
	p.grow()
	p.bounds = []rune{0}
	for _, e := range p.elements {
		for _, r := range e.ranges {
			p.bounds = append(p.bounds, r.Low, r.High+1)
		}
	}
	slices.Sort(p.bounds)
	p.bounds = slices.Clone(slices.Compact(p.bounds)) // without spare memory
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
	p.elements = nil
	k := 0
	for c := range p.low {
		if k+1 < len(p.bounds) && p.bounds[k+1] <= rune(c) {
			k++
		}
		p.low[c] = uint8(k) // no overflow: at most 256 ranges begin below 256
	}
}

// rangeOf returns the index of a character's range in bounds.
func (p *Pattern) rangeOf(c rune) int {
	i, found := slices.BinarySearch(p.bounds, c)
	if !found {
		i--
	}
	return i
}

// Prefix returns the bytes with which every matching text begins. Callers must not modify them.
func (p *Pattern) Prefix() []byte { return p.prefix }

// Cost returns the maximum number of steps of [Pattern.Match] for a text of n bytes. A step takes
// about a nanosecond.
func (p *Pattern) Cost(n int) int {
	if p.Bytes {
		return n * len(p.stars)
	}
	return n * (len(p.stars) + bits.Len(uint(len(p.bounds))))
}

// Memory returns the memory, in bytes, that a compiled pattern refers to. The Pattern itself is not included.
func (p *Pattern) Memory() int {
	const slice = 24 // bytes of a slice's header
	return cap(p.prefix) + 8*(cap(p.stars)+cap(p.skips)) + 4*cap(p.bounds) + len(p.rows)*(slice+8*len(p.stars))
}

// Match reports whether the whole text matches. A text that is not UTF-8 matches only if
// Bytes is set.
func (p *Pattern) Match(text []byte) bool {
	if !bytes.HasPrefix(text, p.prefix) || !p.Bytes && !utf8.Valid(text) {
		return false
	}
	text = text[len(p.prefix):]
	if len(p.stars) == 1 {
		return p.matchShort(text)
	}
	var short [4]uint64
	states := p.start(short[:0], p.fixed)
	toTheEnd := has(p.stars, p.last) // the pattern ends with a star
	for len(text) > 0 {
		if toTheEnd && has(states, p.last) {
			return true
		}
		row, size := p.row(text)
		text = text[size:]
		if !p.step(states, row) {
			return false
		}
	}
	return p.accepts(states)
}

// matchShort is Match, after the prefix, for a pattern whose states fit in one word. It does the same as start, step and
// accepts, in half the time.
func (p *Pattern) matchShort(text []byte) bool {
	stars, skips, last := p.stars[0], p.skips[0], uint64(1)<<p.last
	states := uint64(1) << p.fixed
	states |= states & skips << 1
	for len(text) > 0 && states&stars&last == 0 {
		row, size := p.row(text)
		text = text[size:]
		arrived := states & row[0] << 1
		if states = arrived | arrived&skips<<1 | states&stars; states == 0 {
			return false
		}
	}
	return states&(last|last>>1&skips) != 0
}

// row returns the row of the first character of text, and the character's size.
func (p *Pattern) row(text []byte) (row []uint64, size int) {
	c, size := rune(text[0]), 1
	if c >= utf8.RuneSelf && !p.Bytes {
		if c, size = utf8.DecodeRune(text); int(c) >= len(p.low) {
			return p.rows[p.rangeOf(c)], size
		}
	}
	return p.rows[p.low[c]], size
}

// start appends the states in which the first n elements have matched.
func (p *Pattern) start(states []uint64, n int) []uint64 {
	first := len(states)
	states = append(states, make([]uint64, len(p.stars))...)
	set(states[first:], n)
	if has(p.skips, n) { // a Path may match the empty text
		set(states[first:], n+1)
	}
	return states
}

// step replaces the states by those after a character whose row is given, and reports whether any is left.
func (p *Pattern) step(states, row []uint64) bool {
	alive, carry, skipped := uint64(0), uint64(0), uint64(0)
	for w, s := range states {
		step := s & row[w]
		arrived := step<<1 | carry
		carry = step >> 63
		skip := arrived & p.skips[w] // the states before a Path, which may match the empty text
		states[w] = arrived | skip<<1 | skipped | s&p.stars[w]
		skipped = skip >> 63
		alive |= states[w]
	}
	return alive != 0
}

// accepts reports whether the states include one in which the whole pattern has matched.
func (p *Pattern) accepts(states []uint64) bool {
	return has(states, p.last) || p.last > 0 && has(p.skips, p.last-1) && has(states, p.last-1)
}
