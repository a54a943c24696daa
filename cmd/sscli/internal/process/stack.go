package process

import "os"

// The first goroutine needs up to 32 KiB of stack. It grows here, at once, in a shallow call and before most packages are
// initialized: each growth reads the tables of all functions on the stack, which takes up to 0.2 ms in a deep one.
var _ = growStack()

// growStack makes room for its frame, of which it uses nothing: memory that is not touched costs no page fault.
//
//go:noinline
func growStack() byte {
	if len(os.Args) > 0 { // always
		return 0
	}
	var frame [20 << 10]byte
	return frame[len(os.Environ())%len(frame)]
}
