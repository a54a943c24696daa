// Package shrinkmap provides a map that gives back the memory of removed entries. Go's maps never shrink,
// so that what a client has filled and emptied would stay in memory.
package shrinkmap

import "maps"

// A Map is a map from K to V. The zero value is empty. Do not copy a Map, and change it only with its
// methods; M is for reading.
type Map[K comparable, V any] struct {
	M    map[K]V
	most int // number of entries for which M has memory
}

// minShrink is the number of entries below which the memory of a map does not matter.
const minShrink = 64

// Set sets the value of a key.
func (t *Map[K, V]) Set(key K, value V) {
	if t.M == nil {
		t.M = make(map[K]V)
	}
	t.M[key] = value
	t.most = max(t.most, len(t.M))
}

// Delete removes a key. If fewer than a quarter of the entries are left, it copies them to a smaller
// map, so an iteration over M must not call Delete.
func (t *Map[K, V]) Delete(key K) {
	delete(t.M, key)
	switch n := len(t.M); {
	case n == 0 && t.most > 0:
		t.M, t.most = nil, 0
	case n < t.most/4 && t.most > minShrink:
		smaller := make(map[K]V, n)
		maps.Copy(smaller, t.M)
		t.M, t.most = smaller, n
	}
}
