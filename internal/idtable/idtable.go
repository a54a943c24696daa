// Package idtable assigns numbers to outstanding values, such as requests without a reply.
//
//	var requests idtable.Table[uint64, *request]
//	id := requests.Add(r)
//	…
//	r, ok := requests.Remove(id)
//
// Numbers ascend from 1 and wrap around after the largest, so that a removed number is not
// reused soon.
package idtable

import "iter"

// A Table holds values by number. The zero Table is empty. A Table must not be used by several
// goroutines at the same time.
type Table[ID ~uint16 | ~uint64, T any] struct {
	entries []entry[ID, T] // the length is a power of two; the index of a value is its number modulo the length
	last    ID             // the number assigned last
	n       int            // number of values
}

type entry[ID ~uint16 | ~uint64, T any] struct {
	id    ID // 0 = free
	value T
}

// at returns the entry for a number. The entry may be free or hold another value.
func (t *Table[ID, T]) at(id ID) *entry[ID, T] {
	return &t.entries[uint64(id)&uint64(len(t.entries)-1)]
}

// Add adds a value and returns its number, which is never 0. If no number is free, Add never
// returns.
func (t *Table[ID, T]) Add(value T) ID {
	if 2*t.n >= len(t.entries) && uint64(len(t.entries)) <= uint64(^ID(0)) {
		old := t.entries
		t.entries = make([]entry[ID, T], max(2*len(old), 8))
		for _, e := range old {
			if e.id != 0 {
				*t.at(e.id) = e
			}
		}
	}
	for t.last++; t.last == 0 || t.at(t.last).id != 0; t.last++ {
	}
	*t.at(t.last) = entry[ID, T]{t.last, value}
	t.n++
	return t.last
}

// Get returns the value with this number. ok is false if no value has it.
func (t *Table[ID, T]) Get(id ID) (value T, ok bool) {
	if t.n == 0 || id == 0 || t.at(id).id != id {
		return value, false
	}
	return t.at(id).value, true
}

// Remove removes the value with this number and returns it. ok is false if no value has the number.
func (t *Table[ID, T]) Remove(id ID) (value T, ok bool) {
	if value, ok = t.Get(id); ok {
		*t.at(id) = entry[ID, T]{}
		t.n--
	}
	return value, ok
}

// Len returns the number of values.
func (t *Table[ID, T]) Len() int { return t.n }

// All iterates over the numbers and values, in no particular order. The loop body may remove
// values.
func (t *Table[ID, T]) All() iter.Seq2[ID, T] {
	return func(yield func(ID, T) bool) {
		for _, e := range t.entries {
			if e.id != 0 && !yield(e.id, e.value) {
				return
			}
		}
	}
}
