// Package slots numbers what is outstanding, such as requests without a reply:
//
//	var requests slots.Table[uint64, *request]
//	id := requests.Add(r)
//	…
//	r, ok := requests.Take(id)
//
// It is a map whose keys it chooses itself, and therefore a slice: the number says where a
// value is. Numbers ascend from 1 and begin again after the largest, so that a number that
// was taken is not given out again soon.
package slots

import "iter"

// A Table holds values by number. The zero Table is empty. It must not be used by several
// goroutines at once.
type Table[ID ~uint16 | ~uint64, T any] struct {
	slots []slot[ID, T] // a power of two; a value is in the slot that the last bits of its number name
	last  ID            // the number given out last
	n     int
}

type slot[ID ~uint16 | ~uint64, T any] struct {
	id    ID // 0 = free
	value T
}

// Add adds a value and returns its number, which is not 0. There must be a free number.
func (t *Table[ID, T]) Add(value T) ID {
	if 2*t.n >= len(t.slots) && uint64(len(t.slots)) <= uint64(^ID(0)) {
		t.grow()
	}
	for {
		t.last++
		if s := t.slot(t.last); t.last != 0 && s.id == 0 {
			*s = slot[ID, T]{t.last, value}
			t.n++
			return t.last
		}
	}
}

// grow doubles the slots. Numbers that differ in their last bits still do with one bit more.
func (t *Table[ID, T]) grow() {
	old := t.slots
	t.slots = make([]slot[ID, T], max(2*len(old), 8))
	for i := range old {
		if old[i].id != 0 {
			*t.slot(old[i].id) = old[i]
		}
	}
}

// slot returns the slot of a number; the table has slots.
func (t *Table[ID, T]) slot(id ID) *slot[ID, T] {
	return &t.slots[uint64(id)&uint64(len(t.slots)-1)]
}

// Get returns the value with a number. ok is false if there is none.
func (t *Table[ID, T]) Get(id ID) (value T, ok bool) {
	if s := t.find(id); s != nil {
		return s.value, true
	}
	return value, false
}

// Take removes the value with a number and returns it. ok is false if there is none.
func (t *Table[ID, T]) Take(id ID) (value T, ok bool) {
	if s := t.find(id); s != nil {
		value = s.value
		*s = slot[ID, T]{}
		t.n--
		return value, true
	}
	return value, false
}

// find returns the slot of the value with a number; nil if there is none.
func (t *Table[ID, T]) find(id ID) *slot[ID, T] {
	if id == 0 || len(t.slots) == 0 {
		return nil
	}
	if s := t.slot(id); s.id == id {
		return s
	}
	return nil
}

// Len returns the number of values.
func (t *Table[ID, T]) Len() int { return t.n }

// All iterates over the numbers and values, in no order. The loop may take values.
func (t *Table[ID, T]) All() iter.Seq2[ID, T] {
	return func(yield func(ID, T) bool) {
		for i := range t.slots {
			if s := t.slots[i]; s.id != 0 && !yield(s.id, s.value) {
				return
			}
		}
	}
}
