package exchange_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
)

// FuzzList: a list returns the keys and the digests that were added, in this order.
func FuzzList(f *testing.F) {
	f.Add([]byte("a b  c"), uint16(1))
	f.Add([]byte("\x00 \xff key"), uint16(30_000))
	f.Fuzz(func(t *testing.T, text []byte, times uint16) {
		var keys []string
		for word := range bytes.SplitSeq(text, []byte(" ")) {
			keys = append(keys, string(word), strings.Repeat(string(word), int(times)))
		}
		var l exchange.List
		for i, key := range keys {
			l.Add(key, exchange.Digest{byte(i)})
		}
		if l.Len() != len(keys) {
			t.Errorf("%d keys, want %d", l.Len(), len(keys))
		}
		r := l.Read()
		for i, want := range keys {
			if key, d, ok := r.Next(); key != want || d != (exchange.Digest{byte(i)}) || !ok {
				t.Fatalf("key %d: %q, %x, %t, want %q", i, key, d, ok, want)
			}
		}
		if key, _, ok := r.Next(); ok {
			t.Errorf("%q after the end", key)
		}
	})
}
