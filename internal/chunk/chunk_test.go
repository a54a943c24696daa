package chunk_test

import (
	"bytes"
	"testing"

	"github.com/sscli/sscli/internal/chunk"
)

// TestCopy: Copy copies what the built-in function copies.
func TestCopy(t *testing.T) {
	src := bytes.Repeat([]byte("0123456789"), 100_000)
	for _, size := range []int{0, 1, 256 << 10, 256<<10 + 1, len(src) - 1, len(src), len(src) + 10} {
		got, want := make([]byte, size), make([]byte, size)
		if n, m := chunk.Copy(got, src), copy(want, src); n != m || !bytes.Equal(got, want) {
			t.Errorf("into %d bytes: copied %d, want %d", size, n, m)
		}
		if n := chunk.Copy(got, src[:size/2]); n != size/2 {
			t.Errorf("%d bytes: copied %d", size/2, n)
		}
	}
}
