package serve

import (
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/process"
)

func TestEnviron(t *testing.T) {
	t.Setenv("SSCLI_HOST", "elsewhere")
	t.Setenv("SSCLI_URL", "mqtt://elsewhere")
	env := process.Environ(map[string]string{"SSCLI_URL": "mqtt://here"}, "SSCLI_HOST")
	if !slices.Contains(env, "SSCLI_URL=mqtt://here") {
		t.Error("a variable was not set")
	}
	for _, kv := range env {
		if strings.Contains(kv, "elsewhere") {
			t.Errorf("%s was left", kv)
		}
	}
}
