package lock

import (
	"os"
	"strings"
	"testing"
)

// TestProcessHolder: a generated holder is recognized, whatever the names of the user and the host are, and no other value is.
func TestProcessHolder(t *testing.T) {
	for _, user := range []string{"ann", "ann@example.com", "a:b", "é"} {
		for _, host := range []string{"host", "host.example.com", "fe80::1"} {
			h := newProcessHolder(os.LookupEnv)
			h.user, h.host = user, host
			if !isProcessHolder(h.String()) {
				t.Errorf("%s is not recognized", h)
			}
		}
	}
	random := strings.Repeat("a", 16)
	for _, value := range []string{"", "ann", "ann@host", "ann@host:1", "ann@host:1:" + random[1:], "ann@host:1:" + random + "a", "ann@host:0:" + random,
		"ann@host:01:" + random, "ann@host:-1:" + random, "ann@host:x:" + random, "ann:1:" + random, "ann@host:1:1" + random[1:], "ann@host:1:A" + random[1:],
		"ann@host:99999999999999999999:" + random, "ann@host:1:" + random + "\n"} {
		if isProcessHolder(value) {
			t.Errorf("%q is taken for a generated holder", value)
		}
	}
}
