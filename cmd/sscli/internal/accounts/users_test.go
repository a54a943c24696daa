package accounts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
)

func TestCheck(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("hashed"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "users")
	text := "# a comment\n\nann:secret\r\nbob:" + string(hash) + "\ncolon:a:b\nempty:\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := accounts.ReadUsers(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		user, password string
		want           bool
	}{
		{"ann", "secret", true},
		{"ann", "Secret", false},
		{"ann", "", false},
		{"ann", "secret\r", false},
		{"bob", "hashed", true},
		{"bob", string(hash), false},
		{"colon", "a:b", true},
		{"empty", "", true},
		{"nobody", "", false},
		{"", "", false},
		{"# a comment", "", false},
	} {
		if got := u.Check(c.user, []byte(c.password)); got != c.want {
			t.Errorf("%q with %q: %t, want %t", c.user, c.password, got, c.want)
		}
	}
	for text, want := range map[string]string{
		"ann":            "line 1: expected NAME:PASSWORD",
		"a:b\n:password": "line 2: expected NAME:PASSWORD",
		"a:$2y$05$short": "line 1: a bcrypt hash that is damaged: expected a line as htpasswd -nbB NAME PASSWORD prints it",
		"a:$apr1$x$y":    "line 1: a hash that begins with $apr1$ is not known: expected one of bcrypt, as htpasswd -nbB NAME PASSWORD prints it",
		"a:1\nb:2\na:1":  `line 3: user "a" is on an earlier line too: expected one line for each user`,
		"a:{SHA}W6ph5M=": "line 1: a hash that begins with {SHA} is not known: expected one of bcrypt, as htpasswd -nbB NAME PASSWORD prints it",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := accounts.ReadUsers(name); err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "password") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestUnknownUser: the response time does not reveal whether a user exists.
func TestUnknownUser(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), 8)
	if err != nil {
		t.Fatal(err)
	}
	users := accounts.Users{"ann": string(hash), "bob": "plain"}
	timed := func(name string) time.Duration {
		begin := time.Now()
		for range 3 { // a Windows clock may advance in steps of 16 ms
			users.Check(name, []byte("wrong"))
		}
		return time.Since(begin)
	}
	known := timed("ann")
	for _, name := range []string{"bob", "nobody", ""} {
		unknown := timed(name)
		for range 50 { // a busy machine delays some checks, but not all
			known, unknown = min(known, timed("ann")), min(unknown, timed(name))
			if unknown >= known/3 {
				break
			}
		}
		if unknown < known/3 {
			t.Errorf("%q is refused in %s, ann in %s", name, unknown, known)
		}
	}
}
