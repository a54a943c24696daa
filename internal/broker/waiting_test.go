package broker

import (
	"reflect"
	"testing"
)

// TestWaitingHasNoPointers: the garbage collector must not look into the queues of clients that do not read.
func TestWaitingHasNoPointers(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[waiting]()) {
		if k := f.Type.Kind(); k != reflect.Bool && (k < reflect.Int || k > reflect.Float64) {
			t.Errorf("%s is a %v", f.Name, k)
		}
	}
}

// TestSlots: a slot has its value until the last holder has released it, and then another value. Many slots are given back.
func TestSlots(t *testing.T) {
	var s slots[int]
	const n = 3 * slotBlock
	values, numbers := make([]int, n), make([]slot, n)
	for round := range 2 {
		for i := range values {
			if first := s.hold(&values[i], &numbers[i]); first != (round == 0) {
				t.Fatalf("round %d, value %d: first is %t", round, i, first)
			}
		}
	}
	if s.get(none) != nil || s.cost() == 0 {
		t.Errorf("no slot has %v, and %d slots cost %d", s.get(none), n, s.cost())
	}
	for round := range 2 {
		for i := range values {
			if got := s.get(numbers[i]); got != &values[i] {
				t.Fatalf("round %d: value %d is %v", round, i, got)
			}
			if last := s.release(numbers[i]); last != (round == 1) {
				t.Fatalf("round %d, value %d: last is %t", round, i, last)
			}
		}
		var other slot
		blocks := len(s.blocks)
		if s.hold(new(int), &other); round == 0 && len(s.blocks) != blocks+1 {
			t.Errorf("a slot in use was given to another value: %d", other)
		}
		s.release(other)
	}
	if s.cost() != 0 {
		t.Errorf("slots without values cost %d", s.cost())
	}
}
