// Package glob matches bytes against patterns with wildcards, in time that no pattern and no
// text can make worse than the product of their lengths.
//
// It knows no syntax: a dialect reads its own patterns and builds a [Pattern] of them.
//
//	var p glob.Pattern
//	p.Literal('k')
//	p.Star()                        // any bytes, or none
//	p.One(glob.Range('0', '9'))     // one digit
//	p.Match([]byte("key7"))         // true
//
// A Pattern follows all ways in which it may match at once, one bit for each, instead of
// trying one after the other. It takes one step for each byte of the text and each 64
// elements of the pattern: [Pattern.Cost] says how many.
package glob

// A Set is a set of bytes.
type Set [4]uint64

// Range returns the set of the bytes from low to high; empty if high is less than low.
func Range(low, high byte) Set {
	var s Set
	for c := int(low); c <= int(high); c++ {
		s[c/64] |= 1 << (c % 64)
	}
	return s
}

// Any returns the set of all bytes.
func Any() Set { return Set{}.Not() }

// Or returns the bytes that are in s or in o.
func (s Set) Or(o Set) Set {
	for i := range s {
		s[i] |= o[i]
	}
	return s
}

// Not returns the bytes that are not in s.
func (s Set) Not() Set {
	for i := range s {
		s[i] = ^s[i]
	}
	return s
}

func (s Set) has(c byte) bool { return s[c/64]>>(c%64)&1 == 1 }

// A Pattern is a sequence of elements, each of which matches one byte, with stars between
// them, each of which matches any bytes. The zero Pattern matches the empty text. A Pattern
// is safe for concurrent use once nothing more is appended to it.
//
// State i means that the elements before the i-th have matched. A star before element i keeps
// state i, whatever byte follows.
type Pattern struct {
	elements int
	prefix   []byte // every matching text begins with it
	open     bool   // the prefix has ended: a star or a set of several bytes came

	stars []uint64 // bit i: a star stands before element i

	// rows[row[c]] is the row of byte c: bit i is set if element i matches c. Bytes that no
	// element has named share a row.
	row    [256]uint8
	rows   [][]uint64
	shared []int // how many bytes share each row
}

// Star appends a star.
func (p *Pattern) Star() {
	p.grow(p.elements)
	set(p.stars, p.elements)
	p.open = true
}

// Literal appends an element that matches one byte.
func (p *Pattern) Literal(c byte) {
	if !p.open {
		p.prefix = append(p.prefix, c)
	}
	p.next()
	p.accept(c)
}

// One appends an element that matches one byte of a set.
func (p *Pattern) One(s Set) {
	p.open = true
	p.next()
	if s == Any() {
		for _, row := range p.rows {
			set(row, p.elements-1)
		}
		return
	}
	for c := range 256 {
		if s.has(byte(c)) {
			p.accept(byte(c))
		}
	}
}

// next appends an element that matches nothing yet.
func (p *Pattern) next() {
	p.elements++
	p.grow(p.elements)
}

// accept lets the last element match a byte.
func (p *Pattern) accept(c byte) {
	r := p.row[c]
	if p.shared[r] > 1 {
		p.shared[r]--
		p.rows = append(p.rows, append([]uint64(nil), p.rows[r]...))
		p.shared = append(p.shared, 1)
		r = uint8(len(p.rows) - 1)
		p.row[c] = r
	}
	set(p.rows[r], p.elements-1)
}

// grow makes room for a bit.
func (p *Pattern) grow(bit int) {
	if p.rows == nil {
		p.rows, p.shared = [][]uint64{nil}, []int{len(p.row)}
	}
	for len(p.stars) <= bit/64 {
		p.stars = append(p.stars, 0)
		for r := range p.rows {
			p.rows[r] = append(p.rows[r], 0)
		}
	}
}

func set(bits []uint64, i int) { bits[i/64] |= 1 << (i % 64) }

func has(bits []uint64, i int) bool { return bits[i/64]>>(i%64)&1 == 1 }

// Prefix returns the bytes that every matching text begins with. They must not be changed.
func (p *Pattern) Prefix() []byte { return p.prefix }

// Cost returns the number of steps that [Pattern.Match] takes at most for a text of n bytes.
// A step takes about a nanosecond.
func (p *Pattern) Cost(n int) int { return n * max(1, len(p.stars)) }

// Match reports whether the whole text matches.
func (p *Pattern) Match(text []byte) bool {
	if p.rows == nil {
		return len(text) == 0
	}
	var short [4]uint64
	states := append(short[:0], make([]uint64, len(p.stars))...)
	states[0] = 1
	last := p.elements
	toTheEnd := has(p.stars, last) // the pattern ends with a star
	for _, c := range text {
		if toTheEnd && has(states, last) {
			return true
		}
		row := p.rows[p.row[c]]
		alive, carry := uint64(0), uint64(0)
		for w, s := range states {
			step := s & row[w]
			states[w] = step<<1 | carry | s&p.stars[w]
			carry = step >> 63
			alive |= states[w]
		}
		if alive == 0 {
			return false
		}
	}
	return has(states, last)
}
