package wire_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/sscli/sscli/internal/wire"
)

// TestRefusedRequest: a request that is refused because of one of its values takes no memory for the rest: a server
// reads it while other clients wait.
func TestRefusedRequest(t *testing.T) {
	const values = 1 << 20
	nulls := bytes.Repeat([]byte("_\r\n"), values)
	for _, begin := range []string{"*1\r\n*1048576\r\n", "*2\r\n$1\r\na\r\n*1048576\r\n"} {
		payload := append([]byte(begin), nulls...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		words, err := wire.ParseRequest(payload)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 || err == nil {
			t.Errorf("%q and %d nulls: %d bytes allocated, %d words, %v", begin, values, n, len(words), err)
		}
	}
}
