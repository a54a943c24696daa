// Package chunk copies and compares large amounts of memory without delaying other goroutines. Go
// cannot interrupt the built-in copy, nor a loop that does nothing else. The garbage collector
// would wait until a long copy ends, and all goroutines would wait for the garbage collector.
package chunk

// size is the number of bytes to copy or compare at a time. Go cannot stop the goroutine meanwhile.
const size = 256 << 10

// Copy is like the built-in copy. dst and src must not overlap.
func Copy(dst, src []byte) (n int) {
	for n < len(src) && n < len(dst) {
		n += interruptible(dst[n:], src[n:min(n+size, len(src))])
	}
	return n
}

// Join returns a copy of all parts, one after the other.
func Join(parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	whole, n := make([]byte, size), 0
	for _, p := range parts {
		n += Copy(whole[n:], p)
	}
	return whole
}

// interruptible wraps copy in a function, because Go can stop a goroutine at a function call.
//
//go:noinline
func interruptible(dst, src []byte) int { return copy(dst, src) }
