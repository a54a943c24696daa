package serve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/format"
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

// TestFirstCommand: the command that serve prints for a terminal logs in if a login is required, and writes nothing
// that a policy may forbid.
func TestFirstCommand(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, []byte("bob:x\nann b:y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flags serveFlags
		shown format.Serving
		want  string
	}{
		{want: "sscli set hello world"},
		{flags: serveFlags{login: accounts.Login{Users: config.File(users)}}, want: "sscli --username 'ann b' --askpass set hello world"},
		{flags: serveFlags{login: accounts.Login{Users: config.File(users)}}, shown: format.Serving{SATFile: "token"}, want: "sscli set hello world"},
		{flags: serveFlags{login: accounts.Login{Users: config.File(users), Policy: []string{"a z.yaml", "b.yaml"}}}, want: "sscli policy table 'a z.yaml' b.yaml"},
	} {
		if got := test.flags.firstCommand(test.shown); got != test.want {
			t.Errorf("%+v: %s, want %s", test.flags.login, got, test.want)
		}
	}
}
