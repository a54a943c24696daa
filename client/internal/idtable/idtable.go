// Package idtable numbers what is outstanding, such as requests without a reply.
//
//	var requests idtable.Table[uint64, *request]
//	id := requests.Add(r)
//	…
//	r, ok := requests.Remove(id)
//
// Numbers ascend from 1 and begin again after the largest, so that a removed number is not
// given out again soon.
package idtable

import "iter"

// A Table holds values by number. The zero Table is empty. It must not be used by several
// goroutines at once.
type Table[ID ~uint16 | ~uint64, T any] struct {
	values map[ID]T
	last   ID // the number given out last
}

// Add adds a value and returns its number, which is not 0. There must be a free number.
func (t *Table[ID, T]) Add(value T) ID {
	if t.values == nil {
		t.values = make(map[ID]T)
	}
	for {
		t.last++
		if _, used := t.values[t.last]; t.last != 0 && !used {
			t.values[t.last] = value
			return t.last
		}
	}
}

// Get returns the value with a number. ok is false if there is none.
func (t *Table[ID, T]) Get(id ID) (value T, ok bool) {
	value, ok = t.values[id]
	return value, ok
}

// Remove removes the value with a number and returns it. ok is false if there is none.
func (t *Table[ID, T]) Remove(id ID) (value T, ok bool) {
	if value, ok = t.values[id]; ok {
		delete(t.values, id)
	}
	return value, ok
}

// Len returns the number of values.
func (t *Table[ID, T]) Len() int { return len(t.values) }

// All iterates over the numbers and values, in no order. The loop may remove values.
func (t *Table[ID, T]) All() iter.Seq2[ID, T] {
	return func(yield func(ID, T) bool) {
		for id, value := range t.values {
			if !yield(id, value) {
				return
			}
		}
	}
}
