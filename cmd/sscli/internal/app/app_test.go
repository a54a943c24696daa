package app

import (
	"os"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// TestAskPassKept: once a password was entered, later lines of the run do not ask for it again.
func TestAskPassKept(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(fs)
	if err := fs.Parse([]string{"-u", "mqtt://127.0.0.1:1", "--username", "ann", "--askpass"}); err != nil {
		t.Fatal(err)
	}
	a := &App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: func(string) (string, bool) { return "", false }}
	a.password = []byte("secret")
	for range 2 {
		if err := a.ConfigureConnection(t.Context(), fs); err != nil {
			t.Fatal(err)
		}
	}
	if o, _, err := a.broker(); err != nil || string(o.Password) != "secret" {
		t.Errorf("%q, %v", o.Password, err)
	}
}
