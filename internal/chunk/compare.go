package chunk

import "bytes"

// A Comparison is the result of comparing two large values in advance, before the caller takes the
// lock under which it needs the result.
type Comparison struct {
	a, b  []byte
	equal bool
}

// Compare compares a with b without delaying other goroutines. The values must not change while the
// Comparison is in use.
func Compare(a, b []byte) *Comparison {
	c := &Comparison{a: a, b: b, equal: len(a) == len(b)}
	for i := 0; i < len(a) && c.equal; i += size {
		end := min(i+size, len(a))
		c.equal = equal(a[i:end], b[i:end])
	}
	return c
}

// equal is a separate function for the same reason as interruptible.
//
//go:noinline
func equal(a, b []byte) bool { return bytes.Equal(a, b) }

// Equal reports whether a and b are equal. If c compared the same memory, Equal returns the result of
// that comparison; otherwise, or if c is nil, it compares a and b.
func (c *Comparison) Equal(a, b []byte) bool {
	if c != nil && isSame(a, c.a) && isSame(b, c.b) {
		return c.equal
	}
	return bytes.Equal(a, b)
}

func isSame(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }
