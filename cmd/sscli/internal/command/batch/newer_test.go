package batch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sscli/sscli/client"
)

// TestOwnWrites: a set has the writes that were added, in whatever order, and no other version or key.
func TestOwnWrites(t *testing.T) {
	const first = 1_700_000_000_000
	var w writes
	version := func(wall int64, counter uint64) client.Version {
		return client.Version{Wall: wall, Counter: counter, Node: "StateStore"}
	}
	if w.has("key0", version(first, 0)) {
		t.Error("the empty set has a write")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 2 { // adding again changes nothing
		for _, i := range append([]int{500}, rnd.Perm(1000)...) {
			w.add(fmt.Sprint("key", i), version(first+int64(i/3), uint64(i%3)))
		}
		if len(w.hashes) != 1000 {
			t.Errorf("round %d: %d writes, want 1000", round, len(w.hashes))
		}
	}
	for i := range 1000 {
		key, wall, counter := fmt.Sprint("key", i), first+int64(i/3), uint64(i%3)
		if !w.has(key, version(wall, counter)) {
			t.Errorf("the write of %s is missing", key)
		}
		if w.has(key, version(wall+1, counter)) || w.has(key, version(wall, counter+1)) || w.has("other", version(wall, counter)) {
			t.Errorf("%s: the set reports a write that was never added", key)
		}
	}
}
