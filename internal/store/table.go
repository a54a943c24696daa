package store

// A table finds the records of an index by the hashes of their keys. It uses open addressing with linear probing.
// A Go map does not shrink. Its parts share pages with those of a smaller copy, so that few pages are given back.
type table struct {
	places []place // as many as a power of two, or none; at most three quarters are taken
	size   int     // number of records
}

// A place of a table has a record, unless its ref is 0.
type place struct {
	hash uint32
	ref  ref
}

// minPlaces is the smallest number of places of a table that has records.
const minPlaces = 16

// find returns the record with a hash for which is returns true, or 0.
func (t *table) find(hash uint32, is func(ref) bool) ref {
	if t.size == 0 {
		return 0
	}
	for i := t.home(hash); t.places[i].ref != 0; i = t.next(i) {
		if p := t.places[i]; p.hash == hash && is(p.ref) {
			return p.ref
		}
	}
	return 0
}

func (t *table) add(hash uint32, r ref) {
	if t.size++; t.size > len(t.places)/4*3 {
		t.resize(max(minPlaces, 2*len(t.places)))
	}
	t.places[t.at(hash, 0)] = place{hash, r}
}

// replace puts a record in the place of another one with the same hash.
func (t *table) replace(hash uint32, old, r ref) { t.places[t.at(hash, old)].ref = r }

func (t *table) remove(hash uint32, r ref) {
	if t.size--; t.size == 0 {
		t.places = nil
		return
	}
	free := t.at(hash, r)
	for i := t.next(free); t.places[i].ref != 0; i = t.next(i) {
		// A record may move to the free place if that is not before its home.
		if t.distance(t.home(t.places[i].hash), i) >= t.distance(free, i) {
			t.places[free], free = t.places[i], i
		}
	}
	t.places[free] = place{}
	if len(t.places) > minPlaces && t.size < len(t.places)/4 {
		t.resize(len(t.places) / 2)
	}
}

func (t *table) resize(n int) {
	old := t.places
	t.places = make([]place, n)
	for _, p := range old {
		if p.ref != 0 {
			t.places[t.at(p.hash, 0)] = p
		}
	}
}

// at returns the place of a record, or with ref 0 the free place for a record with this hash.
func (t *table) at(hash uint32, r ref) int {
	i := t.home(hash)
	for t.places[i].ref != r {
		i = t.next(i)
	}
	return i
}

// home returns the place where the search for a hash begins.
func (t *table) home(hash uint32) int { return int(hash) & (len(t.places) - 1) }

func (t *table) next(i int) int { return t.distance(-1, i) }

// distance returns the number of places from one place to another, around the end.
func (t *table) distance(from, to int) int { return (to - from) & (len(t.places) - 1) }
