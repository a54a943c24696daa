package chunk_test

import (
	"testing"

	"github.com/sscli/sscli/internal/chunk"
)

// TestRest: Join returns the beginning, the large part and the tail. Nil is empty.
func TestRest(t *testing.T) {
	r := chunk.Rest{Large: []byte("large"), Tail: []byte("\r\n")}
	if got := string(r.Join([]byte("$5\r\n"))); got != "$5\r\nlarge\r\n" || r.Len() != 7 {
		t.Errorf("%q, length %d", got, r.Len())
	}
	var none *chunk.Rest
	if got := string(none.Join([]byte("+OK"))); got != "+OK" || none.Len() != 0 {
		t.Errorf("%q, length %d", got, none.Len())
	}
}
