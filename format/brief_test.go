package format_test

import (
	"strings"
	"testing"

	"github.com/sscli/sscli/format"
)

func TestBrief(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", `""`},
		{"a\n", `"a\n"`},
		{strings.Repeat("x", 120), `"` + strings.Repeat("x", 120) + `"`},
		{strings.Repeat("x", 121), `"` + strings.Repeat("x", 120) + `"… (121 bytes)`},
	} {
		if got := format.Brief(tt.in); got != tt.want {
			t.Errorf("Brief(%q) = %s, want %s", tt.in, got, tt.want)
		}
		if got := format.Brief([]byte(tt.in)); got != tt.want {
			t.Errorf("Brief of bytes %q = %s, want %s", tt.in, got, tt.want)
		}
	}
	if got := format.BriefWord([]byte("a b")); got != `"a b"` {
		t.Errorf("BriefWord: %s", got)
	}
	if got := format.Verb("G\x1bET"); got != `g\x1bet` {
		t.Errorf("Verb: %s", got)
	}
}
