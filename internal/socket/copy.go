package socket

// piece is the number of bytes that Copy copies at a time. That takes some 20 µs, or 200 µs to memory that was
// never used.
const piece = 256 << 10

// Copy is like the built-in copy, but in pieces. Go cannot interrupt the built-in copy, so all goroutines would
// wait for the end of a large copy if the garbage collector stopped the program during it.
func Copy(dst, src []byte) (n int) {
	for n < min(len(dst), len(src)) {
		n += copy(dst[n:], src[n:min(len(src), n+piece)])
	}
	return n
}
