package hlc_test

import (
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/hlc"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

var run = apptest.Runner(app.Command{Name: "hlc", New: hlc.New})

// TestCompare: versions are ordered by wall clock, then counter, then node.
func TestCompare(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"1696374425000:0:node-1", "1696374427500:0:node-0", "-1\n"},
		{"1696374425000:1:node-1", "1696374425000:0:node-2", "1\n"},
		{"1696374425000:1:node-1", "1696374425000:1:node-2", "-1\n"},
		{"1696374425000:1:node-1", "001696374425000:00001:node-1", "0\n"},
	} {
		code, stdout, stderr := run(t, "", "compare", tt.a, tt.b)
		if code != 0 || stdout != tt.want {
			t.Errorf("%s and %s: %d, %q, want %q\n%s", tt.a, tt.b, code, stdout, tt.want, stderr)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, args := range [][]string{{"parse"}, {"parse", "x"}, {"parse", "1:2"}, {"compare", "1:0:a"}, {"compare", "1:0:a", "b"}, {"now", "x"}} {
		if code, stdout, _ := run(t, "", args...); code != fault.CodeUsage || stdout != "" {
			t.Errorf("%q: %d, %q, want a usage error", args, code, stdout)
		}
	}
}
