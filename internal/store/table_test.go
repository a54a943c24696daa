package store

import "testing"

// TestTable: a table finds each record until it is removed, and its memory follows the number of records.
func TestTable(t *testing.T) {
	const n = 10_000
	var x table
	hash := func(r ref) uint32 { return uint32(r) / 3 * 0x9E3779B1 } // three records with the same hash
	check := func(first, last ref) {
		t.Helper()
		if places := len(x.places); x.size != int(last-first+1) || places > max(minPlaces, 4*x.size) || x.size > places/4*3 {
			t.Fatalf("%d records in %d places", x.size, places)
		}
		for _, r := range []ref{first, (first + last) / 2, last} {
			if got := x.find(hash(r), func(found ref) bool { return found == r }); got != r {
				t.Fatalf("found %d in place of %d", got, r)
			}
		}
		for _, r := range []ref{first - 1, last + 1} {
			if got := x.find(hash(r), func(found ref) bool { return found == r }); got != 0 {
				t.Fatalf("found %d, which is not there", got)
			}
		}
	}
	for r := ref(1); r <= n; r++ {
		x.add(hash(r), r)
		check(1, r)
	}
	for r := ref(1); r < n; r++ {
		x.remove(hash(r), r)
		check(r+1, n)
	}
	x.replace(hash(n), n, n+1)
	if x.find(hash(n), func(ref) bool { return true }) != n+1 {
		t.Error("the record was not replaced")
	}
	if x.remove(hash(n), n+1); x.places != nil || x.size != 0 {
		t.Errorf("%d records in %d places", x.size, len(x.places))
	}
}
