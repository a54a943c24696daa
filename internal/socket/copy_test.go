package socket

import (
	"bytes"
	"testing"
)

// TestCopy: Copy is like the built-in copy.
func TestCopy(t *testing.T) {
	for _, from := range []int{0, 1, piece - 1, piece, piece + 1, 3*piece + 7} {
		for _, to := range []int{0, 1, piece, 2*piece + 3, 4 * piece} {
			src := make([]byte, from)
			for i := range src {
				src[i] = byte(i % 251)
			}
			got, want := make([]byte, to), make([]byte, to)
			if n := copy(want, src); Copy(got, src) != n || !bytes.Equal(got, want) {
				t.Errorf("%d bytes to %d are not the same", from, to)
			}
		}
	}
}
