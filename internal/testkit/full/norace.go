//go:build !race

package full

// Race reports whether this is a build for the race detector.
const Race = false
