package freeport

import "testing"

// TestFind: servers whose ports are found one after the other, before the first listens, get different ones.
func TestFind(t *testing.T) {
	found := map[string]bool{}
	for range 1000 {
		address := Address(t)
		if found[address] {
			t.Fatalf("%s twice", address)
		}
		found[address] = true
	}
}
