package idtable_test

import (
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/idtable"
)

// FuzzTable compares a table with a map, and checks that numbers ascend.
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 129, 0, 0, 0, 0, 0, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, script []byte) {
		var table idtable.Table[uint64, int]
		model := make(map[uint64]int)
		last := uint64(0)
		for i, step := range script {
			if step < 128 {
				id := table.Add(i)
				if id <= last {
					t.Fatalf("number %d after %d", id, last)
				}
				last, model[id] = id, i
				continue
			}
			id := last - min(last, uint64(step-128))
			want, found := model[id]
			if got, ok := table.Get(id); got != want || ok != found {
				t.Fatalf("Get(%d) is %d, %t, want %d, %t", id, got, ok, want, found)
			}
			if got, ok := table.Remove(id); got != want || ok != found {
				t.Fatalf("Take(%d) is %d, %t, want %d, %t", id, got, ok, want, found)
			}
			delete(model, id)
		}
		if diff := cmp.Diff(model, maps.Collect(table.All())); diff != "" || table.Len() != len(model) {
			t.Fatalf("%d values (-want +got):\n%s", table.Len(), diff)
		}
	})
}

// TestNumbersBeginAgain: numbers of 16 bits wrap after the largest, and skip those in use.
func TestNumbersBeginAgain(t *testing.T) {
	var table idtable.Table[uint16, string]
	first := table.Add("stays")
	for range 3 * math.MaxUint16 {
		id := table.Add("goes")
		if id == 0 || id == first {
			t.Fatalf("number %d was given out", id)
		}
		table.Remove(id)
	}
	if v, ok := table.Get(first); v != "stays" || !ok || table.Len() != 1 {
		t.Errorf("got %q, %t of %d", v, ok, table.Len())
	}
}

// TestEveryNumber: all numbers except 0 can be in use at once.
func TestEveryNumber(t *testing.T) {
	var table idtable.Table[uint16, uint16]
	for n := range uint16(math.MaxUint16) {
		table.Add(n)
	}
	used := make(map[uint16]bool)
	for id, n := range table.All() {
		if id == 0 || used[n] {
			t.Fatalf("%d has the number %d", n, id)
		}
		used[n] = true
	}
	if len(used) != math.MaxUint16 || table.Len() != len(used) {
		t.Errorf("%d values, %d of them different", table.Len(), len(used))
	}
}
