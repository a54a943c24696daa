// Package glob matches text against patterns with wildcards. The time is at most proportional to
// the length of the pattern times the length of the text.
//
// The package has no pattern syntax. Callers parse their own syntax and build a [Pattern].
//
//	var p glob.Pattern
//	p.Literal('k')
//	p.Star()                        // any bytes, or none
//	p.One(glob.Range('0', '9'))     // one digit
//	p.Match([]byte("key7"))         // true
//
// A Pattern does not backtrack: it tracks all possible matches at once, with one bit for each
// position in the pattern. It takes one step for each byte of the text and each 64 elements of the
// pattern; [Pattern.Cost] returns the number of steps.
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

// A Pattern is a sequence of elements and stars. An element matches one byte; a star matches any
// number of bytes. The zero Pattern matches only the empty text. A Pattern is safe for concurrent
// use after the last append.
//
// State i means that the elements before element i have matched. If a star stands before element i,
// state i persists, whatever byte follows.
type Pattern struct {
	elements int
	prefix   []byte // every matching text begins with it
	open     bool   // the prefix is complete: a star or a set follows it

	stars []uint64 // bit i: a star stands before element i

	// rows[row[c]] is the row of byte c: bit i is set if element i matches c. All bytes that no
	// Literal and no set except Any contains share row 0.
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

// accept makes the last element match c. It first gives c its own row if c shares one.
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

// grow extends the bit sets so that they hold the given bit.
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

// Prefix returns the bytes with which every matching text begins. Callers must not modify them.
func (p *Pattern) Prefix() []byte { return p.prefix }

// Cost returns the maximum number of steps of [Pattern.Match] for a text of n bytes. A step takes
// about a nanosecond.
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
