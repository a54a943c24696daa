package emulator_test

import (
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

func TestRequestWords(t *testing.T) {
	t.Parallel()
	r := emulator.NewRequest("c", wire.AppendRequest(nil, "set", "k", "v"))
	if r.Verb() != "SET" || r.Key() != "k" {
		t.Errorf("got %q and %q", r.Verb(), r.Key())
	}
	for _, payload := range []string{"", "*0\r\n", "+OK\r\n"} {
		if r := emulator.NewRequest("c", []byte(payload)); r.Verb() != "" || r.Key() != "" {
			t.Errorf("%q: got %q and %q", payload, r.Verb(), r.Key())
		}
	}
}
