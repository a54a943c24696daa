package socket

// piece is the number of bytes that Copy copies at a time. That takes some 20 µs, or 200 µs to memory that was
// never used.
const piece = 256 << 10

// Copy is like the built-in copy, but in pieces, between which Go can interrupt the goroutine. It cannot interrupt
// the built-in copy: the garbage collector, which must interrupt a goroutine to scan its stack, would wait for the end
// of a large copy and occupy a second processor meanwhile. On a machine with two processors, no other goroutine
// would run.
func Copy(dst, src []byte) (n int) {
	for n < min(len(dst), len(src)) {
		n += copyPiece(dst[n:], src[n:min(len(src), n+piece)])
	}
	return n
}

// copyPiece has a prologue, at which Go can interrupt the goroutine.
//
//go:noinline
func copyPiece(dst, src []byte) int { return copy(dst, src) }
