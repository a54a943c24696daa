//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

// TestSecretsInShell is TestSecrets for a session at a terminal: it checks what the shell shows without being asked,
// its trace, and which of the typed lines its history keeps.
func TestSecretsInShell(t *testing.T) {
	t.Parallel()
	issuer, err := emulator.NewIssuer("aio-internal")
	if err != nil {
		t.Fatal(err)
	}
	token := func(life time.Duration) string {
		text, err := issuer.Issue("system:serviceaccount:default:sscli", time.Now(), life)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	s := secrets{"password": "pass/Word1", "wrong password": "Wrong+Word2", "token": token(time.Hour), "expired token": token(-time.Hour)}
	typed := secrets{"password of a URL": "typed=Word3", "password of a flag": "typedWord4", "value behind a space": "typedWord5", "long value": strings.Repeat("typedWord6", 30)}
	given := t.TempDir()
	file := func(name string) string { return filepath.Join(given, strings.ReplaceAll(name, " ", "-")) }
	for name, secret := range s {
		if err := os.WriteFile(file(name), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		server emulator.Options
		args   []string
		works  bool
	}{
		{emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": s["password"]})}, []string{"--username", "ann", "--password-file", file("password")}, true},
		{emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": s["password"]})}, []string{"--username", "ann", "--password-file", file("wrong password")}, false},
		{emulator.Options{CheckToken: issuer.Verify}, []string{"--sat-file", file("token")}, true},
		{emulator.Options{CheckToken: issuer.Verify}, []string{"--sat-file", file("expired token")}, false},
	} {
		server := emulator.Start(t, c.server)
		home := t.TempDir()
		history, trace := filepath.Join(home, "history"), filepath.Join(home, "trace")
		u := seat{
			server: server, width: 2000, height: 60, args: append(c.args, "--trace-file", trace, "-v"), env: []string{"SSCLI_HISTFILE=" + history},
		}.start(t)
		if !c.works {
			u.prompt = server.Addr().String() + " (not connected)> "
		}
		u.ready()
		u.runs(".trace on")
		shown := u.runs("get a") + u.runs("set a 1 -o json") + u.runs("context show")
		if c.works {
			server.DropAll()
			u.seesWithin("the next command reconnects")
			u.types("get a\r")
			u.seesWithin("<- CONNACK")
			u.ready()
			shown += u.screen.String()
		} else if !strings.Contains(shown, "CONNACK 0x8") {
			t.Errorf("%s: no refusal in\n%s", c.args, shown)
		}
		if names := s.found(strings.ReplaceAll(shown, "\n", "")); len(names) > 0 || !strings.Contains(shown, "CONNECT") {
			t.Errorf("%s: no trace, or the %s in\n%s", c.args, strings.Join(names, ", "), shown)
		}
		u.runs("-u mqtt://ann:" + typed["password of a URL"] + "@h get a")
		u.runs("get a --password " + typed["password of a flag"])
		u.runs(" set a " + typed["value behind a space"])
		u.runs("set a " + typed["long value"])
		u.runs("get b")
		u.types("\x04")
		u.leaves()
		kept, packets := read(t, history), read(t, trace)
		if names := append(s.found(kept), typed.found(kept)...); len(names) > 0 || !strings.HasSuffix(kept, "\nget b\n") {
			t.Errorf("%s: the history lacks a line, or has the %s:\n%s", c.args, strings.Join(names, ", "), kept)
		}
		if names := s.found(packets); len(names) > 0 || !strings.Contains(packets, "-> CONNECT") {
			t.Errorf("%s: the trace lacks CONNECT, or has the %s:\n%s", c.args, strings.Join(names, ", "), packets)
		}
	}
}
