//go:build race

package full

// Race reports whether this is a build for the race detector, in which everything takes three to ten times as long. What
// depends on chance, or measures memory, takes fewer rounds there: the detector needs each line once.
const Race = true
