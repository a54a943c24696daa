package app

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/emulator"
)

// TestPasswordRotates: a command that runs for long reads the password file again when it connects again.
func TestPasswordRotates(t *testing.T) {
	var want atomic.Value
	want.Store("one")
	store := emulator.Start(t, emulator.Options{CheckLogin: func(user string, password []byte) bool {
		return user == "ann" && string(password) == want.Load()
	}})
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(password+"\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(fs)
	if err := fs.Parse([]string{"-u", store.URL(), "--username", "ann", "--password-file", file, "-t", "1m"}); err != nil {
		t.Fatal(err)
	}
	a := &App{Stdin: os.Stdin, Stdout: &terminal.Output{File: os.Stdout}, Stderr: &terminal.Output{File: os.Stderr}, Env: func(string) (string, bool) { return "", false }}
	if err := a.ConfigureConnection(t.Context(), fs); err != nil {
		t.Fatal(err)
	}
	write("one")
	err := a.WithSession(t.Context(), func(s *client.Session, _ client.Options) error {
		want.Store("two")
		write("two")
		store.DropAll()
		<-s.Down()
		_, err := s.Get(t.Context(), "k")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPrincipal: a rule to ask for names the client of a certificate, also if the file begins with its key.
func TestPrincipal(t *testing.T) {
	dir := t.TempDir()
	if _, err := (certs.SelfSigned{Dir: dir, Names: []string{"localhost"}, Now: time.Now()}).Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	var bundle []byte
	for _, name := range []string{"client.key", "client.crt"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		bundle = append(bundle, text...)
	}
	file := filepath.Join(dir, "bundle.pem")
	if err := os.WriteFile(file, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := certs.Certificate(file)
	if err != nil {
		t.Fatal(err)
	}
	a := &App{Settings: config.Settings{TLS: true, CertFile: file, ClientID: "id"}}
	if p := a.principal(); p.Username != want.Subject.CommonName {
		t.Errorf("%+v, want %s", p, want.Subject.CommonName)
	}
	a.Settings.TLS = false // then the broker does not see the certificate
	if p := a.principal(); p.Username != "" || p.ClientID != "id" {
		t.Errorf("%+v, want the client id", p)
	}
}

// TestAskPassKept: once a password was entered, later lines of the run do not ask for it again.
func TestAskPassKept(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(fs)
	if err := fs.Parse([]string{"-u", "mqtt://127.0.0.1:1", "--username", "ann", "--askpass"}); err != nil {
		t.Fatal(err)
	}
	a := &App{Stdin: os.Stdin, Stdout: &terminal.Output{File: os.Stdout}, Stderr: &terminal.Output{File: os.Stderr}, Env: func(string) (string, bool) { return "", false }}
	a.password = []byte("secret")
	for range 2 {
		if err := a.ConfigureConnection(t.Context(), fs); err != nil {
			t.Fatal(err)
		}
	}
	o, _, err := a.broker()
	if err != nil {
		t.Fatal(err)
	}
	if password, err := o.Password(); err != nil || string(password) != "secret" {
		t.Errorf("%q, %v", password, err)
	}
}
