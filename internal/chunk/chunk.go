// Package chunk copies large amounts of memory without delaying other goroutines. Go cannot interrupt
// the copy function, so when the garbage collector stops the program, all goroutines would wait until a
// long copy ends.
package chunk

// size is how many bytes are copied without a point at which Go can stop the goroutine.
const size = 256 << 10

// Copy is like the built-in copy. dst and src must not overlap.
func Copy(dst, src []byte) (n int) {
	for n < len(src) && n < len(dst) {
		n += copy(dst[n:], src[n:min(n+size, len(src))])
	}
	return n
}
