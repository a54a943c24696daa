package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
)

func TestLogger(t *testing.T) {
	for _, c := range []struct {
		name    string
		quiet   bool
		verbose config.Level
		want    string
	}{
		{"plain", false, 1, "sscli: up again after=2s\nsscli: warning: lost error=\"no route\" key=a\n"},
		{"quiet", true, 0, ""},
		{"verbose", false, 2, "sscli: hello group.id=\"x y\"\nsscli: up again after=2s\nsscli: warning: lost error=\"no route\" key=a\n"},
	} {
		f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		a := &app.App{Stdout: &terminal.Output{File: f}, Stderr: &terminal.Output{File: f}, Env: func(string) (string, bool) { return "", false }}
		a.Settings.Quiet, a.Settings.Verbose = c.quiet, c.verbose
		if err := a.SetOutput("raw"); err != nil {
			t.Fatal(err)
		}
		log := a.Logger()
		log.WithGroup("group").With("id", "x y").WithGroup("").Debug("hello")
		log.Info("up again", "after", "2s", "nothing", nil)
		log.Warn("lost", "error", errors.New("no route"), "key", "a")
		got, err := os.ReadFile(f.Name())
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}
