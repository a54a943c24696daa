package chunk_test

import (
	"bytes"
	"runtime"
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

// TestCollector: a garbage collection need not wait until a long copy ends.
func TestCollector(t *testing.T) {
	src, dst := make([]byte, 256<<20), make([]byte, 256<<20)
	for range 10 { // a busy machine may delay the collection
		begun, ended := make(chan struct{}), make(chan struct{})
		go func() {
			close(begun)
			chunk.Copy(dst, src)
			close(ended)
		}()
		<-begun
		runtime.GC()
		select {
		case <-ended:
			continue
		default:
		}
		<-ended
		return
	}
	t.Error("no collection ended before the copy")
}

// TestCompare: a Comparison agrees with bytes.Equal, also for other values than those compared.
func TestCompare(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 100_000)
	other := bytes.Clone(long)
	other[len(other)-1] = 'x'
	for _, a := range [][]byte{nil, long, other, long[:300_000]} {
		for _, b := range [][]byte{nil, long, other, bytes.Clone(long), long[:300_000]} {
			c := chunk.Compare(a, b)
			if got, want := c.Equal(a, b), bytes.Equal(a, b); got != want {
				t.Errorf("%d and %d bytes: %t", len(a), len(b), got)
			}
			if !c.Equal(long, bytes.Clone(long)) || c.Equal(long, bytes.Clone(other)) {
				t.Errorf("%d and %d bytes: wrong for other values", len(a), len(b))
			}
		}
	}
}
