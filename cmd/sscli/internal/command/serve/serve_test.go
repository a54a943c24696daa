package serve

import (
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
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

// TestDataElsewhere: for a --data that can never be a data file, the hint is another file.
func TestDataElsewhere(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--data"}, {"--data-check"}} {
		code, _, stderr := apptest.Run(t, []app.Command{{Name: "serve", New: New}}, nil, append(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), t.TempDir())...)
		if code == 0 || !strings.Contains(stderr, "not a regular file") || strings.Contains(stderr, "start again") {
			t.Errorf("%s: %d, %s", args, code, stderr)
		}
	}
}
