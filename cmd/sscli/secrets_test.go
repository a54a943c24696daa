package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/testcert"
)

// secrets maps the name of each secret to the secret, which must not appear anywhere.
type secrets map[string]string

// found returns the names of the secrets in a text, in plain form or as they are encoded on the wire.
func (s secrets) found(text string) []string {
	var names []string
	for name, secret := range s {
		for _, form := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte("ann:" + secret)),
		} {
			if strings.Contains(text, form) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// TestSecrets runs commands with secrets, successful and failing ones, and looks for the secrets in everything that
// they print and write.
func TestSecrets(t *testing.T) {
	t.Parallel()
	program := buildProgram(t)
	issuer, err := emulator.NewIssuer("aio-internal")
	if err != nil {
		t.Fatal(err)
	}
	sign := func(life time.Duration) string {
		token, err := issuer.Issue("system:serviceaccount:default:sscli", time.Now(), life)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	s := secrets{
		"password": "pass/Word 1", "wrong password": "Wrong+Word 2", "key password": keyPassword, "wrong key password": "Wrong key 3",
		"proxy password": "proxy=Word4", "token": sign(time.Hour), "expired token": sign(-time.Hour), "malformed token": "mal.formed.token",
	}
	// Check that the search finds a secret.
	for name, secret := range s {
		if got := s.found("before " + secret + " behind"); len(got) != 1 || got[0] != name {
			t.Fatalf("%s is found as %q", name, got)
		}
	}

	given := t.TempDir() // files that the user wrote
	file := func(name string) string { return filepath.Join(given, strings.ReplaceAll(name, " ", "-")) }
	for name, secret := range s {
		if err := os.WriteFile(file(name), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err = writeCertificate(given, "client", testcert.New(t, nil, testcert.Leaf("client")))
	if err == nil {
		err = os.WriteFile(filepath.Join(given, "users"), []byte("ann:"+s["password"]+"\n"+s["wrong password"]), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	logins := &emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": s["password"]})}
	accounts := &emulator.Options{CheckToken: issuer.Verify}
	proxy := func(password string) string {
		return "SSCLI_PROXY=http://ann:" + url.QueryEscape(password) + "@127.0.0.1:1"
	}
	encrypted := "--cert-file " + given + "/client.pem --key-file " + given + "/client-key-encrypted.pem --key-password-file "

	for i, c := range []struct {
		server          *emulator.Options // nil = use url
		url, flags, env string
		args            []string
	}{
		{server: logins, flags: "--username ann --password-file " + file("password")},
		{server: logins, flags: "--username ann --password-file " + file("wrong password")},
		{server: logins, flags: "--username ann", env: "AIO_MQTT_PASSWORD_FILE=" + file("password")},
		{server: accounts, flags: "--sat-file " + file("token")},
		{server: accounts, flags: "--sat-file " + file("expired token")},
		{server: accounts, flags: "--sat-file " + file("malformed token")},
		{server: accounts, flags: "--sat-file " + file("password")},
		{url: "mqtts://127.0.0.1:1", flags: encrypted + file("key password")},
		{url: "mqtts://127.0.0.1:1", flags: encrypted + file("wrong key password")},
		{url: "mqtt://broker.invalid", env: proxy(s["proxy password"])},
		{url: "mqtt://broker.invalid", env: "ALL_PROXY=ftp://ann:" + s["proxy password"] + "@127.0.0.1"},
		{url: "mqtt://broker.invalid", env: "SSCLI_PROXY=http://ann:" + s["proxy password"] + "@127.0.0.1:x"},
		{url: "mqtt://broker.invalid", args: []string{"--proxy", "http://ann:" + s["proxy password"] + "@127.0.0.1"}},
		{url: "mqtt://broker.invalid", env: "SSCLI_URL=mqtt://ann:" + url.PathEscape(s["password"]) + "@127.0.0.1"},
		{url: "mqtt://ann:" + s["proxy password"] + "@127.0.0.1:x"},
		{server: logins, flags: "--password-file " + file("password") + " --sat-file " + file("token")},
	} {
		for _, output := range []string{"human", "raw", "json", "template={{.}}"} {
			home := t.TempDir()
			if c.server != nil { // a new server, which has not counted any failed login
				c.url = emulator.Start(t, *c.server).URL()
			}
			run := func(stdin string, args ...string) {
				t.Helper()
				trace := filepath.Join(home, "trace")
				args = append(args, "-t", "2s", "-v", "--trace", "--trace-file", trace, "-o", output)
				args = append(append(args, strings.Fields(c.flags)...), c.args...)
				cmd := exec.Command(program, args...)
				cmd.Stdin = strings.NewReader(stdin)
				cmd.Dir = home
				cmd.Env = []string{"HOME=" + home, "XDG_STATE_HOME=" + home, "XDG_CONFIG_HOME=" + home, "SSCLI_URL=" + c.url, c.env}
				said, err := cmd.CombinedOutput()
				if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
					t.Fatal(err)
				}
				if names := s.found(string(said)); len(names) > 0 {
					t.Errorf("case %d, %s: output has the %s:\n%s", i, output, strings.Join(names, ", "), said)
				}
			}
			run("", "get", "a")
			run("", "set", "a", "1")
			run("get a\nget b\n", "-")
			run("", "watch", "a", "--for", "1ms")
			if trace, err := os.ReadFile(filepath.Join(home, "trace")); strings.HasPrefix(c.url, "mqtt://127") && c.env == "" && !strings.Contains(string(trace), "CONNECT") && i < 7 {
				t.Errorf("case %d, %s: the trace has no CONNECT: %v\n%s", i, output, err, trace)
			}
			err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				if names := s.found(string(text)); len(names) > 0 {
					t.Errorf("case %d, %s: the file %s has the %s:\n%s", i, output, d.Name(), strings.Join(names, ", "), text)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}

	// Files of serve with invalid lines.
	for _, args := range [][]string{
		{"--users", filepath.Join(given, "users")}, {"--sat-tokens", given}, {"--sat-key", file("token"), "--sat-audience", "x"},
		{"--self-signed", file("password")}, {"--listen-cert", file("token"), "--listen-key", file("password")},
	} {
		said, err := exec.Command(program, append(append([]string{"serve"}, args...), "--", "true")...).CombinedOutput()
		if exit, failed := errors.AsType[*exec.ExitError](err); !failed || exit.ExitCode() != fault.CodeUsage {
			t.Errorf("serve %q: %v\n%s", args, err, said)
		}
		if names := s.found(string(said)); len(names) > 0 {
			t.Errorf("serve %q: output has the %s:\n%s", args, strings.Join(names, ", "), said)
		}
	}
}
