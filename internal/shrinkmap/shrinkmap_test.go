package shrinkmap_test

import (
	"runtime"
	"testing"

	"github.com/sscli/sscli/internal/shrinkmap"
)

// FuzzMap compares a Map with a map.
func FuzzMap(f *testing.F) {
	f.Add([]byte("abcABC"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		var m shrinkmap.Map[byte, int]
		model := map[byte]int{}
		for i, step := range steps {
			if key := step &^ 0x80; step < 0x80 {
				m.Set(key, i)
				model[key] = i
			} else {
				m.Delete(key)
				delete(model, key)
			}
			if len(m.M) != len(model) {
				t.Fatalf("%d entries, want %d", len(m.M), len(model))
			}
		}
		for key, want := range model {
			if got, ok := m.M[key]; !ok || got != want {
				t.Errorf("%d: %d, %t, want %d", key, got, ok, want)
			}
		}
	})
}

// TestShrinks: an emptied Map keeps little memory, even if some entries remain.
func TestShrinks(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what the sweep of the first one freed
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var m shrinkmap.Map[int, int]
	before := heap()
	for i := range 100_000 {
		m.Set(i, i)
	}
	full := heap()
	for i := range 99_990 {
		m.Delete(i)
	}
	if left := heap(); left-before > (full-before)/20 {
		t.Errorf("%d bytes are left of %d", left-before, full-before)
	}
	runtime.KeepAlive(&m)
}
